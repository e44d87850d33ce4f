"""Surveys over linear models: the real phases on a laboratory's models."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from documents import Document
from edgeflare.campaign.campaign import StoppedBy
from edgeflare.campaign.campaign_context import CampaignContext
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY, DeviceRow, HostRow
from edgeflare.survey.gates.gate_judgement import JudgedGates
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.items.survey_inputs import AskedInputs
from edgeflare.survey.items.survey_items import SurveyedItems
from edgeflare.survey.phases.survey_observer import DeviceProgress
from edgeflare.survey.rare_events.rare_phase import RARE_KEY, RarePhase
from edgeflare.survey.record.survey_journal import facts_of
from edgeflare.survey.record.survey_plan import STRATEGY, SurveyPlan
from edgeflare.survey.survey_run import SurveyPhases, require_same_survey
from laboratory import Laboratory


def _noise(one: Input, severity: float, rng: np.random.Generator) -> Input:
    noisy = one + rng.normal(scale=6.0 * severity, size=one.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(one.dtype)


def _dark(one: Input, severity: float, _rng: np.random.Generator) -> Input:
    return (one // (1 + severity)).astype(one.dtype)


NOISE = Condition("grain", "image", ("noise",), "grain", _noise)
DARK = Condition("dusk", "image", (), "less light", _dark)
CHOSEN = (ChosenCondition("grain", NOISE, (1, 3, 5)), ChosenCondition("dusk", DARK, (1, 2)))


@dataclass
class StoppingObserver:
    """Stops a survey at so many items of the host, items of the device, or repetitions."""

    host: float = float("inf")
    device: float = float("inf")
    repetitions: float = float("inf")
    interrupt: Interrupt = field(default_factory=Interrupt)
    shown: list[DeviceProgress] = field(default_factory=list)

    def judged(self, done: int, total: int) -> None:
        assert done <= total
        if done >= self.host:
            self.interrupt.ask()

    def repeated(self, done: int, total: int) -> None:
        assert done <= total
        if done >= self.repetitions:
            self.interrupt.ask()

    def asked(self, progress: DeviceProgress) -> None:
        self.shown.append(progress)
        if progress.asked >= self.device:
            self.interrupt.ask()


@dataclass
class LaboratorySurvey:
    """A survey of a laboratory's images, darkened and with grain.

    `plan` changes fields of its plan; what its journal holds in the end is read by `facts`, `host`,
    `device` and `rare`.
    """

    laboratory: Laboratory
    plan: dict[str, Any] = field(default_factory=dict)
    gates: JudgedGates = field(default_factory=JudgedGates)

    @property
    def items(self) -> SurveyedItems:
        images = self.laboratory.images
        space = self.laboratory.interface.domain.space
        return SurveyedItems.of(CHOSEN, images, space, rng_seed=0)

    def run(self, name: str, observer: StoppingObserver | None = None, **options: Any) -> Document:
        """Run the survey, or go on with it; `options` are those of `Laboratory.run`."""
        watching = observer or StoppingObserver()
        inputs = AskedInputs("laboratory", len(self.laboratory.images), 64 * "0")
        asked = {"precision": None, "findings": 5, **self.plan}
        plan = SurveyPlan(cells=self.items.cells, inputs=inputs, **asked)

        def run(context: CampaignContext, interrupt: Interrupt) -> StoppedBy | None:
            watching.interrupt = interrupt
            rare = self._rare(context, plan, watching)
            return SurveyPhases(self.items, watching, self.gates, rare)(context, interrupt)

        return self.laboratory.run(
            name,
            phases=run,
            asked={SURVEY_KEY: plain_json(plan)},
            require=lambda journal: require_same_survey(journal, plan, self.items),
            strategy=STRATEGY,
            **{"chains": 64, **options},  # for batches of sixteen, the first of a real survey
        )

    def _rare(
        self, context: CampaignContext, plan: SurveyPlan, observer: StoppingObserver
    ) -> RarePhase | None:
        if plan.rare_queries is None:
            return None
        opened = self.laboratory.opened(context.panel, context.plan)
        conditions = (NOISE, DARK)
        return RarePhase(opened, conditions, plan.rare_queries, plan.confidence, observer)

    def facts(self, name: str) -> SurveyFacts:
        facts: SurveyFacts = self._read(name, facts_of)
        return facts

    def rare(self, name: str) -> Document | None:
        """What was found of rare events, without times; None where nothing was."""
        found = self._read(name, lambda journal: journal.about().get(RARE_KEY))
        return found and {**found, "seconds": 0.0}

    def host(self, name: str) -> list[HostRow]:
        rows = self._read(name, lambda journal: journal.survey.host())
        return [replace(row, seconds=0.0) for row in rows]

    def device(self, name: str) -> list[DeviceRow]:
        rows = self._read(name, lambda journal: journal.survey.device())
        return [replace(row, seconds=0.0) for row in rows]

    def _read(self, name: str, read: Callable[[RunJournal], Any]) -> Any:
        path: Path = self.laboratory.folder / name / "run.db"
        with closing(RunJournal.open(path)) as journal:
            return read(journal)
