"""Answers with structure in words: texts, detected objects and masks."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from msgspec import UNSET

from edgeflare.core.answer_view import DetectionView, SegmentationView, ShownBox, TranscriptView
from edgeflare.core.word_edits import Edit, word_edits
from edgeflare.report.entry_names import class_name

StructuredView: TypeAlias = TranscriptView | DetectionView | SegmentationView

NAMED = 3
"""Objects of an arm, and classes of a mask, that are named in a line."""

MOST_ALIGNED = 250_000
"""Pairs of words of two texts that are aligned: 500 words each, about .1 s."""


def in_words(view: StructuredView, arm: str) -> str:
    """Return what an arm answered: its text, its objects, or the share of each class of its mask.

    Args:
        view: of the answers.
        arm: one that gave an answer.

    """
    if isinstance(view, TranscriptView):
        return view.separator.join(view.words.get(arm) or ()) or "(no words)"
    return _objects(view, arm) if isinstance(view, DetectionView) else _mask(view, arm)


def score_there(box: ShownBox) -> str:
    """Return what the other arm gives in the place of an object without a partner; "" elsewhere."""
    if box.there is UNSET:
        return ""
    return f" ({box.there:.4g} on the other arm)" if box.there else " (none on the other arm)"


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, an ellipsis for what is left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def text_edits(view: TranscriptView, compared: tuple[str, str]) -> list[Edit] | None:
    """Return the edits between the texts of two arms; None where one failed, or they are long."""
    first, second = (view.words.get(arm) for arm in compared)
    if first is None or second is None or len(first) * len(second) > MOST_ALIGNED:
        return None
    return word_edits(first, second)


def masks_apart(view: SegmentationView, compared: tuple[str, str]) -> str | None:
    """Return how far the masks of the compared arms are apart; None where one failed."""
    if view.mean_iou is None:
        return None
    head = f" in {view.head}" if view.head else ""
    iou = f"mean IoU of {' and '.join(compared)} {view.mean_iou:.4g}{head}"
    region = f"largest region that differs {view.region or 0:,} pixels"
    least = "" if view.least_region is None else f", a deviation from {view.least_region:,} on"
    return f"{iou}, a deviation below {view.least_iou:g}; {region}{least}"


def class_shares(runs: str) -> dict[int, float]:
    """Return the share of a mask's pixels that each class has, the largest first.

    Args:
        runs: of the mask, as in `SegmentationView`.

    """
    pixels: Counter[int] = Counter()
    numbers = list(map(int, runs.split()))
    for label, length in zip(numbers[::2], numbers[1::2], strict=True):
        pixels[label] += length
    return {label: count / pixels.total() for label, count in pixels.most_common()}


def _objects(view: DetectionView, arm: str) -> str:
    """Name the objects, those that make the difference first: "2: face 0.93, face 0.81"."""
    boxes = sorted(view.boxes.get(arm) or (), key=lambda one: not one.difference)
    named = [
        f"{class_name(view.classes, one.label)} {one.score:.4g}{score_there(one)}"
        for one in boxes[:NAMED]
    ]
    more = ["…"] if len(boxes) > NAMED else []
    return f"{len(boxes)}: {', '.join(named + more)}" if boxes else "no object"


def _mask(view: SegmentationView, arm: str) -> str:
    shares = class_shares(view.masks.get(arm) or "")
    named = [
        f"{class_name(view.classes, label)} {share:.1%}"
        for label, share in list(shares.items())[:NAMED]
    ]
    return ", ".join(named + (["…"] if len(shares) > NAMED else []))
