"""Reads the objects of a YOLO-like model: what a user keeps beside the pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = tuple[float, float, float, float, float, int]


def decode(outputs: Mapping[str, Any]) -> list[Row]:
    """Return rows (left, top, right, bottom, score, class) of (1, 6, 64) in pixels of 320."""
    (values,) = outputs.values()
    columns, rows, widths, heights = values[0, :4] / 320
    corners = (columns - widths / 2, rows - heights / 2, columns + widths / 2, rows + heights / 2)
    scores = values[0, 4:]
    boxes = zip(*corners, scores.max(axis=0), scores.argmax(axis=0), strict=True)
    likely = [box for box in boxes if box[4] > 0.1 and box[2] > box[0] and box[3] > box[1]]
    kept: list[tuple[Any, ...]] = []
    for box in sorted(likely, key=lambda box: -box[4]):
        if all(_shared(box, other) < 0.4 * min(_area(box), _area(other)) for other in kept):
            kept.append(box)
    return [_clipped(box) for box in kept[:50]]


def _shared(box: tuple[Any, ...], other: tuple[Any, ...]) -> Any:
    width = min(box[2], other[2]) - max(box[0], other[0])
    height = min(box[3], other[3]) - max(box[1], other[1])
    return max(0, width) * max(0, height)


def _area(box: tuple[Any, ...]) -> Any:
    return (box[2] - box[0]) * (box[3] - box[1])


def _clipped(box: tuple[Any, ...]) -> Row:
    left, top, right, bottom, score, label = box
    return (
        float(left),
        float(top),
        float(right),
        float(bottom),
        float(min(1, max(0, score))),
        int(label),
    )
