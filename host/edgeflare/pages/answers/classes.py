"""Probabilities of classes: of a classifier, or of one head of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from edgeflare.core.answer import Answer
from edgeflare.pages.answers.answer_form import (
    AnswerBlock,
    AnsweredInput,
    AnswerForm,
    AnswerWords,
    class_name,
    in_order,
)
from edgeflare.record.json_types import Count

TOP = 5
"""Classes of each arm that are shown."""

LEAST = 0.0005
"""A probability below it reads as 0.0 %."""


class ClassesView(AnswerForm, frozen=True, tag_field="form", tag="classes"):
    """The probabilities that arms give classes; of a model with several heads, those of one.

    Attributes:
        classes: names of the classes; empty where they are numbered.
        probabilities: probability of each class, by arm.
        decisions: decision by arm; null where the arm failed.

    """

    task: ClassVar[str] = "classification"
    spoken: ClassVar[AnswerWords] = AnswerWords()

    classes: tuple[str, ...]
    probabilities: Mapping[str, tuple[float, ...]]
    decisions: Mapping[str, Count | None]

    def wrong(self, place: str) -> Iterator[str]:
        """Yield decisions on classes that have no probability."""
        for arm, label in self.decisions.items():
            classes = len(self.probabilities.get(arm, ()))
            if label is not None and label >= classes:
                yield f"{place}.decisions.{arm} is {label}, but {arm} has {classes} probabilities"

    def decision(self, arm: str) -> str:
        """Return the name of an arm's class."""
        return class_name(self.classes, self.decisions.get(arm))

    def block(self, shown: AnsweredInput) -> ClassTable | None:  # noqa: ARG002
        """Return the classes that matter, and what each arm gives them; None without answers."""
        arms = tuple(arm for arm in in_order(self.probabilities) if self.probabilities[arm])
        given = [self.probabilities[arm] for arm in arms]
        labels = {
            label
            for probabilities in given
            for label in sorted(range(len(probabilities)), key=lambda n: -probabilities[n])[:TOP]
            if probabilities[label] >= LEAST
        } | {label for arm in arms if (label := self.decisions.get(arm)) is not None}
        rows = tuple(
            ClassRow(
                class_name(self.classes, label),
                tuple(
                    ClassCell(100 * probabilities[label], self.decisions.get(arm) == label)
                    for arm, probabilities in zip(arms, given, strict=True)
                ),
            )
            for label in sorted(labels, key=lambda n: -max(p[n] for p in given))
        )
        return ClassTable(self.head, arms, rows) if rows else None


def classes_view(head: str, answers: Mapping[str, Answer]) -> ClassesView:
    """Return the probabilities and decisions of one head, by arm."""
    return ClassesView(
        head,
        (),
        {
            arm: () if answer.failure else tuple(round(p, 9) for p in answer.probabilities.tolist())
            for arm, answer in answers.items()
        },
        {arm: answer.decision for arm, answer in answers.items()},
    )


class ClassCell(msgspec.Struct, frozen=True):
    """What an arm gives a class: its probability in percent, and whether that is its decision."""

    percent: float
    top: bool


class ClassRow(msgspec.Struct, frozen=True):
    """A class, and what each arm gives it."""

    name: str
    cells: tuple[ClassCell, ...]


class ClassTable(AnswerBlock, msgspec.Struct, frozen=True):
    """The probabilities of classes as a table.

    Attributes:
        head: output of the model; empty where it has only one.
        arms: the arms that answered, the columns of `rows`.
        rows: the classes that are among the first five of an arm and not all but impossible, the
            likeliest first.

    """

    template: ClassVar[str] = "answers/classes.html.j2"
    head: str
    arms: tuple[str, ...]
    rows: tuple[ClassRow, ...]
