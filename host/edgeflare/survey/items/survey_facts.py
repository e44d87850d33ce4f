"""What is known of the items of a survey, of all by the host, of some by the device; its measures.

A survey measures rates of deviations and of wrong decisions, as facts about items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from edgeflare.run.seed_ids import device_of

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]

UNCHANGED = "unchanged"
"""The condition of inputs as they are; its severity is 0."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A condition at a severity from 1 to 5, or the inputs unchanged, with severity 0."""

    condition: str
    severity: int


@dataclass(frozen=True, slots=True)
class SurveyFacts:
    """What is known of the items of a survey.

    An item is an input in a cell. All arrays are (items,), and item `i` is input `i % inputs` in
    cell `i // inputs`. f, h, g are original, twin and device. What the device answered is False, or
    NaN, where it was not asked.

    Attributes:
        cells: what is surveyed; the first is always the inputs unchanged.
        inputs: how many there are.
        has_original: whether there is an original; without it only kernels are judged.
        labelled: whether the label or the target of the item's input is known.
        classes: the class of the item's input: its label, else what the original, or the twin where
            there is none, decides about it unchanged; -1 where decisions have no numbers, since
            they are not counted or too many.
        groups: the group of the item's input, an index into `group_names`; -1 without groups.
        group_names: names of the groups.
        devices: names of the devices; see `device`.
        compression: f and h decide differently.
        compression_tied: `compression` hangs on a tie.
        original_right, twin_right: f, h decide as that says; False where it is unknown.
        margin: how far h is from deciding otherwise, in scores; 0 is a tie.
        doubtful: a member of the twin's ensemble decides differently from it, or has a tie.
        asked: the device was asked.
        deviates: f and g decide differently, or g failed.
        deviates_tied: `deviates` hangs on a tie.
        kernel: h and g decide differently, or g failed and h did not fail likewise.
        kernel_tied: `kernel` hangs on a tie.
        device_right: g decides as the label or the target says.
        failed: g crashed, hung, or gave invalid outputs.
        strength: strength of the deviation of f and g (h and g without an original); NaN elsewhere.
        twin_distance, device_distance: how far h, g are from f (g from h without an original), as
            the task measures it; None for tasks whose answers are classes.
        distance_noun: what that distance is called.
        original_truth_distance, twin_truth_distance, device_truth_distance: how far f, h, g are
            from the target, NaN where that cannot be said; None without targets.
        truth_measure: what that distance is called.
        original_decision, twin_decision, device_decision: the class that f, h, g decide on; -1
            where an arm failed or was not asked. None for tasks whose decisions have no numbers;
            the original's without an original, too.

    """

    cells: tuple[Cell, ...]
    inputs: int
    has_original: bool
    labelled: Flags
    classes: Numbers
    groups: Numbers
    group_names: tuple[str, ...]
    compression: Flags
    compression_tied: Flags
    original_right: Flags
    twin_right: Flags
    margin: Floats
    doubtful: Flags
    asked: Flags
    deviates: Flags
    deviates_tied: Flags
    kernel: Flags
    kernel_tied: Flags
    device_right: Flags
    failed: Flags
    strength: Floats
    twin_distance: Floats | None = None
    device_distance: Floats | None = None
    distance_noun: str = ""
    original_truth_distance: Floats | None = None
    twin_truth_distance: Floats | None = None
    device_truth_distance: Floats | None = None
    truth_measure: str = ""
    original_decision: Numbers | None = None
    twin_decision: Numbers | None = None
    device_decision: Numbers | None = None
    devices: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.cells) * self.inputs

    @property
    def cell(self) -> Numbers:
        """The cell of each item, an index into `cells`: (items,)."""
        return np.repeat(np.arange(len(self.cells)), self.inputs)

    @property
    def input(self) -> Numbers:
        """The input of each item: (items,)."""
        return np.tile(np.arange(self.inputs), len(self.cells))

    @property
    def device(self) -> Numbers:
        """The device that each item is given to, an index into `devices`: (items,)."""
        devices = max(1, len(self.devices))
        of_inputs = [device_of(index, devices) for index in range(self.inputs)]
        return np.tile(np.array(of_inputs, np.int64), len(self.cells))


def deviation(facts: SurveyFacts) -> Fact:
    """Return where original and device decide differently, or the device failed."""
    return Fact(facts.compression, facts.deviates)


def deviation_strict(facts: SurveyFacts) -> Fact:
    """Return where original and device decide differently without a tie, or the device failed."""
    return Fact(facts.compression & ~facts.compression_tied, facts.deviates & ~facts.deviates_tied)


def kernel(facts: SurveyFacts) -> Fact:
    """Return where twin and device decide differently, or the device alone failed."""
    return Fact(np.zeros_like(facts.kernel), facts.kernel)


def kernel_strict(facts: SurveyFacts) -> Fact:
    """Return where twin and device decide differently without a tie, or the device alone failed."""
    return Fact(np.zeros_like(facts.kernel), facts.kernel & ~facts.kernel_tied)


def failure(facts: SurveyFacts) -> Fact:
    """Return where the device crashed, hung, or gave invalid outputs."""
    return Fact(np.zeros_like(facts.failed), facts.failed)


def harmed(facts: SurveyFacts) -> Fact:
    """Return where the host's arm decides as the label says, and the device does not.

    That arm is the original, and the twin where there is none. Items without a label are none.
    """
    right = facts.original_right if facts.has_original else facts.twin_right
    return Fact(right & ~facts.twin_right, right & facts.asked & ~facts.device_right, right)


def helped(facts: SurveyFacts) -> Fact:
    """Return where the device decides as the label says, and the host's arm does not.

    That arm is the original, and the twin where there is none. Items without a label are none.
    """
    right = facts.original_right if facts.has_original else facts.twin_right
    possible = facts.labelled & ~right
    return Fact(facts.twin_right & possible, facts.device_right & possible, possible)


def wrong(facts: SurveyFacts) -> Fact:
    """Return where the device decides otherwise than the label says; of labelled items."""
    return Fact(
        facts.labelled & ~facts.twin_right,
        facts.labelled & facts.asked & ~facts.device_right,
        facts.labelled,
    )


RATES: Mapping[str, Callable[[SurveyFacts], Fact]] = MappingProxyType(
    {
        "rate": deviation,
        "rate-strict": deviation_strict,
        "kernel-rate": kernel,
        "kernel-rate-strict": kernel_strict,
        "failure-rate": failure,
    }
)
"""Measures of the kind "rate", by the name that a gate has for each."""

ACCURACY_DROP = "accuracy-drop"
"""The accuracy of the original less that of the device, on labelled items."""


def headline(facts: SurveyFacts) -> Fact:
    """Return the fact whose rate a survey is about: deviations, or kernels without an original."""
    return deviation(facts) if facts.has_original else kernel(facts)


def surprises(facts: SurveyFacts) -> NDArray[np.bool_]:
    """Return the items asked about which the device said anything that the twin did not foretell.

    (items,) bool.
    """
    found = np.zeros_like(facts.asked)
    for fact in (
        deviation(facts),
        deviation_strict(facts),
        kernel(facts),
        wrong(facts),
    ):
        found |= facts.asked & (fact.foretold != fact.seen)
    return found


@dataclass(frozen=True, slots=True)
class Fact:
    """A question with yes or no about each item, that only the device can answer.

    Attributes:
        foretold: (items,) bool, what the host's arms say.
        seen: (items,) bool, what the device says; where it was not asked the value means nothing.
        possible: (items,) bool, where the answer may be yes; elsewhere nothing is foretold and
            nothing seen, whatever the device decides. None for all.

    """

    foretold: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    possible: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Which items the device was asked about.

    Attributes:
        stratum: (items,) int64; the items asked in a stratum are a simple random sample of it.
        asked: (items,) bool.

    """

    stratum: NDArray[np.int64]
    asked: NDArray[np.bool_]
