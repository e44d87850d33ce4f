"""The input that answers are of, as a card shows it beside them."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.report.html.pictures import Picture


@dataclass(frozen=True, slots=True)
class AnsweredInput:
    """The input that answers are of.

    Attributes:
        what: "seed" or "trigger".
        compared: the two arms that the run compares.
        picture: the input, where it is an image that is there.
        most: the bytes that a picture may weigh.

    """

    what: str
    compared: tuple[str, str]
    picture: Picture | None
    most: int
