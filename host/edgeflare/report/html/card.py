"""One entry of a run as a card of the page: what it shows, ready to be written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from edgeflare.report.answer_words import (
    answer_views,
    decided,
    decision_name,
    decisions,
    distance_view,
)
from edgeflare.report.entry_names import class_name, seed_of, sort
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
        labels: the names of the classes that an arm decided on, by their numbers.
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
    labels: Mapping[int, str]
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
    return Card(
        entry=entry,
        sort=sort(entry),
        harm=entry.harm.replace("-", " ") if entry.harm else None,
        rank=rank(entry),
        counts=counts(entry),
        seed=seed_of(entry),
        title=_title(document, entry),
        words=decisions(document, entry),
        seed_class=_seed_class(document, entry),
        labels=_labels(document, entry),
        answers=answer_blocks(answer_views(document, entry)),
        operators=_counted(entry.operators),
        shots=shot_groups(stored_views(directory, entry, document.pair), allowance),
        explanation=explanation,
        divergence=None if explanation is None else divergence_of(explanation),
    )


def _title(document: RunDocument, entry: Finding) -> str:
    """Return what the two compared arms decided, or how far their values are apart."""
    if not entry.labels:
        return str(entry.kind)
    view = distance_view(entry)
    if view is not None and view.distance is not None:
        return f"{view.distance / view.tolerance:.4g} times the tolerance"
    first = "twin" if document.find == "kernel" else "original"
    return " → ".join(decided(document, entry, arm) for arm in (first, "device"))


def _seed_class(document: RunDocument, entry: Finding) -> str | None:
    """Return the name of the seed's label; None where there is none, or answers are values."""
    if entry.seed_label is None or distance_view(entry) is not None:
        return None
    return class_name(document.classes, entry.seed_label)


def _labels(document: RunDocument, entry: Finding) -> Mapping[int, str]:
    """Return the names of what an arm decided on, by number; of values none."""
    if distance_view(entry) is not None:
        return {}
    return {
        label: decision_name(document, entry, arm)
        for arm, label in sorted(entry.labels.items(), key=lambda one: one[1] or 0)
        if label is not None
    }


def _counted(operators: Sequence[str]) -> tuple[str, ...]:
    """Join repetitions: a, a, b becomes "a ×2", "b"."""
    runs = ((name, len(list(group))) for name, group in groupby(operators))
    return tuple(name if times == 1 else f"{name} ×{times}" for name, times in runs)
