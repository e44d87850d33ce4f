"""A survey in its run directory: begun or gone on with, run, and written as `survey.json`.

Of its deviating items some are stored, as findings of its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.campaign import StoppedBy, evaluate_again
from edgeflare.campaign.campaign_context import CampaignContext, store_trigger
from edgeflare.campaign.campaign_record import run_recorded_campaign
from edgeflare.campaign.input_evaluation import FOLDER as UNCHANGED_FOLDER
from edgeflare.campaign.observer import Observer
from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.campaign.search_phase import FOLDER as CHANGED_FOLDER
from edgeflare.core.goal import Find, Goal, Trigger
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm, Outcome
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice
from edgeflare.core.truths import Truths
from edgeflare.errors import UserError
from edgeflare.linear_algebra import one_thread
from edgeflare.models.pair import Pair
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import remove_files
from edgeflare.record.journal import reporting_damage
from edgeflare.record.json_types import plain_json
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.journal_rows import ChainRow
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import SURVEY_DOCUMENT, RunDirectory
from edgeflare.run.run_document import RunDocument
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY, DeviceRow
from edgeflare.survey.baseline import BaselineSurvey
from edgeflare.survey.gates.gate_judgement import JudgedGates
from edgeflare.survey.items.survey_facts import UNCHANGED
from edgeflare.survey.items.survey_items import ItemJudgement, SurveyedItems, require_same_inputs
from edgeflare.survey.phases.device_phase import DevicePhase, StopRule
from edgeflare.survey.phases.host_phase import judge_on_host, warn_of_answers
from edgeflare.survey.phases.survey_observer import SurveyObserver
from edgeflare.survey.rare_events.rare_phase import RarePhase, noted_estimate
from edgeflare.survey.rates.slices import cell_rates
from edgeflare.survey.record.survey_document import (
    WRITTEN_FROM_IT,
    SurveyDocument,
    survey_bytes,
)
from edgeflare.survey.record.survey_journal import (
    facts_of,
    host_is_done,
    require_sound,
    require_survey,
)
from edgeflare.survey.record.survey_plan import (
    ENDED_KEY,
    STRATEGY,
    SamplingEnd,
    SurveyPlan,
    noted_plan,
    resume_plan,
)
from edgeflare.survey.sampling_design import SamplingRounds
from edgeflare.survey.survey_derivation import derive_survey
from edgeflare_protos.kernel_sets import TFLiteKernels


@dataclass(frozen=True, slots=True)
class Survey:
    """A survey that is ready to be run.

    Attributes:
        opened: the pair with the surveyed inputs as its seeds, and the devices.
        header: the run's header.
        plan: what is asked.
        items: what is surveyed.
        gates: gates that end the survey once all are decided.
        baseline: an earlier survey that it is compared with, or None.

    """

    opened: OpenedPair
    header: RunHeader
    plan: SurveyPlan
    items: SurveyedItems
    gates: JudgedGates
    baseline: BaselineSurvey | None = None


def survey_run_plan(
    pair: Pair,
    devices: tuple[str, ...],
    rng_seed: int,
    choice: SeedChoice = ALL_SEEDS,
    ensemble: tuple[TFLiteKernels, ...] = (),
    elsewhere: tuple[str, ...] = (),
) -> Plan:
    """Return the part of a survey's plan that every run has.

    Its findings are the deviations from the original, ties included, since its inputs are as they
    come from the field; without an original there are kernels alone.
    """
    return Plan(
        strategy=STRATEGY,
        goal=Goal(Find.KERNEL if pair.original is None else Find.ANY, ties=True),
        devices=devices,
        rng_seed=rng_seed,
        limit=choice.limit,
        first=choice.first,
        ensemble=ensemble or (TWIN_KERNELS,),
        elsewhere=elsewhere,
        max_linf=None,
        max_l2=None,
        operators=(),
    )


def begin_survey(survey: Survey, path: Path, *, overwrite: bool) -> tuple[RunDirectory, RunJournal]:
    """Begin a survey.

    Raises:
        UserError: there is something at the path that must not be written over, such as the
            baseline.

    """
    baseline = survey.baseline
    if baseline is not None and Path(baseline.name).resolve() == path.resolve():
        raise UserError(
            f"{path} is the baseline, and would be written over: name another run directory with"
            " --out, or another run with --baseline"
        )
    inputs = len(survey.opened.seeds)
    asked = {SURVEY_KEY: plain_json(survey.plan)}
    return begin_run(path, survey.header, inputs, overwrite=overwrite, asked=asked)


def resume_survey(survey: Survey, path: Path) -> tuple[RunDirectory, RunJournal]:
    """Go on with a survey.

    Raises:
        UserError: there is none, it is about something else, others have changed its documents, or
            another process works on it.

    """
    require_survey(path, "--out")
    directory, journal = resume_run(
        path,
        survey.header,
        lambda journal: require_same_survey(journal, survey.plan, survey.items),
        documents=[SURVEY_DOCUMENT],
    )
    # Not always there, so that a user may have one in a folder whose list is lost.
    remove_files(path, *WRITTEN_FROM_IT)
    return directory, journal


def require_same_survey(journal: RunJournal, plan: SurveyPlan, items: SurveyedItems) -> None:
    """Hold a survey that goes on to what it was begun with, and note what more it is asked.

    Args:
        journal: journal of the survey, in a transaction.
        plan: what is asked now.
        items: what is surveyed now.

    Raises:
        UserError: it was begun with something else.

    """
    with reporting_damage(journal.path):
        resume_plan(journal, plan)
        require_sound(journal)
        noted_estimate(journal)
        known = journal.survey.checksums()
    require_same_inputs(items, known, str(journal.path.parent))


def run_survey(
    survey: Survey,
    journal: RunJournal,
    *,
    observer: Observer,
    survey_observer: SurveyObserver,
    interrupt: Interrupt,
) -> tuple[RunDocument, SurveyDocument | None]:
    """Run a survey, or go on with one, and write its documents.

    `run.json` is written whatever happens, `survey.json` once the host has answered all items.

    Returns:
        Both documents; None for the second where the survey was stopped before.

    Raises:
        InfrastructureError: the answers of a device have changed.
        UserError: the run cannot be resumed here, or a function of the user's fails.

    """
    plan, rare = survey.plan, None
    if plan.rare_queries is not None:
        conditions = tuple(survey.items.conditions.values())
        rare = RarePhase(
            survey.opened, conditions, plan.rare_queries, plan.confidence, survey_observer
        )
    phases = SurveyPhases(survey.items, survey_observer, survey.gates, rare)
    surveyed = None
    try:
        document = run_recorded_campaign(
            survey.opened,
            survey.header.plan,
            journal,
            observer=observer,
            interrupt=interrupt,
            phases=phases,
        )
    finally:
        if host_is_done(journal):
            surveyed = write_survey(survey, RunDirectory(journal.path.parent), journal)
    return document, surveyed


def write_survey(survey: Survey, directory: RunDirectory, journal: RunJournal) -> SurveyDocument:
    """Derive the document of a survey from its journal, and write it into the run directory."""
    document = derive_survey(directory, journal, survey.gates, survey.baseline)
    write_atomically(directory.path / SURVEY_DOCUMENT, survey_bytes(document))
    return document


@dataclass(frozen=True, slots=True)
class SurveyPhases:
    """The phases of a survey, as `run_recorded_campaign` takes them.

    What is asked is what its journal says.

    Attributes:
        items: what is surveyed.
        observer: sees progress.
        gates: gates that end the survey once all are decided.
        rare: estimates the rate of a rare event after all else; None where that is not asked for.

    """

    items: SurveyedItems
    observer: SurveyObserver
    gates: JudgedGates
    rare: RarePhase | None = None

    def __call__(self, context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
        """Run a survey to its end, or go on with one that was stopped.

        Returns:
            What stopped it before its end, or None. Precision, budget and time limit are ends.

        Raises:
            InfrastructureError: the answers of a device have changed.

        """
        with one_thread():  # as in a search
            return self._run(context, interrupt)

    def _run(self, context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
        decoder = context.panel.reading.decoders[Arm.TWIN]
        truths = Truths.of_seeds(decoder, context.seeds)
        judgement = ItemJudgement(context.plan.goal, decoder, truths)
        context.health.thermometer.read_all()
        if not judge_on_host(context, self.items, judgement, self.observer):
            return interrupt.by
        if context.journal.about().get(ENDED_KEY) is None:
            warn_of_answers(context, self.items)
            if not self._ask(context, judgement):
                return interrupt.by
        stopped = evaluate_again(context, interrupt)
        if stopped is None and self.rare is not None and not self.rare(context):
            stopped = interrupt.by
        context.health.thermometer.read_all()
        return stopped

    def _ask(self, context: CampaignContext, judgement: ItemJudgement) -> bool:
        """Ask the device, and store what deviates; return whether that came to its end."""
        facts, plan = facts_of(context.journal, ()), noted_plan(context.journal)
        seed, queries = context.plan.rng_seed, plan.device_queries
        rounds = SamplingRounds.of(facts, seed, queries, plan.earlier_queries)
        stop = StopRule(plan, self.gates)
        phase = DevicePhase(context, self.items, judgement, rounds, stop, self.observer)
        ended = phase.run()
        if ended is not None:
            self._end(context, rounds, ended, plan.findings)
        return ended is not None

    def _end(
        self, context: CampaignContext, rounds: SamplingRounds, ended: SamplingEnd, most: int
    ) -> None:
        """Note why the device is asked no further, and store findings: both or neither.

        Findings that were stored when the survey ended before stay.
        """
        facts = facts_of(context.journal)
        rates = cell_rates(facts, rounds.design.sample_of(facts.asked))
        stored = context.journal.triggers()
        rows = [
            row
            for row in context.journal.survey.device()
            if self.items.input_of(row.item) not in stored
        ]
        chosen = choose_findings(rows, facts.inputs, rates, max(0, most - len(stored)))
        with context.journal.transaction():
            _store_findings(context, self.items, chosen)
            context.journal.note(ENDED_KEY, ended)


def choose_findings(
    rows: Sequence[DeviceRow], inputs: int, cell_rates: NDArray[np.float64], most: int
) -> list[DeviceRow]:
    """Return the deviating items to store, at most one of each input.

    First comes the strongest of each cell, from the cell with the highest rate on, then the
    strongest of all; a failure is stronger than any deviation. Of equals the first item wins.

    Args:
        rows: what the device said.
        inputs: how many there are.
        cell_rates: (cells,), the estimated rate of deviations in each.
        most: number of findings, at most.

    """
    strongest = sorted(
        (row for row in rows if row.kind is not None),
        key=lambda row: (-(inf if row.strength is None else row.strength), row.item),
    )
    chosen: dict[int, DeviceRow] = {}
    for cell in np.argsort(-cell_rates, kind="stable").tolist():
        here = (
            row
            for row in strongest
            if row.item // inputs == cell and row.item % inputs not in chosen
        )
        for row in list(here)[:1]:
            chosen[row.item % inputs] = row
    for row in strongest:
        chosen.setdefault(row.item % inputs, row)
    return list(chosen.values())[:most]


def _store_findings(
    context: CampaignContext, items: SurveyedItems, rows: Sequence[DeviceRow]
) -> None:
    """Store deviating items as a search stores what it found; inside a transaction.

    The input unchanged is the seed, the item's input what was found from it. A finding needs a
    chain that led to it: one that spent nothing stands for it, as in a replay. An input that
    deviates unchanged is a deviating seed.
    """
    for row in rows:
        cell, seed_id = items.cell_of(row.item), items.input_of(row.item)
        unchanged = cell.condition == UNCHANGED
        operators = () if unchanged else (f"{cell.condition}:{cell.severity}",)
        folder = UNCHANGED_FOLDER if unchanged else CHANGED_FOLDER
        # Its answers are those of its verification; those of the survey were not kept.
        trigger = Trigger(items.make(row.item), str(row.kind), Outcome({}), operators)
        store_trigger(context, folder, seed_id, trigger)
        if not unchanged:
            context.journal.end_chain(ChainRow.nothing_spent(seed_id))
