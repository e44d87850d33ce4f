"""A box as it is drawn upon a picture, in percent of the picture's sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A box upon a picture; lengths in percent of its width and height, as SVG reads them.

    Attributes:
        arm: that detected it, which chooses colour and dashes.
        x: of the left edge.
        y: of the top edge.
        width: of the box.
        height: likewise.
        number: of the object in its table; empty where it does not differ.
        title: what it is.

    """

    arm: str
    x: str
    y: str
    width: str
    height: str
    number: str
    title: str


def drawn_box(box: Sequence[float], arm: str, number: str, title: str) -> DrawnBox:
    """Return a box to be drawn; what lies far outside of the picture is cut off.

    Args:
        box: left, top, right and bottom, as shares of the picture's width and height.
        arm: that detected it.
        number: of the object in its table; empty where it does not differ.
        title: what it is.

    """
    left, top, right, bottom = (100 * min(max(share, -1.0), 2.0) for share in box)
    x, width = min(left, right), abs(right - left)
    y, height = min(top, bottom), abs(bottom - top)
    return DrawnBox(arm, f"{x:.2f}%", f"{y:.2f}%", f"{width:.2f}%", f"{height:.2f}%", number, title)
