"""One entry of a run as a card of the page: what it shows, ready to be written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from edgeflare.core.answer_view import AnswerView, ClassesView
from edgeflare.report.entry_names import class_name, decisions, seed_of, sort
from edgeflare.report.html.answer_blocks import AnswerBlock, answer_blocks
from edgeflare.report.html.divergence_plot import Divergence, divergence_of
from edgeflare.report.html.explanation_view import ExplanationView
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.report.html.shots import ShotGroup, shot_groups
from edgeflare.report.html.stored_views import stored_views
from edgeflare.run.harm import rank
from edgeflare.run.nearness import counts
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument


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
        answers: what the arms answered, a block for each head of the model.
        operators: those applied, in order, repetitions counted.
        shots: its inputs, a group for each of the model's.
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
    answers: tuple[AnswerBlock, ...]
    operators: tuple[str, ...]
    shots: tuple[ShotGroup, ...]
    explanation: ExplanationView | None
    divergence: Divergence | None


def make_card(
    document: RunDocument,
    entry: Finding,
    directory: RunDirectory,
    allowance: PageAllowance,
    explanation: ExplanationView | None = None,
) -> Card:
    """Make the card of an entry.

    Args:
        document: the run.
        entry: a finding, or another entry of the document.
        directory: where its inputs are.
        allowance: what its figures may weigh; what its sounds take is taken from it.
        explanation: why it deviates, where that was looked for.

    """
    classes = document.classes
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
        answers=answer_blocks(_answer_views(document, entry)),
        operators=_counted(entry.operators),
        shots=shot_groups(stored_views(directory, entry, document.pair), allowance),
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


def _answer_views(document: RunDocument, entry: Finding) -> tuple[AnswerView, ...]:
    """Return how the answers are shown that a document keeps of an entry: those of a classifier."""
    return (ClassesView("", document.classes, entry.probabilities, entry.labels),)


def _counted(operators: Sequence[str]) -> tuple[str, ...]:
    """Join repetitions: a, a, b becomes "a ×2", "b"."""
    runs = ((name, len(list(group))) for name, group in groupby(operators))
    return tuple(name if times == 1 else f"{name} ×{times}" for name, times in runs)
