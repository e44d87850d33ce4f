"""One entry of a run as a card of the page: what it shows, ready to be written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from edgeflare.report.entry_names import ARMS, class_name, decisions, seed_of, sort
from edgeflare.report.html.divergence_plot import Divergence, divergence_of
from edgeflare.report.html.explanation_view import ExplanationView
from edgeflare.report.html.pictures import Picture, pictures_of
from edgeflare.run.harm import rank
from edgeflare.run.nearness import counts
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument

TOP = 5

LEAST = 0.0005
"""A probability below it reads as 0.0 %."""


@dataclass(frozen=True, slots=True)
class CardCell:
    """What an arm gives a class: its probability in percent, and whether that is its decision."""

    percent: float
    top: bool


@dataclass(frozen=True, slots=True)
class CardRow:
    """A class, and what each arm gives it."""

    name: str
    cells: tuple[CardCell, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """An entry, as its card shows it.

    Attributes:
        entry: the entry of the document.
        sort: its cause, or its kind.
        harm: who was right, "original right"; None where that is not known.
        rank: its place by harm, from 0.
        counts: whether it is as near and as strong as was asked for.
        seed: its seed's id, and the name of the file where it has one of its own.
        title: the decisions of the compared arms, "Sneaker → Sandal".
        words: who decided what.
        seed_class: the name of the seed's own label, or None.
        labels: the classes that an arm decided on.
        arms: the arms that answered, the columns of `rows`.
        rows: the classes that are among the first five of an arm and not all but impossible, the
            likeliest first.
        operators: those applied, in order, repetitions counted.
        pictures: its pictures.
        explanation: why it deviates, where that was looked for.
        divergence: the plot of that.

    """

    entry: Finding
    sort: str
    harm: str | None
    rank: int
    counts: bool
    seed: str
    title: str
    words: str
    seed_class: str | None
    labels: tuple[int, ...]
    arms: tuple[str, ...]
    rows: tuple[CardRow, ...]
    operators: tuple[str, ...]
    pictures: tuple[Picture, ...]
    explanation: ExplanationView | None
    divergence: Divergence | None


def make_card(
    document: RunDocument,
    entry: Finding,
    directory: RunDirectory,
    most: int,
    explanation: ExplanationView | None = None,
) -> Card:
    """Make the card of an entry.

    Args:
        document: the run.
        entry: a finding, or another entry of the document.
        directory: where its images are.
        most: the bytes that each of its pictures may weigh.
        explanation: why it deviates, where that was looked for.

    """
    classes = document.classes
    arms = tuple(arm for arm in ARMS if entry.probabilities.get(arm))
    return Card(
        entry=entry,
        sort=sort(entry),
        harm=entry.harm.replace("-", " ") if entry.harm else None,
        rank=rank(entry),
        counts=counts(entry),
        seed=seed_of(entry),
        title=_title(document, entry),
        words=decisions(entry, classes),
        seed_class=(None if entry.seed_label is None else class_name(classes, entry.seed_label)),
        labels=tuple(sorted({label for label in entry.labels.values() if label is not None})),
        arms=arms,
        rows=_rows(entry, arms, classes),
        operators=_counted(entry.operators),
        pictures=pictures_of(directory, entry, most),
        explanation=explanation,
        divergence=None if explanation is None else divergence_of(explanation),
    )


def _title(document: RunDocument, entry: Finding) -> str:
    """Return what the two compared arms decided."""
    if not entry.labels:
        return str(entry.kind)
    first = "twin" if document.find == "kernel" else "original"
    decided = [entry.labels.get(arm) for arm in (first, "device")]
    return " → ".join(
        entry.kind if label is None else class_name(document.classes, label) for label in decided
    )


def _rows(entry: Finding, arms: Sequence[str], classes: Sequence[str]) -> tuple[CardRow, ...]:
    given = [entry.probabilities[arm] for arm in arms]
    shown = {
        label
        for probabilities in given
        for label in sorted(range(len(probabilities)), key=lambda n: -probabilities[n])[:TOP]
        if probabilities[label] >= LEAST
    } | {label for arm in arms if (label := entry.labels.get(arm)) is not None}
    return tuple(
        CardRow(
            class_name(classes, label),
            tuple(
                CardCell(100 * probabilities[label], entry.labels.get(arm) == label)
                for arm, probabilities in zip(arms, given, strict=True)
            ),
        )
        for label in sorted(shown, key=lambda n: -max(p[n] for p in given))
    )


def _counted(operators: Sequence[str]) -> tuple[str, ...]:
    """Join repetitions: a, a, b becomes "a ×2", "b"."""
    runs = ((name, len(list(group))) for name, group in groupby(operators))
    return tuple(name if times == 1 else f"{name} ×{times}" for name, times in runs)
