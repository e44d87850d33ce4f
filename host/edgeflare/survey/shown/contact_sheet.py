"""The contact sheet: some inputs under each condition, on one page to look at and to listen to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from edgeflare import __version__
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_draw import changed_input
from edgeflare.core.domain import Domain
from edgeflare.core.input import Input
from edgeflare.core.input_view import (
    CurvesView,
    ImageView,
    InputView,
    PartsView,
    SoundView,
    ValuesView,
)
from edgeflare.record.atomic_file import write_atomically
from edgeflare.report.html.comparison_plot import ComparisonPlot, comparison_plot
from edgeflare.report.html.page_allowance import PageAllowance, allowance
from edgeflare.report.html.page_template import packaged, page_environment
from edgeflare.report.html.pictures import Picture, picture
from edgeflare.report.html.sounds import SoundFigure, sounds_of
from edgeflare.report.html.stored_views import StoredView
from edgeflare.survey.items.survey_facts import UNCHANGED

MOST_PARTS = 3
"""Parts of an input that are shown, such as the frames of a clip: evenly chosen, with the first and
the last."""

Drawing: TypeAlias = Picture | SoundFigure | ComparisonPlot


@dataclass(frozen=True, slots=True)
class SheetRow:
    """An input under a condition.

    Attributes:
        name: of the condition, as the survey calls it.
        summary: what it is.
        cells: what is drawn of the input unchanged, and at each severity of the page; nothing at
            one at which the condition is not surveyed.

    """

    name: str
    summary: str
    cells: tuple[tuple[Drawing, ...], ...]


def write_contact_sheet(
    path: Path,
    domain: Domain,
    inputs: Sequence[Input],
    chosen: Sequence[ChosenCondition],
    rng_seed: int,
) -> None:
    """Write a contact sheet as one HTML file that runs no script and asks for nothing.

    It has a table for each input, a row for each condition, and a column for the input unchanged
    and for each severity at which any condition is surveyed. What it shows is what a survey with
    the same run seed asks about.

    Args:
        path: of the file; a file that is there is replaced.
        domain: of the inputs.
        inputs: some of them, in the order of the page.
        chosen: conditions of the domain, with their names and severities.
        rng_seed: of the run.

    Raises:
        OSError: the file cannot be written.
        UserError: a condition returned something of another shape or dtype.

    """
    page = _render(domain, inputs, chosen, rng_seed)
    write_atomically(path, page.encode())


def _render(
    domain: Domain,
    inputs: Sequence[Input],
    chosen: Sequence[ChosenCondition],
    rng_seed: int,
) -> str:
    cells = len(inputs) * sum(1 + len(one.severities) for one in chosen)
    severities = sorted({severity for one in chosen for severity in one.severities})
    room = PageAllowance(allowance(MOST_PARTS * cells if _has_parts(domain, inputs) else cells))
    columns = (UNCHANGED, *(f"severity {severity}" for severity in severities))
    tables = [
        tuple(_row(domain, one, row, severities, rng_seed, room) for row in chosen)
        for one in inputs
    ]
    return (
        page_environment("edgeflare.survey.shown")
        .get_template("contact_sheet.html.j2")
        .render(
            domain=domain.name,
            columns=columns,
            tables=tables,
            rng_seed=rng_seed,
            edgeflare=__version__,
            style=packaged("style.css"),
        )
    )


def _row(
    domain: Domain,
    one: Input,
    row: ChosenCondition,
    severities: Sequence[int],
    rng_seed: int,
    room: PageAllowance,
) -> SheetRow:
    made = row.condition
    changed = (changed_input(made, one, at, rng_seed, domain.space) for at in row.severities)
    views = [_shown_parts(domain.view(each)) for each in (one, *changed)]
    names = [UNCHANGED, *(f"{row.name} {severity}" for severity in row.severities)]
    by_part = [_drawn(names, list(part), room) for part in zip(*views, strict=True)]
    unchanged, *drawn = zip(*by_part, strict=True)
    known = dict(zip(row.severities, drawn, strict=True))
    cells = (unchanged, *(known.get(severity, ()) for severity in severities))
    return SheetRow(row.name, made.summary, cells)


def _has_parts(domain: Domain, inputs: Sequence[Input]) -> bool:
    return bool(inputs) and isinstance(domain.view(inputs[0]), PartsView)


def _shown_parts(view: InputView) -> list[InputView]:
    """Return a view, or of one with parts some of them, evenly chosen."""
    if not isinstance(view, PartsView):
        return [view]
    parts = list(view.parts.values())
    places = np.linspace(0, len(parts) - 1, min(MOST_PARTS, len(parts)))
    return [shown for place in places for shown in _shown_parts(parts[round(place)])]


def _drawn(
    names: Sequence[str], views: Sequence[InputView], room: PageAllowance
) -> tuple[Drawing, ...]:
    """Return what is drawn of an input unchanged and at each severity, on common scales."""
    if isinstance(views[0], SoundView):
        stored = [StoredView(name, "", view) for name, view in zip(names, views, strict=True)]
        return sounds_of(stored, room)
    return tuple(
        _drawing(name, view, views[0], room) for name, view in zip(names, views, strict=True)
    )


def _drawing(name: str, view: InputView, unchanged: InputView, room: PageAllowance) -> Drawing:
    if isinstance(view, ImageView):
        return picture(name, view.pixels, room.picture)
    # Sounds are drawn together, and parts one by one.
    plots = [one for one in (unchanged, view) if isinstance(one, CurvesView | ValuesView)]
    if view is unchanged:
        return comparison_plot((name,), plots[:1], room.picture)
    return comparison_plot((UNCHANGED, name), plots, room.picture)
