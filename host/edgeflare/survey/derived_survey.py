"""The document of a survey, derived from its journal: at its end, and of one that was cut off."""

from __future__ import annotations

import json
import shlex
from contextlib import closing
from typing import Any

from edgeflare.errors import UserError
from edgeflare.record.folder_lock import is_locked
from edgeflare.run.derive_document import derive_document
from edgeflare.run.journal import Journal
from edgeflare.run.journal_database import reporting_damage
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.gates.judged_gates import JudgedGates
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.items.noted_conditions import noted_sets
from edgeflare.survey.items.sampling_rounds import SamplingRounds
from edgeflare.survey.rates.baseline import BaselineSurvey
from edgeflare.survey.record.survey_file import check_survey
from edgeflare.survey.record.survey_journal import facts_of, host_is_done
from edgeflare.survey.record.survey_plan import noted_plan
from edgeflare.survey.survey_about import about_survey
from edgeflare.survey.survey_document import survey_document

RUNNING = "the survey is still running: this is what is known so far"


def derive_survey(
    directory: RunDirectory,
    journal: Journal,
    gates: JudgedGates,
    baseline: BaselineSurvey | None,
) -> dict[str, Any]:
    """Return the document of a survey, whose host has answered all items, as plain JSON values.

    Args:
        directory: of the run.
        journal: its journal.
        gates: of the survey.
        baseline: what it is compared with; None where nothing was asked.

    Raises:
        UserError: the baseline is of other items; says which.

    """
    document = derive_document(directory, journal)
    about = about_survey(journal, document)
    facts, plan = facts_of(journal), noted_plan(journal)
    rounds = SamplingRounds.replayed(
        facts, document.rng_seed, plan.device_queries, plan.earlier_queries
    )
    about["gates"] = gates.described(facts, rounds)
    return survey_document(facts, rounds.design.sample_of(facts.asked), about, baseline)


def derive_unwritten_survey(directory: RunDirectory) -> dict[str, Any]:
    """Return the document of a survey that was cut off, or still runs, before it was written.

    It is compared with nothing: where its baseline lies only the run itself says, and what a run
    names outside of itself is not opened because it says so.

    Args:
        directory: of the run.

    Raises:
        UserError: the host has not answered all items, so that there is nothing to say yet; or
            what is there is damaged.

    """
    running = is_locked(directory.path)
    with closing(Journal.open(directory.journal)) as journal:
        plan = noted_plan(journal)
        # In a transaction all is of one moment, also while the survey goes on.
        with reporting_damage(directory.journal), journal.transaction():
            if not host_is_done(journal):
                done = journal.survey.host_count()
                items = len(plan.cells) * int(plan.inputs["count"])
                raise UserError(f"{directory.path} {_nothing_yet(done, items, running=running)}")
            texts, sets = plan.gates, noted_sets(plan.conditions)
            gates = JudgedGates(tuple(map(parse_gate, texts)), plan.confidence, sets, plan.left_out)
            derived = derive_survey(directory, journal, gates, None)
            if running:
                derived["stopped_by"] = None
                derived["warnings"].append(RUNNING)
            if plan.baseline is not None:
                derived["warnings"].append(_not_compared(plan.baseline))
            text = json.dumps(derived).encode()
    return check_survey(text, directory.journal)


def _not_compared(baseline: str) -> str:
    """Say how a survey is compared with what it was begun with."""
    return (
        "not compared with its baseline yet, which is opened only where a command names it: the"
        f" `edgeflare survey` that began it, with --baseline {shlex.quote(baseline)} --resume, does"
    )


def _nothing_yet(done: int, items: int, *, running: bool) -> str:
    """Say how far the host has come, before which there is nothing to show."""
    if running:
        return (
            f"is a survey that is still running: the host's models have answered {done:,} of"
            f" {items:,} items; there is something to show once they have answered all"
        )
    return (
        f"is a survey that was stopped before the host's models had answered all items ({done:,} of"
        f" {items:,}): finish it with --resume"
    )
