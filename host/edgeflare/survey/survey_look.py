"""What a survey would take, measured on a few of its items; nothing of it is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgeflare.core.query import Arm
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader, require_same
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.statistics.proportion import sample_size
from edgeflare.survey.items.survey_items import require_same_inputs
from edgeflare.survey.record.survey_journal import require_survey
from edgeflare.survey.record.survey_plan import ENDED_KEY, plan_with_more
from edgeflare.survey.survey_run import Survey

_MOST_ITEMS = 96
"""Enough for a second or two of most models, and for a look at each condition."""

_MOST_DEVICE_ITEMS = 16


@dataclass(frozen=True, slots=True)
class SurveyLook:
    """What a survey would take.

    Attributes:
        items: items that the host answers.
        host_seconds: time of the host's answers, about.
        device_seconds: time of one device query, about.
        most_queries: device queries at most.
        plain_queries: device queries that plain sampling takes to the precision at a rate of 5 %;
            None where precision does not end the survey.

    """

    items: int
    host_seconds: float
    device_seconds: float
    most_queries: int
    plain_queries: int | None


@dataclass(frozen=True, slots=True)
class SurveyProgress:
    """How far a survey has come that is to be gone on with.

    Attributes:
        host: items that the host has answered.
        device: items that the device was asked about.
        ended: whether it has ended, and would not be asked for more.

    """

    host: int
    device: int
    ended: bool


def progress_of(survey: Survey, path: Path) -> SurveyProgress:
    """Return how far a survey has come; nothing is written.

    Args:
        survey: as it is to be gone on with.
        path: run directory of the survey.

    Raises:
        UserError: there is none, or it is about something else.

    """
    require_survey(path, "--out")
    with RunJournal.read(RunDirectory(path).journal) as journal:
        noted = journal.about()
        require_same(RunHeader.from_json(noted), survey.header, str(path))
        more = None if SURVEY_KEY not in noted else plan_with_more(journal, survey.plan)
        require_same_inputs(survey.items, journal.survey.checksums(), str(path))
        return SurveyProgress(
            len(journal.survey.host_items()),
            len(journal.survey.device_items()),
            ended=more is None and noted.get(ENDED_KEY) is not None,
        )


def look_at(survey: Survey) -> SurveyLook:
    """Make and evaluate a few items, spread over all conditions, and say what all would take."""
    items, plan = len(survey.items), survey.plan
    chosen = np.unique(np.linspace(0, items - 1, _MOST_ITEMS).astype(np.int64)).tolist()
    hosts = tuple(arm for arm in survey.opened.panel.arms if arm is not Arm.DEVICE)
    on_host = _seconds(survey, chosen, hosts) / len(chosen)
    few = chosen[:_MOST_DEVICE_ITEMS]
    on_device = _seconds(survey, few, (Arm.DEVICE,)) / len(few)
    budget = plan.device_queries
    precision = plan.precision
    plain = None if precision is None else sample_size(precision, plan.confidence, items, 0.05)
    return SurveyLook(
        items=items,
        host_seconds=on_host * items,
        device_seconds=on_device,
        most_queries=items if budget is None else min(budget, items),
        plain_queries=plain,
    )


def _seconds(survey: Survey, items: list[int], arms: tuple[Arm, ...]) -> float:
    """Return how long it takes to make some items and have arms answer them."""
    begun = time.monotonic()
    inputs = [survey.items.make(item) for item in items]
    for _ in survey.opened.evaluate(inputs, [survey.items.input_of(item) for item in items], arms):
        pass
    return time.monotonic() - begun
