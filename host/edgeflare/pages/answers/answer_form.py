"""What a form of answers owes to whatever shows a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import msgspec

from edgeflare.core.query import Arm
from edgeflare.core.views import AnswerView

if TYPE_CHECKING:
    from typing_extensions import Self

ARMS = tuple(arm.value for arm in Arm)

SIDE = 224
"""Pixels of a picture's longer side, at most."""

LARGEST_CLASS = 2**31 - 1
"""A class fits the integers that masks are drawn from."""

Cell = str | int | float | None
"""A value of `findings.csv`."""


class AnswerWords(msgspec.Struct, frozen=True):
    """Words for the answers of a task.

    Attributes:
        differ: what two arms do on a deviating input.
        strongest: the order of the entries with the strongest deviation first.
        strength: what a strength is, to go on with "Strength is".
        decision: what a decision is, as the heading of a choice; not used of answers with
            structure, whose decisions have no names.

    """

    differ: str = "decide differently"
    strongest: str = "the strongest first"
    strength: str = "how confidently the two sides disagree, from 0 to 1"
    decision: str = "Class"


class AnsweredInput(msgspec.Struct, frozen=True):
    """The input that answers are of, as a card shows it beside them.

    Attributes:
        what: "seed" or "trigger", or "input" of one as it came.
        compared: the two arms that the run compares.
        picture: the input as a `data:` address, where it is an image that is there.
        width: width of that picture, in pixels.
        height: height of that picture, in pixels.
        most: the bytes that a picture of the answers may weigh.

    """

    what: str
    compared: tuple[str, str]
    picture: str | None
    width: int
    height: int
    most: int


class DrawnBox(msgspec.Struct, frozen=True):
    """A box upon a picture; lengths in percent of its width and height, as SVG reads them.

    Attributes:
        arm: arm that detected the object, which chooses colour and dashes.
        x: horizontal place of the left edge.
        y: vertical place of the top edge.
        width: width of the box.
        height: height of the box.
        number: number of the object in its table; empty where it does not differ.
        title: what it is.

    """

    arm: str
    x: str
    y: str
    width: str
    height: str
    number: str
    title: str


class DrawnPoint(msgspec.Struct, frozen=True):
    """A point upon a picture; lengths in percent of its width and height, as SVG reads them.

    Attributes:
        arm: arm that gave the point, which chooses colour and dashes.
        x: horizontal place of the centre.
        y: vertical place of the centre.
        number: number of the point in its table; empty where it does not differ.
        title: what it is.

    """

    arm: str
    x: str
    y: str
    number: str
    title: str


class AnswerBlock:
    """The answers of one head as a card shows them: what the macro `block` of its template takes.

    Attributes:
        template: the file of the macro.
        below_player: whether it stands below the player of a sound, where the input is one.

    """

    template: ClassVar[str]
    below_player: ClassVar[bool] = False

    def drawn(self) -> tuple[DrawnBox, ...]:
        """Return the boxes that are drawn upon the picture of the input, where it is one."""
        return ()

    def drawn_points(self) -> tuple[DrawnPoint, ...]:
        """Return the points that are drawn upon it likewise."""
        return ()


class AnswerForm(AnswerView, frozen=True):
    """A form of answers. Where a method says nothing else, a form need not have it.

    Attributes:
        task: the name of the task that has such answers.
        spoken: the words for them.
        structured: whether its decisions have no names: their numbers mean nothing elsewhere.
        measures: whether it says how far the two compared arms are apart, and
            `table_columns` stand in a table of entries instead of what each arm decided.
        table_columns: columns of a table of entries, instead of those of the arms or behind them.
        csv_columns: columns of `findings.csv`, behind those of the arms.

    """

    task: ClassVar[str]
    spoken: ClassVar[AnswerWords]
    structured: ClassVar[bool] = False
    measures: ClassVar[bool] = False
    table_columns: ClassVar[tuple[str, ...]] = ()
    csv_columns: ClassVar[tuple[str, ...]] = ()

    def wrong(self, place: str) -> Iterator[str]:  # noqa: ARG002
        """Yield what contradicts itself, with its place, or is larger than any answer.

        Args:
            place: place in the document.

        """
        yield from ()

    def opened(self) -> AnswerForm:
        """Return the view in its own form, in which those of other packages are not kept."""
        return self

    def with_classes(self, classes: Sequence[str]) -> Self:  # noqa: ARG002
        """Return the view with the names of classes that the pair has, where it has none."""
        return self

    def decision(self, arm: str) -> str:
        """Return what an arm that gave an answer decided."""
        raise NotImplementedError

    def gist(self, arm: str) -> str:
        """Return what an arm that gave an answer decided, without scores."""
        return self.decision(arm)

    def score(self, arm: str) -> float | None:  # noqa: ARG002
        """Return the score behind an arm's decision, where it is one number."""
        return None

    def apart(self, compared: tuple[str, str]) -> str | None:  # noqa: ARG002
        """Return how far the compared arms are apart; None where that is not known."""
        return None

    @property
    def farness(self) -> float:
        """How far the compared arms are apart beside other views of this form."""
        return 0.0

    @property
    def title(self) -> str | None:
        """How far the compared arms are apart, as the title of a card; None where decisions are."""
        return None

    @property
    def tolerance_words(self) -> str:
        """What is tolerated, for the title of a table of entries."""
        return ""

    def edits(self, compared: tuple[str, str]) -> int | None:  # noqa: ARG002
        """Return the edit distance of the compared arms' texts; None where it is not known."""
        return None

    def cell(self, column: str) -> str:
        """Return what one of `table_columns` says."""
        raise NotImplementedError

    def csv_cells(self) -> Mapping[str, Cell]:
        """Return the values of `csv_columns`, as far as they are known: the fields of this name."""
        return {column: getattr(self, column) for column in self.csv_columns}

    @property
    def pictures(self) -> int:
        """How many pictures its block has."""
        return 0

    def block(self, shown: AnsweredInput) -> AnswerBlock | None:
        """Return the answers as a card shows them; None where there is nothing to show.

        Args:
            shown: the input that they are of.

        """
        raise NotImplementedError


def class_name(classes: Sequence[str], label: int | None) -> str:
    """Return the name of a class, or its number where it has none; a dash where there is no label.

    Args:
        classes: the names of a document's classes, perhaps empty.
        label: the class.

    """
    if label is None:
        return "–"
    return classes[label] if 0 <= label < len(classes) else str(label)


def in_order(by_arm: Mapping[str, object]) -> list[str]:
    """Return the arms that a mapping has, in their order."""
    return [arm for arm in ARMS if arm in by_arm]
