"""A cause: why a model may not ship, the rule that found it, and what the rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from edgeflare.core.query import Arm
from edgeflare.pages.facts import count_of
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.device_figures import DeviceFigures
from edgeflare.release.figures.file import FaultKind, FileFault
from edgeflare.release.gates import CheckGate

Rule = Literal[
    "data",
    "failures",
    "file",
    "stages",
    "kernels",
    "order",
    "preprocessing",
    "range",
    "layer",
    "class",
    "one-sided",
    "field",
    "accuracy",
    "changes",
    "gate",
]
"""What a cause is, by the rule that found it."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a model may not ship, or why nothing can be said.

    Attributes:
        rule: rule that found it.
        sentence: what is wrong, a sentence without its full stop.
        evidence: what shows it, with the measurement that would refute it, likewise.
        next_step: what to do about it, likewise.

    """

    rule: Rule
    sentence: str
    evidence: str
    next_step: str


UNDECIDED: Final[frozenset[Rule]] = frozenset({"data", "changes"})
"""Rules by which nothing can be said of the model, for good or for ill."""

OF_THE_FILE: Final[frozenset[Rule]] = frozenset(
    {"file", "range", "layer", "class", "one-sided", "field", "accuracy", "gate"}
)
"""Rules by which the numbers in the compressed file are to blame, so that others may mend it."""


@dataclass(frozen=True, slots=True)
class KnownToRules:
    """What the rules look at.

    Attributes:
        figures: what was measured.
        gates: how each gate ended.
        faults: faults of the file that count.

    """

    figures: CheckFigures
    gates: tuple[CheckGate, ...]
    faults: tuple[FileFault, ...]

    def fails(self, name: str, device: DeviceFigures | None = None) -> bool:
        """Whether a gate fails, on a device."""
        where = "" if device is None else device.decisions.device
        return any(
            gate.name == name and gate.device == where and gate.state == "fail"
            for gate in self.gates
        )

    def fails_anywhere(self, name: str) -> bool:
        """Whether a gate fails on some device."""
        return any(gate.name == name and gate.state == "fail" for gate in self.gates)

    def limit(self, name: str) -> float | None:
        """Return the limit of a gate; None where nothing is held to it."""
        return next((gate.limit for gate in self.gates if gate.name == name), None)

    def of_kinds(self, *kinds: FaultKind) -> Iterator[FileFault]:
        """Yield the faults of some kinds."""
        return (fault for fault in self.faults if fault.kind in kinds)


def capitalized(words: str) -> str:
    """Return words as a sentence begins; their other capitals stay."""
    return words[:1].upper() + words[1:]


def outcome(device: DeviceFigures) -> str:
    """Return what the decisions come to on a device, beside the reference."""
    its = device.decisions
    if its.labelled and Arm.ORIGINAL in its.right:
        first, here = its.accuracy(Arm.ORIGINAL), its.accuracy(Arm.DEVICE)
        return (
            f"right on {here:.1%} of {count_of(its.labelled, 'input')} on {its.device} instead of"
            f" {first:.1%}"
        )
    whose = "the twin's" if its.by_file is None else "the original's"
    return (
        f"{its.changes.changed} of {count_of(its.inputs, 'decision')} on {its.device} are others"
        f" than {whose}"
    )


def layers_seen(figures: CheckFigures) -> bool:
    """Whether the layers of the file were held against the original's, some of them at least."""
    return figures.layers is not None and figures.layers.matched > 0


AGREES: Final = 0.7
"""Agreement from which on another order of classes or labels explains what is wrong: one that is
found for a few classes of a model at chance, or of another network, does not."""
