"""What the arms answered to an entry of a run, in the words of the pair's task."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from edgeflare.core.answer_view import (
    AnswerView,
    ClassesView,
    DetectionView,
    RegressionView,
    SegmentationView,
    ThresholdView,
    TranscriptView,
)
from edgeflare.models.run_pair import RunPair
from edgeflare.report.entry_names import ARMS, class_name, named_kind
from edgeflare.report.structured_answers import (
    StructuredView,
    in_words,
    masks_apart,
    text_edits,
)
from edgeflare.run.run_document import Finding, RunDocument


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """Words for the answers of a task.

    Attributes:
        differ: what two arms do on a deviating input.
        strongest: the order of the entries with the strongest deviation first.
        strength: what a strength is, to go on with "Strength is".
        scale: what the figure of a strength is held against.
        decision: what a decision is, as the heading of a choice; not used of answers with
            structure, whose decisions have no names.

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
    "transcript": AnswerWords(
        "give texts that differ in a word",
        strength="the least margin, on either side, among the frames that make the difference",
        scale="the least margin of a frame that makes the difference, the strength of a finding",
    ),
    "detection": AnswerWords(
        "detect other objects",
        strength="how far scores, or the overlap of two boxes, are beyond their threshold on"
        " either side",
        scale="beyond the threshold, the strength of a finding",
    ),
    "segmentation": AnswerWords(
        "give masks that differ",
        strength="by how much the mean IoU falls below the least that is no deviation, or the mean"
        " margin of the region's pixels",
        scale="of the mean IoU, or of the region's margins: the strength of a finding",
    ),
}

_ANY_TASK = AnswerWords(
    strength="how confidently the two sides disagree",
    scale="the strength of a finding",
    decision="Decision",
)


def answer_words(pair: RunPair) -> AnswerWords:
    """Return the words for the answers of a run.

    Args:
        pair: that of the run's document.

    """
    return _WORDS.get(pair.task_name, _ANY_TASK)


def answer_views(document: RunDocument, entry: Finding) -> tuple[AnswerView, ...]:
    """Return how an entry's answers are shown: as its task chose, or its classes."""
    if entry.answers:
        return tuple(_with_classes(document, view) for view in entry.answers)
    return (ClassesView("", document.classes, entry.probabilities, entry.labels),)


def seed_views(document: RunDocument, entry: Finding) -> tuple[AnswerView, ...]:
    """Return how the answers to an entry's seed are shown; nothing where the task does not."""
    return tuple(_with_classes(document, view) for view in entry.seed_answers or ())


def structured_views(document: RunDocument, entry: Finding) -> tuple[StructuredView, ...]:
    """Return the texts, objects and masks among an entry's answers."""
    views = answer_views(document, entry)
    return tuple(one for one in views if isinstance(one, StructuredView))


def compared_arms(document: RunDocument) -> tuple[str, str]:
    """Return the two arms that a run compares."""
    return ("twin" if document.find == "kernel" else "original", "device")


def distance_view(entry: Finding) -> RegressionView | None:
    """Return the distance of an entry's values; None of decisions."""
    return next((one for one in entry.answers or () if isinstance(one, RegressionView)), None)


def mask_view(entry: Finding) -> SegmentationView | None:
    """Return an entry's masks; of several outputs, those that are farthest apart."""
    masks = [one for one in entry.answers or () if isinstance(one, SegmentationView)]
    return min(masks, key=lambda one: 1.0 if one.mean_iou is None else one.mean_iou, default=None)


def decided(document: RunDocument, entry: Finding, arm: str) -> str:
    """Return what an arm decided, a score behind it; or how the arm failed.

    A dash where it was not asked. Values are no decision.
    """
    if arm not in entry.labels:
        return "–"
    if entry.labels[arm] is None:
        return "no answer" if named_kind(entry) else entry.kind
    name = decision_name(document, entry, arm)
    scores = [
        f"{score:.4g}"
        for view in entry.answers or ()
        if isinstance(view, ThresholdView) and (score := view.scores.get(arm)) is not None
    ]
    return f"{name} ({', '.join(scores)})" if scores else name


def decision_name(document: RunDocument, entry: Finding, arm: str) -> str:
    """Return the name of what an arm decided; of several heads or frames, those of all."""
    structured = structured_views(document, entry)
    if not structured and (document.classes or not entry.answers):
        return class_name(document.classes, entry.labels[arm])
    return ", ".join(_named(view, arm) for view in answer_views(document, entry))


def decisions(document: RunDocument, entry: Finding) -> str:
    """Say who decided what, "original: Sneaker; twin, device: Sandal", or how far they differ."""
    apart = how_far_apart(document, entry)
    if apart is not None:
        return apart
    arms: dict[str, list[str]] = {}
    for arm in ARMS:
        if arm in entry.labels:
            arms.setdefault(decided(document, entry, arm), []).append(arm)
    said = [f"{', '.join(names)}: {said}" for said, names in arms.items()]
    edits = edited_words(document, entry)
    return "; ".join(said if edits is None else [*said, f"edit distance {edits}"])


def how_far_apart(document: RunDocument, entry: Finding) -> str | None:
    """Return how far the values or masks of the compared arms are apart; None of other answers."""
    view = distance_view(entry)
    if view is not None and view.distance is not None:
        return _distance(view, view.distance)
    masks = [one for one in structured_views(document, entry) if isinstance(one, SegmentationView)]
    lines = [masks_apart(one, compared_arms(document)) for one in masks]
    return "; ".join(filter(None, lines)) or None


def edited_words(document: RunDocument, entry: Finding) -> int | None:
    """Return the edit distance of the compared arms' texts, in words; None of other answers."""
    texts = [one for one in structured_views(document, entry) if isinstance(one, TranscriptView)]
    edits = [text_edits(one, compared_arms(document)) for one in texts]
    known = [one for one in edits if one is not None]
    if not known or len(known) < len(texts):
        return None
    return sum(edit.kind != "same" for one in known for edit in one)


def _with_classes(document: RunDocument, view: AnswerView) -> AnswerView:
    """Name the classes of objects and masks as the pair does, where the task has no names."""
    if isinstance(view, DetectionView | SegmentationView) and not view.classes:
        return structs.replace(view, classes=document.classes)
    return view


def _named(view: AnswerView, arm: str) -> str:
    if isinstance(view, RegressionView):
        return f"{view.size:,} values"
    if isinstance(view, StructuredView):
        return in_words(view, arm)
    names = view.classes if isinstance(view, ClassesView) else view.sides
    return class_name(names, view.decisions.get(arm))


def _distance(view: RegressionView, distance: float) -> str:
    where = f" in {view.head}" if view.head else ""
    return (
        f"{view.measure} of {' and '.join(view.compared)} {distance:.4g}{where}, "
        f"{distance / view.tolerance:.4g} times the tolerance {view.tolerance:g}"
    )
