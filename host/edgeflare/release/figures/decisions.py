"""How a device decides on the inputs of a check, beside the other arms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from edgeflare.core.query import Arm
from edgeflare.pages.answers.answer_forms import RecordedAnswer
from edgeflare.record.json_types import Count, Share
from edgeflare.run.systematic.figures import SystematicDifferences

SHOWN: Final = 3
"""Changed inputs that are looked at first, whose answers are kept to be drawn."""


class DecisionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How a device decides on inputs as they come, beside the other arms.

    Attributes:
        device: name of the device.
        inputs: how many were asked.
        failed: inputs without an answer, by arm and kind of failure; "nan" where outputs are not
            finite. Arms that answered all are left out.
        begins: operator in which outputs begin not to be finite, in words; empty where none does.
        labelled: number of inputs of which is known what is right.
        right: labelled inputs that an arm gets right, by arm; empty where none is labelled.
        changes: changed decisions, from the reference to the device.
        by_file: changed decisions, from the original to the twin; null without an original.
        measure: what `distance` is, in words; empty where being right says it all.
        distance: mean distance from what is right, by arm.
        pooled_measure: what `pooled` is, in words; empty where the task has no such measure.
        pooled: measure of all answers together, such as mean average precision, by arm.
        losses: the classes that the device gives less often, but where labels say that the
            reference gave them too often.
        systematic: what differs in the same way on many of them; null where nothing does.
        changed_inputs: those that are looked into, the strongest of the harmed first.

    """

    device: str
    inputs: Count
    failed: Mapping[Arm, Mapping[str, Count]]
    begins: str
    labelled: Count
    right: Mapping[Arm, Count]
    changes: DecisionChanges
    by_file: DecisionChanges | None
    measure: str
    distance: Mapping[Arm, float]
    pooled_measure: str
    pooled: Mapping[Arm, float]
    losses: tuple[ClassLoss, ...]
    systematic: SystematicDifferences | None
    changed_inputs: tuple[ChangedInput, ...]

    def accuracy(self, arm: Arm) -> float:
        """Return the share of labelled inputs, of which there are some, that an arm gets right."""
        return self.right[arm] / self.labelled

    def failures(self, *arms: Arm) -> int:
        """Return on how many inputs the arm of some that fails most has no answer."""
        return max((sum(self.failed.get(arm, {}).values()) for arm in arms), default=0)


class DecisionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """How one arm decides otherwise than another one.

    Attributes:
        inputs: number of inputs that both were asked about.
        changed: those that the second decides otherwise.
        by_tie: those of them by a tie.
        harmed: those that the first alone gets right.
        helped: those that the second alone gets right.

    """

    inputs: Count
    changed: Count
    by_tie: Count
    harmed: Count
    helped: Count

    @property
    def strictly(self) -> int:
        """How many decisions changed without a tie."""
        return self.changed - self.by_tie

    @property
    def net(self) -> int:
        """How many more inputs are harmed than helped."""
        return self.harmed - self.helped

    @property
    def how_bad(self) -> tuple[int, int]:
        """What tells the worse of two: the net harm, and where that is equal what changed."""
        return self.net, self.changed


class ClassLoss(msgspec.Struct, frozen=True, kw_only=True):
    """A class that the device gives significantly less often than the reference, and not rightly.

    Attributes:
        name: the class; with the head before it, of a model with several.
        inputs: number of inputs that the reference gives the class to.
        left: those in which it has fewer places on the device.
        came: those in which it has more.
        p_corrected: p-value of a sign test of left against came, Holm-corrected for all classes.
        harmed_elsewhere: inputs that the reference takes for another class, and alone gets right.
        helped_elsewhere: likewise those that the device alone gets right.

    """

    name: str
    inputs: Count
    left: Count
    came: Count
    p_corrected: Share
    harmed_elsewhere: Count = 0
    helped_elsewhere: Count = 0

    @property
    def share(self) -> float:
        """The share of the class that is lost."""
        return min(1.0, (self.left - self.came) / max(1, self.inputs, self.left))


class ChangedInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input on which the device decides otherwise than the reference.

    Attributes:
        seed_id: id of the input.
        name: name of the input's file, or the input's position in an `.npz`.
        said: what each arm answered, in words.
        right: what is right, in words; empty where that is not known.
        strength: how confidently the two differ; null where an arm failed.
        file: path of the input in the folder of the check; empty where inputs are not kept.
        answers: how the answers are shown, one for each head, of the first whose inputs are kept;
            empty where `said` says it all.

    """

    seed_id: Count
    name: str
    said: Mapping[Arm, str]
    right: str
    strength: float | None
    file: str = ""
    answers: tuple[RecordedAnswer, ...] = ()

    @property
    def change(self) -> str:
        """How the decision changed, from the reference to the device, in words."""
        return f"{self.said.get(Arm.ORIGINAL, self.said[Arm.TWIN])} → {self.said[Arm.DEVICE]}"

    @property
    def by_kernels(self) -> bool:
        """Whether the host decides on the compressed model as the original does."""
        return self.said.get(Arm.ORIGINAL) == self.said[Arm.TWIN]
