"""What a card shows of an entry's inputs, as their domain chose, and the answers to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from edgeflare.core.views import CurvesView, PartsView, SoundView, ValuesView
from edgeflare.pages.answers.answer_form import AnswerBlock, AnsweredInput, AnswerForm
from edgeflare.pages.comparison_plot import ComparisonPlot, comparison_plot
from edgeflare.pages.page_allowance import PageAllowance
from edgeflare.report.html.input_views import StoredView
from edgeflare.report.html.pictures import Picture, pictures_of
from edgeflare.report.html.sounds import SoundFigure, sounds_of

Blocks = tuple[AnswerBlock, ...]
"""What arms answered to an input, a block for each head of the model."""

Shot: TypeAlias = Picture | SoundFigure | ComparisonPlot

PICTURES = 3
"""Pictures of a finding on images. A plot has the room of them all."""


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
    tables = [block for blocks in answers.values() for block in blocks]
    upon = any(table.drawn() or table.drawn_points() for table in tables)
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
    return tuple(block for block in blocks if block not in shown)


def _answered(shot: Shot, answers: Mapping[str, Blocks]) -> Shot:
    if isinstance(shot, Picture):
        blocks = answers.get(shot.what, ())
        boxes = tuple(box for block in blocks for box in block.drawn())
        points = tuple(point for block in blocks for point in block.drawn_points())
        return replace(shot, boxes=boxes, points=points)
    if isinstance(shot, SoundFigure):
        blocks = answers.get(shot.what, ())
        return replace(shot, texts=tuple(block for block in blocks if block.below_player))
    return shot


@dataclass(frozen=True, slots=True)
class ShotGroup:
    """What is shown of an input, or of a part of it.

    Attributes:
        name: name of the part of the input, "frame 0"; empty where it has none.
        shots: what is shown of it.

    """

    name: str
    shots: tuple[Shot, ...]


def shot_groups(stored: Sequence[StoredView], allowance: PageAllowance) -> tuple[ShotGroup, ...]:
    """Return what is shown of an entry's inputs: a group for each named part of them, or one.

    Args:
        stored: the seed first; of a finding the trigger last.
        allowance: what it may weigh; what sounds take is taken from it.

    """
    parts = [kept.view.parts for kept in stored if isinstance(kept.view, PartsView)]
    if not parts:
        return (ShotGroup("", _shots(stored, allowance)),)
    groups = []
    for name in dict.fromkeys(name for named in parts for name in named):
        of_it = [
            replace(
                kept, view=kept.view.parts.get(name) if isinstance(kept.view, PartsView) else None
            )
            for kept in stored
        ]
        groups += [
            ShotGroup(f"{name} {group.name}".rstrip(), group.shots)
            for group in shot_groups(of_it, allowance)
        ]
    return tuple(groups)


def _shots(stored: Sequence[StoredView], allowance: PageAllowance) -> tuple[Shot, ...]:
    view = next((kept.view for kept in stored if kept.view is not None), None)
    if isinstance(view, SoundView):
        return sounds_of(stored, allowance)
    if isinstance(view, CurvesView | ValuesView):
        return tuple(_plots(stored, PICTURES * allowance.picture))
    return pictures_of(stored, allowance.picture)


def _plots(stored: Sequence[StoredView], most: int) -> Iterator[Shot]:
    """Yield a plot of the seed beside each other input; of a seed alone, or without it, of one."""
    views = {
        kept.what: kept.view for kept in stored if isinstance(kept.view, CurvesView | ValuesView)
    }
    seed = views.get("seed")
    for kept in stored:
        view = views.get(kept.what)
        if view is None:
            yield Picture(kept.what, None)
        elif kept.what == "seed":
            if len(views) == 1:
                yield comparison_plot(("seed",), [view], most)
        elif (
            type(seed) is type(view) and seed is not None and seed.values.shape == view.values.shape
        ):
            yield comparison_plot(("seed", kept.what), [seed, view], most)
        else:
            yield comparison_plot((kept.what,), [view], most)
