"""A search as a test, whose failure shows the worst finding.

    def test_the_release_decides_as_its_original(edgeflare):
        assert_decides_alike(edgeflare.search("models/my_pair", total_queries=5000))

pytest loads this file in every session, so it imports the rest where that is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edgeflare.api.call_arguments import real_number, require_one_of
from edgeflare.errors import UserError

if TYPE_CHECKING:
    from edgeflare.api.search import SearchResult
    from edgeflare.run.run_document import Finding, RunDocument


def assert_decides_alike(
    result: SearchResult,
    *,
    allow: float = 0.0,
    fail_on: str = "any",
    allow_unfinished: bool = False,
) -> None:
    """Fail if more seeds than allowed deviate or led to a finding; the message shows the worst.

    Args:
        result: result of a search.
        allow: share of the seeds that may, from 0 to 1.
        fail_on: as of `edgeflare search --fail-on`: "harmful" counts only what the original (of
            kernels: the twin) decides right by the seed's label, and failures of the device;
            "kernel" what the device's kernels cause, and its failures.
        allow_unfinished: a search that was stopped before its end, as by `total_time`, may pass.

    Raises:
        UserError: an argument is not what it should be.

    """
    __tracebackhide__ = True
    allow = real_number("allow", allow, 0.0, 1.0)
    from edgeflare.report.entry_words import worst_first  # noqa: PLC0415
    from edgeflare.run.gate import FAIL_ON, counting, deviation_rate  # noqa: PLC0415
    from edgeflare.untrusted_text import for_terminal  # noqa: PLC0415

    require_one_of(
        "fail_on", fail_on, [name for name, condition in FAIL_ON.items() if condition.of_tests]
    )
    document = result.document
    if FAIL_ON[fail_on].needs_truth and document.totals.harm is None:
        raise UserError(
            f'fail_on="{fail_on}": the seeds have no labels or targets: give an .npz with them'
        )
    rate = deviation_rate(document, fail_on)
    if rate > allow:
        worst, *_ = worst_first(counting(document, fail_on))
        pytest.fail(
            for_terminal(_message(document, result.path, rate, allow, worst)), pytrace=False
        )
    if document.stopped_by and not allow_unfinished:
        totals = document.totals
        done = totals.searched + totals.deviating_seeds
        pytest.fail(
            for_terminal(
                f"{document.pair.name}: the search was stopped before its end"
                f" ({document.stopped_by}), with {done} of {totals.seeds} seeds done: give it more"
                " time, or fewer seeds with limit, or let it pass with allow_unfinished=True"
            ),
            pytrace=False,
        )


def _message(document: RunDocument, path: Path, rate: float, allow: float, worst: Finding) -> str:
    from edgeflare.report.entry_words import (  # noqa: PLC0415
        cause_of,
        input_words,
        named_kind,
    )

    names = ", ".join(device.name for device in document.devices)
    lines = [
        f"{document.pair.name} decides differently on {names}: {rate:.1%} of"
        f" {document.totals.seeds} seeds, {allow:.1%} allowed",
        f"the worst: seed {worst.seed_id}"
        + (" itself" if not worst.queries else f" after {worst.queries} queries"),
    ]
    lines += _answers(document, worst)
    strength = "" if worst.strength is None else f", strength {worst.strength:.3f}"
    kind = f", {named_kind(worst)}" if named_kind(worst) else ""
    harm = f", {worst.harm.replace('-', ' ')}" if worst.harm else ""
    lines += [
        f"  cause: {cause_of(worst)}{kind}{harm}{strength};"
        f" distance to the seed: L2 {worst.distortion.l2:.0f}",
        f"  {input_words(document.pair).one}: {path / worst.image}",
        f"all of them: edgeflare report {path}",
    ]
    return "\n".join(lines)


def _answers(document: RunDocument, entry: Finding) -> list[str]:
    """Return a line for what each arm decided, or one for how far their values are apart."""
    from edgeflare.report.entry_words import (  # noqa: PLC0415
        decided,
        decisions,
        edited_words,
        how_far_apart,
        is_structured,
        measured,
    )

    apart = how_far_apart(document, entry)
    if apart is not None or (measured(entry) is not None and not is_structured(entry)):
        return [f"  {decisions(document, entry)}"]
    lines = []
    for arm, label in entry.labels.items():
        said = f"no answer ({entry.kind})" if label is None else decided(document, entry, arm)
        given = entry.probabilities.get(arm)
        if label is not None and given:
            name = said if document.classes else f"class {label}"
            said = f"{name} ({given[label]:.1%})"
        lines.append(f"  {arm:<9} {said}")
    edits = edited_words(document, entry)
    return lines if edits is None else [*lines, f"  edit distance {edits}"]
