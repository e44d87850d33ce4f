"""A survey made ready: the pair opened with the surveyed inputs, and all that is asked checked.

The earlier survey that it is compared with is read from its run directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from msgspec import structs

from edgeflare.campaign.campaign_record import describe_run
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.core.query import Arm
from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.devices.profile import Profile
from edgeflare.errors import UserError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.record.folder_lock import is_locked
from edgeflare.record.journal import DamagedJournalError
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.statistics.distributions import require_scipy
from edgeflare.survey.baseline import AskedItems, BaselineSurvey, require_same_items
from edgeflare.survey.gates.gate_judgement import (
    JudgedGates,
    conditions_left_out,
    require_each_once,
    surveyed_sets,
)
from edgeflare.survey.gates.survey_gate import Gate, GatedInputs, parse_gate, require_decidable
from edgeflare.survey.items.survey_inputs import (
    describe_inputs,
    read_groups,
    require_enough,
    speaking_of_inputs,
)
from edgeflare.survey.items.survey_items import SurveyedItems, require_same_inputs
from edgeflare.survey.rare_events.rare_survey import headline_event, require_estimable
from edgeflare.survey.record.survey_document import SurveyDocument, read_survey
from edgeflare.survey.record.survey_journal import read_checksums, read_facts, require_survey
from edgeflare.survey.record.survey_plan import (
    SurveyBounds,
    SurveyPlan,
    bounds_on_queries,
    noted_conditions,
)
from edgeflare.survey.sampling_design import SamplingRounds
from edgeflare.survey.survey_derivation import derive_unwritten_survey
from edgeflare.survey.survey_run import Survey

SELECTED = (
    "the pair's seeds are surveyed: they may have been selected, such as inputs on which the models"
    " agree, and then rates are not those of the field: give a sample of it with --inputs"
)

FEW_RARE_QUERIES = 500
"""Device queries for rare events below which a warning is in place."""


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """What a user asks of a survey.

    Attributes:
        chosen: conditions, with their severities.
        bounds: when the device was asked enough, and what is judged.
        groups: name of the column that says the group of each input, or None.
        own_inputs: whether the inputs were named, and are not the pair's seeds.
        baseline: an earlier survey to compare with, or None.

    """

    chosen: tuple[ChosenCondition, ...]
    bounds: SurveyBounds
    groups: str | None = None
    own_inputs: bool = False
    baseline: BaselineSurvey | None = None

    @property
    def gates(self) -> tuple[Gate, ...]:
        """What has to hold.

        Raises:
            UserError: a gate is none.

        """
        return tuple(map(parse_gate, self.bounds.gates))


def open_survey(
    pair: Pair, plan: Plan, request: SurveyRequest, profiles: Sequence[Profile], stack: ExitStack
) -> Survey:
    """Open a pair for a survey; `stack` closes it.

    Args:
        pair: pair whose seeds are the surveyed inputs.
        plan: as `survey_run_plan` returns it.
        request: what is asked of the survey.
        profiles: the devices.
        stack: closes what is opened.

    Raises:
        UserError: the inputs are too few, or have no such groups; a gate is about what is not
            surveyed, or given twice; rare events are asked for that cannot be estimated; or a
            model, the inputs or a profile is not what it should be.

    """
    require_scipy()
    require_each_once(request.gates)

    def load(inputs: ModelInputs) -> Seeds:
        with speaking_of_inputs(own_inputs=request.own_inputs):
            seeds = inputs.load(pair.seeds, plan.choice, pair.classes)
        require_enough(pair.seeds, seeds)
        # What an item is depends on the place of its input among those that are surveyed.
        return replace(seeds, ids=(), notes=(*seeds.notes, *_notes(request)))

    opened = open_pair(pair, plan, profiles, stack, seeds_for=load)
    if request.bounds.rare_queries is not None:
        conditions = [chosen_condition.condition for chosen_condition in request.chosen]
        require_estimable(opened, conditions, headline_event(opened))
    header = describe_run(opened, plan)
    space = pair.interface.domain.space
    items = SurveyedItems.of(request.chosen, opened.seeds.inputs, space, plan.rng_seed)
    domain = pair.interface.domain_name
    left_out = conditions_left_out(domain, request.gates, request.chosen)
    sets = surveyed_sets(request.chosen)
    gates = JudgedGates(request.gates, request.bounds.confidence, sets, left_out)
    survey_plan = _plan(pair, opened, request, items, plan.choice)
    survey_plan = structs.replace(survey_plan, left_out=gates.left_out)
    for gate in gates.gates:
        require_decidable(gate, items.cells, gates.sets, _gated_inputs(opened, survey_plan))
    if request.baseline is not None:
        asked = AskedItems(survey_plan.inputs.sha256, header.plan.rng_seed, survey_plan.confidence)
        has_original = Arm.ORIGINAL in header.arms
        require_same_items(asked, items.cells, has_original=has_original, baseline=request.baseline)
        require_same_inputs(
            items, request.baseline.checksums, f"the baseline {request.baseline.name}"
        )
    return Survey(opened, header, survey_plan, items, gates, request.baseline)


def _notes(request: SurveyRequest) -> Iterator[str]:
    """Yield what is to be known of a survey before its figures are believed."""
    if not request.own_inputs:
        yield SELECTED
    rare = request.bounds.rare_queries
    if rare is not None and rare < FEW_RARE_QUERIES:
        yield (
            f"--rare-queries {rare}: so few tell little of rare events, and their"
            f" interval may miss the rate: give {FEW_RARE_QUERIES} or more"
        )


def _plan(
    pair: Pair,
    opened: OpenedPair,
    request: SurveyRequest,
    items: SurveyedItems,
    choice: SeedChoice,
) -> SurveyPlan:
    groups = None
    if request.groups is not None:
        groups = read_groups(pair.seeds, opened.seeds, request.groups, choice)
    return SurveyPlan(
        cells=items.cells,
        inputs=describe_inputs(pair.seeds, opened.seeds),
        groups=groups,
        **structs.asdict(request.bounds),
        conditions=noted_conditions(request.chosen),
        baseline=None if request.baseline is None else os.path.abspath(request.baseline.name),
    )


def _gated_inputs(opened: OpenedPair, plan: SurveyPlan) -> GatedInputs:
    """Return what gates have to know of the surveyed inputs."""
    count, truths = len(opened.seeds), opened.truths
    of_inputs = [-1] * count if plan.groups is None else plan.groups.of_inputs
    return GatedInputs(
        has_original=opened.pair.original is not None,
        labelled=truths.known() if truths.given else np.zeros(count, bool),
        groups=np.array(of_inputs, np.int64),
        group_names=() if plan.groups is None else plan.groups.names,
        classes=opened.panel.reading.decoders[Arm.TWIN].choices > 0,
        conditions=frozenset(
            name
            for condition in own_conditions(opened.pair.interface.domain_name)
            for name in (condition.name, *condition.sets)
        ),
    )


def load_baseline(path: Path, copy_of: Path | None = None) -> BaselineSurvey:
    """Return an earlier survey to compare with.

    Of one that was cut off before its document was written, that is derived from its journal.

    Args:
        path: path of its run directory.
        copy_of: where the survey lies that this is a copy of; None for no copy.

    Raises:
        UserError: there is none, or it is no survey, or its host has not answered all items, or its
            document and its journal are those of two surveys.

    """
    try:
        return _load(path, path if copy_of is None else copy_of)
    except DamagedJournalError as error:
        raise UserError(
            f"{RunDirectory(path).journal} is damaged ({error.why}): name another run with"
            " --baseline"
        ) from None


def _load(path: Path, named: Path) -> BaselineSurvey:
    require_survey(path, "--baseline")
    document, facts = _document(RunDirectory(path)), read_facts(path)
    cells = document.by_cell.slices
    both: dict[str, tuple[object, object]] = {
        "inputs": (document.inputs, facts.inputs),
        "cells": (
            [(cell.condition, cell.severity) for cell in cells],
            [(cell.condition, cell.severity) for cell in facts.cells],
        ),
        "has_original": (document.has_original, facts.has_original),
        "asked": (document.asked, int(facts.asked.sum())),
    }
    for what, (said, known) in both.items():
        if said != known:
            raise UserError(
                f"{path} is damaged: its survey.json and its run.db have other {what}: survey it"
                " anew, or name another run with --baseline"
            )
    plan = document.plan
    earlier = bounds_on_queries(plan.earlier)
    rounds = SamplingRounds.replayed(facts, plan.rng_seed, plan.device_queries, earlier)
    sample = rounds.design.sample_of(facts.asked)
    return BaselineSurvey(str(named), document, facts, sample, read_checksums(path))


def _document(directory: RunDirectory) -> SurveyDocument:
    """Return the document of a survey; what it is compared with itself does not matter."""
    if directory.inside(SURVEY_DOCUMENT).is_file():
        return read_survey(directory)
    if is_locked(directory.path):
        raise UserError(
            f"{directory.path} is a survey that is still running: wait for its end, or name another"
            " run with --baseline"
        )
    return derive_unwritten_survey(directory)
