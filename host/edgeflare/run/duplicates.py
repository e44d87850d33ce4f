"""How many triggers of a run are the same input as another, or nearly (DFlare, section 6.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from edgeflare.core.domain import Domain
from edgeflare.core.input import Input
from edgeflare.errors import InfrastructureError
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Duplicates, Finding


def duplicates_of(
    directory: RunDirectory, findings: Sequence[Finding], domain: Domain
) -> Duplicates:
    """Return how much of what was found is the same, as `totals` has it.

    A finding whose trigger is gone or damaged is left out.

    Args:
        directory: where the inputs are.
        findings: entries of the document.
        domain: of their inputs, which says which are near.

    """
    if not findings:
        return Duplicates(triggers=0, distinct=0, exact=0, near=0, distinct_seeds=0)
    seeds: set[bytes] = set()

    def inputs() -> Iterator[Input]:
        for entry in findings:
            try:
                one = directory.load_input(entry.image)
                # Files of one run are equal if their inputs are, and read much faster.
                seeds.add(sha256(directory.read(entry.seed_image)).digest())
            except (InfrastructureError, OSError):
                continue
            yield one

    counts = count_duplicates(inputs(), domain)
    return Duplicates(**counts, distinct_seeds=len(seeds))


def count_duplicates(inputs: Iterable[Input], domain: Domain) -> dict[str, int]:
    """Compare each input with every other; one of them is held at a time.

    Returns:
        `triggers`, how many were compared; `distinct`, the different ones; `exact`, those that
        another one equals; `near`, those that another one is near to or equals.

    """
    copies, fingerprints = Counter[bytes](), []
    for one in inputs:
        copies[sha256(repr(one.shape).encode() + one.tobytes()).digest()] += 1
        fingerprints.append(domain.fingerprint(one))
    return {
        "triggers": len(fingerprints),
        "distinct": len(copies),
        "exact": sum(times for times in copies.values() if times > 1),
        "near": domain.count_near(fingerprints),
    }
