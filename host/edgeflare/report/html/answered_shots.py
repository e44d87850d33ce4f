"""Answers with what is shown of their inputs: upon a picture, below a player, or apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from edgeflare.pages.answers.answer_form import AnswerBlock, AnsweredInput, AnswerForm
from edgeflare.report.html.pictures import Picture
from edgeflare.report.html.shots import Shot, ShotGroup
from edgeflare.report.html.sounds import SoundFigure

Blocks = tuple[AnswerBlock, ...]
"""What arms answered to an input, a block for each head of the model."""


def answer_blocks(
    views: Mapping[str, Iterable[AnswerForm]],
    compared: tuple[str, str],
    groups: Sequence[ShotGroup],
    most: int,
) -> dict[str, Blocks]:
    """Return the blocks of answers, by the input that they are of.

    Args:
        views: answers by what their input is, "seed", "trigger" or "input".
        compared: the two arms in whose difference the deviation lies.
        groups: what is shown of the inputs.
        most: the bytes that a picture of the answers may weigh.

    """
    pictures = {
        shot.what: shot
        for group in reversed(groups)
        for shot in group.shots
        if isinstance(shot, Picture) and shot.uri is not None
    }
    answers = {}
    for what, some in views.items():
        one = pictures.get(what)
        uri, width, height = (None, 0, 0) if one is None else (one.uri, one.width, one.height)
        shown = AnsweredInput(what, compared, uri, width, height, most)
        blocks = (view.block(shown) for view in some)
        answers[what] = tuple(block for block in blocks if block is not None)
    return answers


def answered_shots(
    groups: tuple[ShotGroup, ...], answers: Mapping[str, Blocks]
) -> tuple[ShotGroup, ...]:
    """Return the shots with the boxes of objects and points upon pictures, and texts below players.

    Of several inputs, these are of the first that is shown in such a form.

    Args:
        groups: what is shown of the inputs.
        answers: the blocks of the answers to an input, by what it is, "seed", "trigger" or "input".

    """
    tables = [one for blocks in answers.values() for one in blocks]
    upon = any(one.drawn() or one.drawn_points() for one in tables)
    form = Picture if upon else SoundFigure
    shows_form = [any(isinstance(shot, form) for shot in group.shots) for group in groups]
    if True not in shows_form:
        return groups
    at = shows_form.index(True)
    shots = tuple(_answered(shot, answers) for shot in groups[at].shots)
    return (*groups[:at], replace(groups[at], shots=shots), *groups[at + 1 :])


def without_shown(groups: Iterable[ShotGroup], blocks: Blocks) -> Blocks:
    """Return the blocks without the texts that stand below a player."""
    shots = [shot for group in groups for shot in group.shots]
    shown = [text for shot in shots if isinstance(shot, SoundFigure) for text in shot.texts]
    return tuple(one for one in blocks if one not in shown)


def _answered(shot: Shot, answers: Mapping[str, Blocks]) -> Shot:
    if isinstance(shot, Picture):
        blocks = answers.get(shot.what, ())
        boxes = tuple(box for one in blocks for box in one.drawn())
        points = tuple(point for one in blocks for point in one.drawn_points())
        return replace(shot, boxes=boxes, points=points)
    if isinstance(shot, SoundFigure):
        blocks = answers.get(shot.what, ())
        return replace(shot, texts=tuple(one for one in blocks if one.below_player))
    return shot
