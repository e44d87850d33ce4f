"""Inputs of a pair under conditions, shown before anything is surveyed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.conditions.condition import changed_input
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.core.seeds import SeedChoice
from edgeflare.core.views import (
    CurvesView,
    ImageView,
    InputView,
    PartsView,
    SoundView,
    ValuesView,
)
from edgeflare.errors import UserError, kind_at_named_path
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.shape_folding import with_shapes_folded
from edgeflare.pages.comparison_plot import ComparisonPlot, comparison_plot
from edgeflare.pages.html_page import packaged, page_environment
from edgeflare.pages.page_allowance import PageAllowance, allowance
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import file_written, require_suffix
from edgeflare.report.html.input_views import StoredView
from edgeflare.report.html.pictures import Picture, picture
from edgeflare.report.html.sounds import SoundFigure, sounds_of
from edgeflare.survey.items.survey_facts import UNCHANGED
from edgeflare.survey.items.survey_inputs import speaking_of_inputs
from edgeflare_protos import __version__

MOST_PARTS = 3
"""Parts of an input that are shown, such as the frames of a clip: evenly chosen, with the first and
the last."""

_Drawing: TypeAlias = Picture | SoundFigure | ComparisonPlot

SHOWN_INPUTS = 3
"""Inputs on the contact sheet: the first ones."""


def show_conditions(
    path: Path,
    pair: Pair,
    chosen: Sequence[ChosenCondition],
    rng_seed: int,
    *,
    own_inputs: bool,
) -> None:
    """Write a contact sheet of a pair's first inputs under conditions; no model is run.

    Args:
        path: path of the file, which ends with `.html`; one that is there is replaced.
        pair: pair whose seeds are the inputs.
        chosen: conditions, with their names and severities.
        rng_seed: seed of the survey that would be run.
        own_inputs: whether the inputs were named, and are not the pair's seeds.

    Raises:
        UserError: the path is none for it, another process works on its folder, there are no
            conditions, or the inputs do not fit.
        InfrastructureError: the file cannot be written.

    """
    require_suffix("--show", path, ".html")
    if not os.path.isdir(path.parent):  # which takes one that is too long for none
        raise UserError(f"--show {path}: there is no folder {path.parent}: make it before")
    if not chosen:
        raise UserError("--show has nothing to show without conditions: name some (--conditions)")
    with (
        with_shapes_folded(pair) as opened,
        closing(open_compressed(opened, TWIN_KERNELS)) as model,
    ):
        inputs = ModelInputs(pair.interface, model.signature.inputs, str(pair.compressed))
        with speaking_of_inputs(own_inputs=own_inputs):
            seeds = inputs.load(pair.seeds, SeedChoice(first=SHOWN_INPUTS))
    shown = list(seeds.inputs)
    try:
        with file_written(path):
            write_contact_sheet(path, pair.interface.domain, shown, chosen, rng_seed)
    except OSError as error:
        kind = kind_at_named_path(error)
        raise kind(f"--show {path} cannot be written: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class _SheetRow:
    """An input under a condition.

    Attributes:
        name: the condition's name in the survey.
        summary: what it is.
        cells: what is drawn of the input unchanged, and at each severity of the page; nothing at
            one at which the condition is not surveyed.

    """

    name: str
    summary: str
    cells: tuple[tuple[_Drawing, ...], ...]


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
        path: path of the file; a file that is there is replaced.
        domain: domain of the inputs.
        inputs: some of them, in the order of the page.
        chosen: conditions of the domain, with their names and severities.
        rng_seed: seed of the run.

    Raises:
        OSError: the file cannot be written.

    """
    page = _render(domain, inputs, chosen, rng_seed)
    write_atomically(path, page.encode())


def _render(
    domain: Domain,
    inputs: Sequence[Input],
    chosen: Sequence[ChosenCondition],
    rng_seed: int,
) -> str:
    cells = len(inputs) * sum(1 + len(chosen_condition.severities) for chosen_condition in chosen)
    severities = sorted(
        {severity for chosen_condition in chosen for severity in chosen_condition.severities}
    )
    in_parts = bool(inputs) and isinstance(domain.view(inputs[0]), PartsView)
    room = PageAllowance(allowance(MOST_PARTS * cells if in_parts else cells))
    columns = (UNCHANGED, *(f"severity {severity}" for severity in severities))
    tables = [
        tuple(_row(domain, input_, row, severities, rng_seed, room) for row in chosen)
        for input_ in inputs
    ]
    return (
        page_environment("edgeflare.survey.presentation", "edgeflare.report.html")
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
    input_: Input,
    row: ChosenCondition,
    severities: Sequence[int],
    rng_seed: int,
    room: PageAllowance,
) -> _SheetRow:
    made = row.condition
    changed = (changed_input(made, input_, at, rng_seed, domain.space) for at in row.severities)
    views = [_shown_parts(domain.view(each)) for each in (input_, *changed)]
    names = [UNCHANGED, *(f"{row.name} {severity}" for severity in row.severities)]
    by_part = [_drawn(names, list(part), room) for part in zip(*views, strict=True)]
    unchanged, *drawn = zip(*by_part, strict=True)
    known = dict(zip(row.severities, drawn, strict=True))
    cells = (unchanged, *(known.get(severity, ()) for severity in severities))
    return _SheetRow(row.name, made.summary, cells)


def _shown_parts(view: InputView) -> list[InputView]:
    """Return a view, or of one with parts some of them, evenly chosen."""
    if not isinstance(view, PartsView):
        return [view]
    parts = list(view.parts.values())
    places = np.linspace(0, len(parts) - 1, min(MOST_PARTS, len(parts)))
    return [shown for place in places for shown in _shown_parts(parts[round(place)])]


def _drawn(
    names: Sequence[str], views: Sequence[InputView], room: PageAllowance
) -> tuple[_Drawing, ...]:
    """Return what is drawn of an input unchanged and at each severity, on common scales."""
    if isinstance(views[0], SoundView):
        stored = [StoredView(name, "", view) for name, view in zip(names, views, strict=True)]
        return sounds_of(stored, room)
    return tuple(
        _drawing(name, view, views[0], room) for name, view in zip(names, views, strict=True)
    )


def _drawing(name: str, view: InputView, unchanged: InputView, room: PageAllowance) -> _Drawing:
    if isinstance(view, ImageView):
        return picture(name, view.pixels, room.picture)
    # Sounds are drawn together, and parts one by one.
    plots = [part for part in (unchanged, view) if isinstance(part, CurvesView | ValuesView)]
    if view is unchanged:
        return comparison_plot((name,), plots[:1], room.picture)
    return comparison_plot((UNCHANGED, name), plots, room.picture)
