"""What a card shows of an input with what the arms answered to it: boxes upon it, texts below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from edgeflare.report.html.answer_blocks import AnswerBlock
from edgeflare.report.html.object_table import ObjectTable
from edgeflare.report.html.pictures import Picture
from edgeflare.report.html.shots import Shot, ShotGroup
from edgeflare.report.html.sounds import SoundFigure
from edgeflare.report.html.text_table import TextTable

Blocks = tuple[AnswerBlock, ...]


def answered_shots(
    groups: tuple[ShotGroup, ...], answers: Mapping[str, Blocks]
) -> tuple[ShotGroup, ...]:
    """Return the shots with the boxes of objects upon pictures, and texts below players.

    Of several inputs, these are of the first that is shown in such a form.

    Args:
        groups: what is shown of the inputs.
        answers: the blocks of the answers to an input, by what it is, "seed" or "trigger".

    """
    tables = [one for blocks in answers.values() for one in blocks]
    form = Picture if any(isinstance(one, ObjectTable) for one in tables) else SoundFigure
    at = next((n for n, group in enumerate(groups) if _has(group.shots, form)), None)
    if at is None:
        return groups
    shots = tuple(_answered(shot, answers) for shot in groups[at].shots)
    return (*groups[:at], replace(groups[at], shots=shots), *groups[at + 1 :])


def without_shown(groups: Iterable[ShotGroup], blocks: Blocks) -> Blocks:
    """Return the blocks without the texts that stand below a player."""
    shots = [shot for group in groups for shot in group.shots]
    shown = [text for shot in shots if isinstance(shot, SoundFigure) for text in shot.texts]
    return tuple(one for one in blocks if one not in shown)


def _has(shots: Iterable[Shot], form: type[Shot]) -> bool:
    return any(isinstance(shot, form) for shot in shots)


def _answered(shot: Shot, answers: Mapping[str, Blocks]) -> Shot:
    if isinstance(shot, Picture):
        blocks = answers.get(shot.what, ())
        boxes = (box for one in blocks if isinstance(one, ObjectTable) for box in one.boxes)
        return replace(shot, boxes=tuple(boxes))
    if isinstance(shot, SoundFigure):
        blocks = answers.get(shot.what, ())
        return replace(shot, texts=tuple(one for one in blocks if isinstance(one, TextTable)))
    return shot
