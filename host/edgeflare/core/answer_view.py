"""How the answers of the arms to one input are shown to people."""

from __future__ import annotations

import msgspec


class AnswerView(msgspec.Struct, frozen=True):
    """What of the answers to one input is kept in a run's document, to be shown.

    So reports need neither models nor tasks. The forms are those of `edgeflare.pages.answers`.

    Attributes:
        head: name of the output, or of the frame of a clip; empty where there is only one.

    """

    head: str
