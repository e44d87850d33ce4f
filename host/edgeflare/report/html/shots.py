"""What a card shows of an entry's inputs: pictures, sounds or plots, as their domain chose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from edgeflare.core.views import CurvesView, PartsView, SoundView, ValuesView
from edgeflare.pages.comparison_plot import ComparisonPlot, comparison_plot
from edgeflare.pages.page_allowance import PageAllowance
from edgeflare.report.html.input_views import StoredView
from edgeflare.report.html.pictures import Picture, pictures_of
from edgeflare.report.html.sounds import SoundFigure, sounds_of

Shot: TypeAlias = Picture | SoundFigure | ComparisonPlot

PICTURES = 3
"""Pictures of a finding on images. A plot has the room of them all."""


@dataclass(frozen=True, slots=True)
class ShotGroup:
    """What is shown of one input.

    Attributes:
        name: name of the input; empty where the models have only one.
        shots: what is shown of it.

    """

    name: str
    shots: tuple[Shot, ...]


def shot_groups(stored: Sequence[StoredView], allowance: PageAllowance) -> tuple[ShotGroup, ...]:
    """Return what is shown of an entry's inputs: a group for each named input, or one.

    Args:
        stored: the seed first; of a finding the trigger last.
        allowance: what it may weigh; what sounds take is taken from it.

    """
    parts = [one.view.parts for one in stored if isinstance(one.view, PartsView)]
    if not parts:
        return (ShotGroup("", _shots(stored, allowance)),)
    groups = []
    for name in dict.fromkeys(name for named in parts for name in named):
        of_it = [
            replace(one, view=one.view.parts.get(name) if isinstance(one.view, PartsView) else None)
            for one in stored
        ]
        groups += [
            ShotGroup(f"{name} {group.name}".rstrip(), group.shots)
            for group in shot_groups(of_it, allowance)
        ]
    return tuple(groups)


def _shots(stored: Sequence[StoredView], allowance: PageAllowance) -> tuple[Shot, ...]:
    view = next((one.view for one in stored if one.view is not None), None)
    if isinstance(view, SoundView):
        return sounds_of(stored, allowance)
    if isinstance(view, CurvesView | ValuesView):
        return tuple(_plots(stored, PICTURES * allowance.picture))
    return pictures_of(stored, allowance.picture)


def _plots(stored: Sequence[StoredView], most: int) -> Iterator[Shot]:
    """Yield a plot of the seed beside each other input; of a seed alone, or without it, of one."""
    views = {one.what: one.view for one in stored if isinstance(one.view, CurvesView | ValuesView)}
    seed = views.get("seed")
    for one in stored:
        view = views.get(one.what)
        if view is None:
            yield Picture(one.what, None)
        elif one.what == "seed":
            if len(views) == 1:
                yield comparison_plot(("seed",), [view], most)
        elif (
            type(seed) is type(view) and seed is not None and seed.values.shape == view.values.shape
        ):
            yield comparison_plot(("seed", one.what), [seed, view], most)
        else:
            yield comparison_plot((one.what,), [view], most)
