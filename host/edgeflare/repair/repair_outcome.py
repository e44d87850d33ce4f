"""What came of a repair: the candidates that were tried, and the one that was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgeflare.repair.judging.judgement import Figures, Judgement
from edgeflare.repair.judging.shown_inputs import ShownInput
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_cost import Cost


@dataclass(frozen=True, slots=True)
class TriedCandidate:
    """A candidate that was tried.

    Attributes:
        name: of the candidate; of its plan where that made none.
        seconds: that it took to make it; of candidates made together their equal share.
        size: of its file in bytes; None where it could not be made.
        ratio: of its time for an inference to that of the model before, on the device where that
            is greatest; 1 where it has the same operators, None where it was not measured.
        costs: as measured on each device; none where it was not.
        judgement: on the inputs to choose by; None where it cannot be judged.
        set_aside: why it may not be chosen; None where it may.
        needs: the limits that it exceeds, each with what it needs, as options; it is judged to say
            what more cost would give.
        unmade: whether it cannot be made of these models and inputs.
        details: what its method says of it, as plain JSON values by section.

    """

    name: str
    seconds: float
    size: int | None
    ratio: float | None = None
    costs: tuple[Cost, ...] = ()
    judgement: Judgement | None = None
    set_aside: str | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    unmade: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OfferedCandidate:
    """What more cost than the limits allow would give: the best candidate beyond them.

    Attributes:
        tried: what came of it.
        judgement: on the inputs that judge and on fresh ones.

    """

    tried: TriedCandidate
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class OnDevice:
    """The repaired model and the one before on a device, on the inputs that judge.

    Attributes:
        device: its name.
        before: figures of the model before, by the name of the set.
        after: those of the repaired model.
        same_labels: inputs on which the device gives the label that the host foretold.
        asked: inputs of all sets together.

    """

    device: str
    before: Mapping[str, Figures]
    after: Mapping[str, Figures]
    same_labels: int
    asked: int


@dataclass(frozen=True, slots=True)
class RepairOutcome:
    """The outcome of a repair.

    Attributes:
        seeds: how many seeds fit, choose and judge.
        provenance: name and provenance of each device, as plain JSON values.
        residual: the blocks of the model as it came and the error that each adds itself, see
            `residual`; None where the original has no weights to compare with.
        tried: all candidates, in the order in which they were tried.
        chosen: the best of them within the limits; None where none surely gains.
        why: the reason, as a sentence without its full stop.
        written: whether the chosen one is to be written.
        judgement: of the chosen one, on the inputs that judge and on fresh ones.
        shown: inputs that judge and that the chosen one mends or breaks.
        devices: the chosen one on each device.
        cost: of the chosen one, on the first device.
        offered: the best one beyond the limits; None where none surely gains more than the chosen.

    """

    seeds: Mapping[str, int]
    provenance: Sequence[Mapping[str, Any]]
    residual: Mapping[str, Any] | None
    tried: Sequence[TriedCandidate]
    chosen: RepairCandidate | None
    why: str
    written: bool = False
    judgement: Judgement | None = None
    shown: Sequence[ShownInput] = ()
    devices: Sequence[OnDevice] = ()
    cost: Cost | None = None
    offered: OfferedCandidate | None = None
