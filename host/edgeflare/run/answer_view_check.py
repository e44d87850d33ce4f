"""The views of answers in a document that somebody hands over, held to what a schema cannot say.

The schema says that a box has four numbers and that classes are not negative, and whoever reads a
document that all numbers are finite.
"""

from __future__ import annotations

from collections.abc import Iterator

from edgeflare.core.answer_view import (
    AnswerView,
    ClassesView,
    DetectionView,
    RegressionView,
    SegmentationView,
    ThresholdView,
    TranscriptView,
)

LETTERS = 100_000
"""Characters of a text, with its separators: two hours of speech."""

OBJECTS = 10_000
"""Objects that an arm detected in one input."""

CLASSES = 2**31
"""A class is below it, so that it fits the integers that masks are drawn from."""


def wrong_view(place: str, view: AnswerView) -> Iterator[str]:
    """Yield what contradicts itself in a view, with its place, or is larger than any answer.

    Args:
        place: of the view in the document.
        view: as it was read.

    """
    if isinstance(view, ClassesView):
        yield from _wrong_decisions(place, view)
    elif isinstance(view, RegressionView):
        yield from _wrong_values(place, view)
    elif isinstance(view, TranscriptView):
        yield from _wrong_texts(place, view)
    elif isinstance(view, DetectionView):
        yield from _wrong_objects(place, view)
    elif isinstance(view, SegmentationView):
        yield from _wrong_masks(place, view)
    else:
        assert isinstance(view, ThresholdView)  # noqa: S101 - of it the schema says all


def _wrong_decisions(place: str, view: ClassesView) -> Iterator[str]:
    for arm, label in view.decisions.items():
        classes = len(view.probabilities.get(arm, ()))
        if label is not None and label >= classes:
            yield f"{place}.decisions.{arm} is {label}, but {arm} has {classes} probabilities"


def _wrong_values(place: str, view: RegressionView) -> Iterator[str]:
    for arm, values in view.values.items():
        if values is not None and len(values) != len(view.names):
            yield f"{place}.values.{arm} has {len(values)} values, but names {len(view.names)}"


def _wrong_texts(place: str, view: TranscriptView) -> Iterator[str]:
    for arm, words in view.words.items():
        letters = sum(len(word) + len(view.separator) for word in words or ())
        if letters > LETTERS:
            yield f"{place}.words.{arm} has {letters:,} characters, more than {LETTERS:,}"


def _wrong_objects(place: str, view: DetectionView) -> Iterator[str]:
    for arm, boxes in view.boxes.items():
        if len(boxes or ()) > OBJECTS:
            yield f"{place}.boxes.{arm} has {len(boxes or ()):,} objects, more than {OBJECTS:,}"
        for n, box in enumerate(boxes or ()):
            if box.label >= CLASSES:
                yield f"{place}.boxes.{arm}[{n}].label is {box.label}, not a class"


def _wrong_masks(place: str, view: SegmentationView) -> Iterator[str]:
    pixels = view.rows * view.columns
    for arm, mask in view.masks.items():
        if mask is None:
            continue
        runs = list(map(int, mask.split()))
        lengths = runs[1::2]
        if len(runs) % 2 or min(lengths, default=0) < 1 or sum(lengths) != pixels:
            yield f"{place}.masks.{arm} has runs that are not the {pixels:,} pixels of a mask"
        elif max(runs[::2]) >= CLASSES:
            yield f"{place}.masks.{arm} has a number that is not a class"
