"""What the inputs of a check allow to say."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgeflare.core.query import Arm
from edgeflare.record.json_types import Count, CountFromOne, Share
from edgeflare.run.systematic.figures import OtherOrder


class DataFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the inputs allow to say.

    Attributes:
        source: the last part of the path that they are from.
        inputs: how many all arms were asked about.
        available: how many there are.
        labelled: number of inputs of which is known what is right.
        reference: the arm that the device is held against.
        right: labelled ones that the reference gets right; null where none is labelled.
        different: how many of the inputs are different ones; a repeated one says nothing new.
        classes: how many classes occur among the labels; null where there are none.
        task_classes: how many classes the task has; null where there are none.
        guessing_accuracy: the share that it would get right if its decisions had nothing to do with
            the inputs, but were as frequent; null where decisions are not counted.
        commonest_share: the share of the inputs that get the commonest decision of that arm; null
            where decisions are not counted.
        guessed: what was assumed of how inputs are prepared and may well be wrong, a sentence;
            empty where nothing was.
        label_order: the order in which the labels have the classes; null where it is the models'.
        other_reading: a preprocessing with which that arm is right clearly more often; null where
            none was found, or none was tried.

    """

    source: str
    inputs: Count
    available: CountFromOne
    labelled: Count
    reference: Arm
    right: Count | None = None
    different: Count | None = None
    classes: Count | None = None
    task_classes: Count | None = None
    guessing_accuracy: Share | None = None
    commonest_share: Share | None = None
    guessed: str = ""
    label_order: OtherOrder | None = None
    other_reading: OtherReading | None = None


class OtherReading(msgspec.Struct, frozen=True, kw_only=True):
    """Another way to read images, with which a model answers clearly better.

    Attributes:
        description: how they are read, such as "read with its channels in reverse order".
        against: what the answers are held against: labels, or what another arm answers.
        inputs: on how many inputs it was tried.
        before: on how many of them the answer is as it should be with the pair's preprocessing.
        after: on how many with this one.

    """

    description: str
    against: Literal["labels", "original", "device"]
    inputs: CountFromOne
    before: Count
    after: Count

    def in_words(self) -> str:
        """Return how much better the answers are, a sentence without its full stop."""
        whose = "right" if self.against == "labels" else "as the original"
        return f"{self.description}, its answers are {whose} on {self.how_often}"

    @property
    def how_often(self) -> str:
        """How often the answers are as they should be, and how often with the pair's preprocessing.

        Such as "97% of 64 inputs instead of 47%".
        """
        before, after = self.before / self.inputs, self.after / self.inputs
        return f"{after:.0%} of {self.inputs} inputs instead of {before:.0%}"
