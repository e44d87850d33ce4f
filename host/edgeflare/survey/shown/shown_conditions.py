"""Inputs of a pair under conditions, shown before anything is surveyed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.seed_choice import SeedChoice
from edgeflare.errors import UserError, kind_at_named_path
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.folded_pair import with_shapes_folded
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.record.folder import file_written
from edgeflare.survey.items.refused_inputs import speaking_of_inputs
from edgeflare.survey.shown.contact_sheet import write_contact_sheet

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
        path: of the file, which ends with `.html`; one that is there is replaced.
        pair: whose seeds are the inputs.
        chosen: conditions, with their names and severities.
        rng_seed: of the survey that would be run.
        own_inputs: whether the inputs were named, and are not the pair's seeds.

    Raises:
        UserError: the path is none for it, another process works on its folder, there are no
            conditions, or the inputs do not fit.
        InfrastructureError: the file cannot be written.

    """
    if path.suffix.lower() != ".html":
        raise UserError(f"--show {path}: expected the name of a file that ends with .html")
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
