"""What the arms answered to an entry of a run, in the words of the pair's task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgeflare.core.answer_view import (
    AnswerView,
    ClassesView,
    DetectionView,
    RegressionView,
    SegmentationView,
    ThresholdView,
    TranscriptView,
)
from edgeflare.report.entry_names import ARMS, class_name
from edgeflare.run.run_document import Finding, RunDocument


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """Words for the answers of a task.

    Attributes:
        differ: what two arms do on a deviating input.
        strongest: the order of the entries with the strongest deviation first.
        strength: what a strength is, to go on with "Strength is".
        scale: what the figure of a strength is held against.
        decision: what a decision is, as the heading of a choice.

    """

    differ: str = "decide differently"
    strongest: str = "the strongest first"
    strength: str = "how confidently the two sides disagree, from 0 to 1"
    scale: str = "of 1, the strength of a finding"
    decision: str = "Class"


_WORDS = {
    "classification": AnswerWords(),
    "threshold": AnswerWords(
        strength="the smaller distance of the two scores from the threshold, in interquartile"
        " ranges of the seeds' scores",
        scale="interquartile ranges, the strength of a finding",
        decision="Decision",
    ),
    "regression": AnswerWords(
        "differ by more than the tolerance",
        "the farthest apart first",
        "the distance of the two sides' values over the tolerance, less 1",
        "tolerances beyond the first, the strength of a finding",
    ),
}

_ANY_TASK = AnswerWords(
    strength="how confidently the two sides disagree",
    scale="the strength of a finding",
    decision="Decision",
)


def answer_words(pair: Mapping[str, Any]) -> AnswerWords:
    """Return the words for the answers of a run.

    Args:
        pair: that of the run's document; one without a task is of a classifier.

    """
    return _WORDS.get(str(pair.get("task", "classification")), _ANY_TASK)


def answer_views(document: RunDocument, entry: Finding) -> tuple[AnswerView, ...]:
    """Return how an entry's answers are shown: as its task chose, or its classes."""
    if entry.answers:
        return entry.answers
    return (ClassesView("", document.classes, entry.probabilities, entry.labels),)


def distance_view(entry: Finding) -> RegressionView | None:
    """Return the distance of an entry's values; None of decisions."""
    return next((one for one in entry.answers or () if isinstance(one, RegressionView)), None)


def decided(document: RunDocument, entry: Finding, arm: str) -> str:
    """Return what an arm decided, a score behind it; or how the arm failed.

    A dash where it was not asked. Values are no decision.
    """
    if arm not in entry.labels:
        return "–"
    if entry.labels[arm] is None:
        return entry.kind
    name = decision_name(document, entry, arm)
    scores = [
        f"{score:.4g}"
        for view in entry.answers or ()
        if isinstance(view, ThresholdView) and (score := view.scores.get(arm)) is not None
    ]
    return f"{name} ({', '.join(scores)})" if scores else name


def decision_name(document: RunDocument, entry: Finding, arm: str) -> str:
    """Return the name of what an arm decided; of several heads or frames, those of all."""
    if document.classes or not entry.answers:
        return class_name(document.classes, entry.labels[arm])
    return ", ".join(_named(view, arm) for view in entry.answers)


def decisions(document: RunDocument, entry: Finding) -> str:
    """Say who decided what, "original: Sneaker; twin, device: Sandal", or how far values differ."""
    view = distance_view(entry)
    if view is not None and view.distance is not None:
        return _distance(view, view.distance)
    arms: dict[str, list[str]] = {}
    for arm in ARMS:
        if arm in entry.labels:
            arms.setdefault(decided(document, entry, arm), []).append(arm)
    return "; ".join(f"{', '.join(names)}: {said}" for said, names in arms.items())


def _named(view: AnswerView, arm: str) -> str:
    if isinstance(view, RegressionView):
        return f"{view.size:,} values"
    if isinstance(view, TranscriptView):
        return view.separator.join(view.words.get(arm) or ())
    if isinstance(view, DetectionView):
        return f"{len(view.boxes.get(arm) or ())} objects"
    if isinstance(view, SegmentationView):
        return f"a mask of {view.columns} x {view.rows}"
    names = view.classes if isinstance(view, ClassesView) else view.sides
    return class_name(names, view.decisions.get(arm))


def _distance(view: RegressionView, distance: float) -> str:
    where = f" in {view.head}" if view.head else ""
    return (
        f"{view.measure} of {' and '.join(view.compared)} {distance:.4g}{where}, "
        f"{distance / view.tolerance:.4g} times the tolerance {view.tolerance:g}"
    )
