"""The rows of a run's journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edgeflare.core.arm import Arm

REPETITIONS = 3
"""How often a finding is evaluated again before it counts: once could be chance; three times in
three different batches hardly is."""

Role = Literal["seed", "step", "refine", "verify", "canary", "test"]
Ended = Literal["finding", "max-queries", "total-queries", "time-limit", "gave-up"]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What the arms answered about one input, as raw as they gave it.

    Attributes:
        role: what the input was.
        seed_id: the chain's seed.
        n: its number in that role; see the table in `journal`.
        image_crc32: CRC-32 of the input's bytes.
        original: raw output vector in the model's dtype, or None if the arm was not asked.
        twin: the same of the twin.
        device: the same of the device.
        members: raw output vectors of the members of the twin's ensemble, one behind the other.
        failures: why an arm or a member has no answer, by its name.
        seconds: this input's share of the evaluation time.

    """

    role: Role
    seed_id: int
    n: int
    image_crc32: int
    original: bytes | None
    twin: bytes | None
    device: bytes | None
    members: bytes | None
    failures: Mapping[str, str]
    seconds: float

    @property
    def again(self) -> bool:
        """Whether the device alone was asked, about an input that the host had answered before."""
        return self.original is None and self.twin is None and self.members is None

    def raw(self, arm: Arm) -> bytes | None:
        """Return the raw output vector of an arm."""
        if arm is Arm.ORIGINAL:
            return self.original
        return self.twin if arm is Arm.TWIN else self.device


@dataclass(frozen=True, slots=True)
class ChainRow:
    """What a chain spent, and how it ended; member evaluations are those of each member.

    `host_gradients` and `translated_evaluations` count white-box queries, which are no queries.
    """

    seed_id: int
    ended: Ended
    queries: int
    device_queries: int
    original_evaluations: int
    twin_evaluations: int
    member_evaluations: int
    ties: int
    seconds: float
    host_gradients: int = 0
    translated_evaluations: int = 0

    @classmethod
    def nothing_spent(cls, seed_id: int) -> ChainRow:
        """Return a chain that led to a finding and spent nothing: of what was found elsewhere."""
        return cls(
            seed_id=seed_id,
            ended="finding",
            queries=0,
            device_queries=0,
            original_evaluations=0,
            twin_evaluations=0,
            member_evaluations=0,
            ties=0,
            seconds=0.0,
        )


def white_box_spent(chains: Iterable[ChainRow]) -> Mapping[str, Any]:
    """Return what white-box queries cost, as the document has it; nothing where there was none."""
    rows = list(chains)
    spent = {
        "host_gradients": sum(row.host_gradients for row in rows),
        "translated_evaluations": sum(row.translated_evaluations for row in rows),
    }
    return spent if any(spent.values()) else {}


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """A stored triggering input.

    Attributes:
        seed_id: the seed that it came from.
        kind: the kind of finding.
        operators: names of the mutation operators applied, in order.
        image: path of the input, relative to the run directory.
        sha256: of that file.
        seed_image: path of the seed's image, relative to the run directory.
        l2: Euclidean distance to the seed, in levels.
        linf: largest change of a value, in levels.
        mean_abs: mean absolute change of a value, in levels.
        changed: number of cells that differ from the seed's.
        nearness_db: to the seed, as the domain measures it; None in older journals.

    """

    seed_id: int
    kind: str
    operators: tuple[str, ...]
    image: str
    sha256: str
    seed_image: str
    l2: float
    linf: float
    mean_abs: float
    changed: int
    nearness_db: float | None = None


@dataclass(frozen=True, slots=True)
class RefinementRow:
    """What refining a finding cost, and what the finding was before.

    Attributes:
        seed_id: the seed that it came from.
        queries: inputs evaluated.
        device_queries: those of them that the device answered.
        original_evaluations: invocations of the original.
        twin_evaluations: invocations of the twin.
        member_evaluations: invocations of each member of the twin's ensemble.
        strength: before; None where the finding did not show again.
        image: path of the input as the search found it, relative to the run directory.
        l2: of that input, as for the finding; likewise linf, mean_abs and changed.

    """

    seed_id: int
    queries: int
    device_queries: int
    original_evaluations: int
    twin_evaluations: int
    member_evaluations: int
    strength: float | None
    image: str
    l2: float
    linf: float
    mean_abs: float
    changed: int


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, as DESIGN and the run schema define them."""

    setup: float = 0.0
    wall: float = 0.0
    refine: float = 0.0
    verify: float = 0.0
    device_busy: float = 0.0
