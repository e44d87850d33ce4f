"""What a survey is asked, beside what every run is: kept in the journal, and held to on resume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edgeflare.errors import UserError
from edgeflare.record.journal import reporting_damage
from edgeflare.run.journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.items.noted_conditions import NotedCondition
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell

ENDED_KEY = "survey_ended"
"""The key of `about` under which the journal says why the device was asked no further; null where
it is to be asked further."""

STRATEGY = "survey"
"""What the document of a survey calls its strategy."""

PRECISION = 0.005
"""Half the width of the over-all interval that is aimed for where nothing else ends a survey."""

CONFIDENCE = 0.95
RARE_QUERIES = 2000
"""Device queries for rare events, about, where they are asked for and nothing else is said."""

FINDINGS = 50
"""Deviating inputs that are stored and verified, at most."""

ENDS = ("precision", "device_queries", "time_limit")
"""Fields of a plan that end a survey, and with which it may go on to ask for more."""

MORE = {
    "--precision": "a smaller --precision",
    "--device-queries": "a larger --device-queries",
    "--time-limit": "a longer --time-limit",
}
"""How more is asked for with their options: what to type, in words."""


@dataclass(frozen=True, slots=True)
class SurveyPlan:
    """What a survey is asked.

    Attributes:
        cells: what is surveyed; the first is the inputs unchanged.
        inputs: path, number and sha256 of the inputs, as plain JSON values.
        groups: name of the column that says the group of each input, the names of the groups, and
            the group of each input, as plain JSON values; None without.
        precision: half the width of the over-all interval at which the survey ends; None where it
            is no reason to end.
        device_queries: items that the device is asked about at most; None for no bound.
        time_limit: seconds that asking the device may take; None for no bound.
        confidence: of all intervals.
        gates: as the user wrote them.
        findings: deviating inputs that are stored at most.
        rare_queries: device queries for rare events, about; None where these are not asked for.
        conditions: what each condition of the cells stands for, by its name in the survey.
        baseline: path of the run directory that it is compared with; None without.
        left_out: of sets that gates name, the conditions that are not surveyed, by the set's name.
        earlier: what had been to end it before it went on with more: each has `precision`,
            `device_queries` and `time_limit` as they were, as `ended` what had ended it by then, or
            None, and as `asked` how many items the device had been asked about.

    """

    cells: tuple[Cell, ...]
    inputs: Mapping[str, Any]
    groups: Mapping[str, Any] | None = None
    precision: float | None = PRECISION
    device_queries: int | None = None
    time_limit: float | None = None
    confidence: float = CONFIDENCE
    gates: tuple[str, ...] = ()
    findings: int = FINDINGS
    rare_queries: int | None = None
    conditions: Mapping[str, NotedCondition] = field(default_factory=dict)
    baseline: str | None = None
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    earlier: tuple[Mapping[str, Any], ...] = ()

    @property
    def earlier_queries(self) -> tuple[int, ...]:
        """The bounds on device queries that there were before, rising."""
        return tuple(one["device_queries"] for one in self.earlier if one["device_queries"])

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "cells": [[cell.condition, cell.severity] for cell in self.cells],
            "inputs": dict(self.inputs),
            "groups": None if self.groups is None else dict(self.groups),
            "precision": self.precision,
            "device_queries": self.device_queries,
            "time_limit": self.time_limit,
            "confidence": self.confidence,
            "gates": list(self.gates),
            "findings": self.findings,
            "rare_queries": self.rare_queries,
            "conditions": {name: one.to_json() for name, one in self.conditions.items()},
            "baseline": self.baseline,
            "left_out": {name: list(some) for name, some in self.left_out.items()},
            "earlier": [dict(one) for one in self.earlier],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> SurveyPlan:
        """Return the plan that `to_json` described.

        Raises:
            LookupError, TypeError, ValueError: it is none; its journal is damaged.

        """
        cells = tuple(Cell(condition, severity) for condition, severity in fields["cells"])
        if cells[:1] != (Cell(UNCHANGED, 0),):
            raise ValueError("its first cell is not the inputs unchanged")
        if not (isinstance(fields["inputs"]["count"], int) and fields["inputs"]["count"] > 0):
            raise ValueError(f"it has {fields['inputs']['count']!r} inputs")
        if not isinstance(fields.get("baseline"), str | None):
            raise ValueError(f"its baseline is {fields['baseline']!r}")
        noted = fields.get("conditions", {}).items()
        conditions = {name: NotedCondition.from_json(one) for name, one in noted}
        left_out = {name: tuple(some) for name, some in fields.get("left_out", {}).items()}
        changed = {"cells": cells, "gates": tuple(fields["gates"]), "conditions": conditions}
        earlier = tuple(fields.get("earlier", ()))
        for one in earlier:
            if not isinstance(one, dict) or one.keys() != {*ENDS, "ended", "asked"}:
                raise ValueError(f"before it was to end by {one!r}")
            if not (
                isinstance(one["device_queries"], int | None) and isinstance(one["asked"], int)
            ):
                raise ValueError(f"it had {one['device_queries']!r} device queries")
        return cls(**{**fields, **changed, "left_out": left_out, "earlier": earlier})


def default_precision(precision: float | None, others: Iterable[object | None]) -> float | None:
    """Return the precision to end at: what was asked, else the default where nothing else ends it.

    Args:
        precision: what was asked; None for nothing.
        others: what else ends the survey, such as a budget or a gate; None for nothing.

    """
    if precision is not None or any(other is not None for other in others):
        return precision
    return PRECISION


def noted_plan(journal: RunJournal) -> SurveyPlan:
    """Return the plan of a survey's journal.

    Raises:
        UserError: it is that of another run, or damaged.

    """
    with reporting_damage(journal.path):
        noted = journal.about().get(SURVEY_KEY)
        if noted is not None:
            return SurveyPlan.from_json(noted)
    raise UserError(f"{journal.path.parent} is no survey: name a run of `edgeflare survey`")


def resume_plan(journal: RunJournal, plan: SurveyPlan) -> None:
    """Hold a survey that is resumed to what its journal says that it was asked.

    To be called inside a transaction. A survey that is resumed may be asked for more: for a larger
    number of device queries or a longer time, or for a smaller half width. What had been to end it
    is kept as `earlier`.

    Raises:
        UserError: the survey was begun with something else; the option is named. Or its journal
            is damaged.

    """
    if (more := plan_with_more(journal, plan)) is not None:
        journal.note(SURVEY_KEY, more.to_json())
        journal.note(ENDED_KEY, None)


def plan_with_more(journal: RunJournal, plan: SurveyPlan) -> SurveyPlan | None:
    """Return the plan of a survey that is resumed to ask for more; None where it does not.

    Raises:
        UserError: as `resume_plan`.

    """
    before = noted_plan(journal)
    more = {name for name in ENDS if _asks_for_more(before, plan, name)}
    kept = replace(plan, **{name: getattr(before, name) for name in more})
    was, now = _by_option(before.to_json()), _by_option(kept.to_json())
    for option, value in was.items():
        if now[option] != value:
            raise UserError(_another(journal.path.parent, was, now, option))
    if not more:
        return None
    ended = {name: getattr(before, name) for name in ENDS}
    ended["ended"] = journal.about().get(ENDED_KEY)
    ended["asked"] = len(journal.survey.device_items())
    return replace(plan, earlier=(*before.earlier, ended))


def _another(run: Path, before: Mapping[str, Any], now: Mapping[str, Any], option: str) -> str:
    """Say that a survey was begun with another value of an option, and what to type."""
    was, given = before[option], now[option]
    begun, instead = f"with {option} {was}", str(given)
    if was is None:
        begun = f"without {option}"
        instead = "with it" if given is True else f"with {option} {given}"
    elif given is None:
        begun, instead = f"with {option}" if was is True else begun, "without it"
    said = (
        f"{run} was begun {begun}, not {instead}: repeat the command that began it, with --resume"
    )
    if option not in MORE:
        return f"{said}, or name another folder with --out"
    more = " or ".join(words for name, words in MORE.items() if before[name] is not None)
    return f"{said}, and {more} if the device is to be asked further" if more else said


def _asks_for_more(before: SurveyPlan, plan: SurveyPlan, name: str) -> bool:
    """Whether a plan ends later by one of `ENDS`; None never ends a survey."""
    was, now = getattr(before, name), getattr(plan, name)
    if was is None or was == now:
        return False
    return now is None or (now < was if name == "precision" else now > was)


def _by_option(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a plan's fields under the options that set them, in words; None for what is not."""
    inputs, groups, cells = fields["inputs"], fields["groups"], fields["cells"][1:]
    conditions = {name: NotedCondition.from_json(one) for name, one in fields["conditions"].items()}
    values = {
        "--conditions": ",".join(
            conditions[name].words(name) if name in conditions else name
            for name in dict.fromkeys(name for name, _ in cells)
        ),
        "--severities": _severities(cells),
        "--inputs": f"{inputs['path']} ({inputs['count']} with sha256 {inputs['sha256'][:12]}…)",
        "--groups": groups and f"{groups['column']} ({', '.join(groups['names'])})",
        "--precision": fields["precision"],
        "--device-queries": fields["device_queries"],
        "--time-limit": fields["time_limit"],
        "--confidence": fields["confidence"],
        "--gate": " --gate ".join(fields["gates"]),
        "--findings": fields["findings"],
        "--rare": True if fields["rare_queries"] is not None else None,
        "--rare-queries": fields["rare_queries"],
        "--baseline": fields["baseline"],
    }
    return {option: None if value == "" else value for option, value in values.items()}


def cells_in_words(plan: SurveyPlan) -> str:
    """Return the conditions of a plan and their severities; empty where inputs stay as they are."""
    said = _by_option(plan.to_json())
    if said["--conditions"] is None:
        return ""
    return f"conditions {said['--conditions']}; severities {said['--severities']}"


def _severities(cells: list[list[Any]]) -> str:
    """Return the severities of the cells: once where all conditions have the same."""
    by_condition: dict[str, list[str]] = {}
    for name, severity in cells:
        by_condition.setdefault(name, []).append(str(severity))
    same = {",".join(severities) for severities in by_condition.values()}
    if len(same) <= 1:
        return "".join(same)
    return "; ".join(f"{name} {','.join(found)}" for name, found in by_condition.items())
