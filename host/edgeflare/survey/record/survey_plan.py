"""What a survey is asked, beside what every run is: kept in the journal, and held to on resume.

The journal is also told of its conditions: what each name stands for, and whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import structs

from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.conditions.condition_registry import package_of
from edgeflare.errors import UserError
from edgeflare.record.journal import reporting_damage
from edgeflare.record.json_types import Count, Number, plain_json
from edgeflare.record.request import DERIVED, Option, require_same_request
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import SURVEY_KEY
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell
from edgeflare.survey.items.survey_inputs import AskedGroups, AskedInputs

SamplingEnd = Literal["precision", "gates", "device-queries", "time-limit", "all-items"]
"""Why the device is asked about no further item."""

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


@dataclass(frozen=True, slots=True)
class EarlierEnds:
    """What had been to end a survey before it went on with more.

    Attributes:
        precision: as in the plan, as the next two.
        ended: what had ended it by then; null where it was stopped before.
        asked: how many items the device had been asked about.

    """

    precision: Number | None
    device_queries: Count | None
    time_limit_seconds: Number | None
    ended: SamplingEnd | None
    asked: Count


def bounds_on_queries(earlier: Sequence[EarlierEnds]) -> tuple[int, ...]:
    """Return the bounds on device queries among what had been to end a survey, rising."""
    return tuple(ends.device_queries for ends in earlier if ends.device_queries)


def _conditions_in_words(conditions: Mapping[str, NotedCondition]) -> str | None:
    return ",".join(condition.words(name) for name, condition in conditions.items()) or None


def _severities_in_words(cells: Sequence[Cell]) -> str | None:
    """Return the severities of the cells: once where all conditions have the same."""
    by_condition: dict[str, list[str]] = {}
    for cell in cells[1:]:
        by_condition.setdefault(cell.condition, []).append(str(cell.severity))
    same = {",".join(severities) for severities in by_condition.values()}
    if len(same) <= 1:
        return "".join(same) or None
    return "; ".join(f"{name} {','.join(found)}" for name, found in by_condition.items())


class SurveyBounds(msgspec.Struct, frozen=True, kw_only=True):
    """When a survey has asked the device enough, and what is judged then.

    Attributes:
        precision: half the width of the over-all interval at which the survey ends; None where it
            is no reason to end.
        device_queries: items that the device is asked about at most; None for no bound.
        time_limit_seconds: seconds that asking the device may take; None for no bound.
        confidence: confidence of all intervals and gates.
        gates: what has to hold, as the user wrote it.
        findings: deviating inputs that are stored at most.
        rare_queries: device queries for rare events, about; None where these are not asked for.

    """

    precision: Annotated[Number | None, Option("--precision", more="smaller")] = PRECISION
    device_queries: Annotated[Count | None, Option("--device-queries", more="larger")] = None
    time_limit_seconds: Annotated[Number | None, Option("--time-limit", more="longer")] = None
    confidence: Number = CONFIDENCE
    gates: Annotated[
        tuple[str, ...], Option("--gate", lambda gates: " --gate ".join(gates) or None)
    ] = ()
    findings: Count = FINDINGS
    rare_queries: Count | None = None

    @classmethod
    def asked(cls, *, rare: bool, **given: Any) -> SurveyBounds:
        """Return the bounds that a user gave, with the defaults that depend on one another.

        Args:
            rare: whether rare events are asked for.
            given: the fields, None where nothing was said.

        Raises:
            UserError: --rare is missing, or a gate is none.

        """
        rare_queries = given["rare_queries"]
        if rare_queries is not None and not rare:
            raise UserError(f"--rare-queries {rare_queries}: is of rare events; add --rare")
        gates = given["gates"] or ()
        gates = (gates,) if isinstance(gates, str) else gates
        given["gates"] = tuple(parse_gate(gate).text for gate in gates)
        others = (given["device_queries"], given["time_limit_seconds"], *given["gates"])
        given["precision"] = default_precision(given["precision"], others)
        given["rare_queries"] = (rare_queries or RARE_QUERIES) if rare else None
        return cls(**given)


class SurveyPlan(SurveyBounds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a survey is asked.

    Attributes:
        cells: what is surveyed; the first is the inputs unchanged.
        inputs: the surveyed inputs.
        conditions: what each condition of the cells stands for, by its name in the survey.
        groups: groups of the inputs; None without.
        baseline: path of the run directory that it is compared with; None without.
        left_out: conditions of each set named by a gate that are not surveyed, by the set's name.
        earlier: what had been to end the survey, each time before it went on with more.

    Raises:
        ValueError: its first cell is not the inputs unchanged.

    """

    conditions: Annotated[
        Mapping[str, NotedCondition], Option("--conditions", _conditions_in_words, ordered=True)
    ] = msgspec.field(default_factory=dict)
    cells: Annotated[tuple[Cell, ...], Option("--severities", _severities_in_words)]
    inputs: Annotated[AskedInputs, Option("--inputs")]
    groups: Annotated[AskedGroups | None, Option("--groups")] = None
    baseline: str | None = None
    left_out: Annotated[Mapping[str, tuple[str, ...]], DERIVED] = msgspec.field(
        default_factory=dict
    )
    earlier: Annotated[tuple[EarlierEnds, ...], DERIVED] = ()

    def __post_init__(self) -> None:
        """Refuse cells of no survey."""
        if self.cells[:1] != (Cell(UNCHANGED, 0),):
            raise ValueError("its first cell is not the inputs unchanged")

    @property
    def items(self) -> int:
        """How many items there are: an input in a cell each."""
        return len(self.cells) * int(self.inputs.count)

    @property
    def earlier_queries(self) -> tuple[int, ...]:
        """The bounds on device queries that there were before, rising."""
        return bounds_on_queries(self.earlier)

    @property
    def cells_in_words(self) -> str:
        """The conditions and their severities; empty where inputs stay as they are."""
        conditions = _conditions_in_words(self.conditions)
        if conditions is None:
            return ""
        return f"conditions {conditions}; severities {_severities_in_words(self.cells)}"


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
        UserError: it is that of another run.

    """
    with reporting_damage(journal.path):
        noted = journal.about().get(SURVEY_KEY)
        if noted is not None:
            return msgspec.convert(noted, SurveyPlan)
    raise UserError(f"{journal.path.parent} is no survey: name a run of `edgeflare survey`")


def resume_plan(journal: RunJournal, plan: SurveyPlan) -> None:
    """Hold a survey that is resumed to what its journal says that it was asked.

    To be called inside a transaction. A survey that is resumed may be asked for more: for a larger
    number of device queries or a longer time, or for a smaller half width. What had been to end it
    is kept as `earlier`.

    Raises:
        UserError: the survey was begun with something else; the option is named.

    """
    if (more := plan_with_more(journal, plan)) is not None:
        journal.note(SURVEY_KEY, plain_json(more))
        journal.note(ENDED_KEY, None)


def plan_with_more(journal: RunJournal, plan: SurveyPlan) -> SurveyPlan | None:
    """Return the plan of a survey that is resumed to ask for more; None where it does not."""
    before = noted_plan(journal)
    if not require_same_request(before, plan, journal.path.parent):
        return None
    ended = EarlierEnds(
        precision=before.precision,
        device_queries=before.device_queries,
        time_limit_seconds=before.time_limit_seconds,
        ended=journal.about().get(ENDED_KEY),
        asked=len(journal.survey.device_items()),
    )
    return structs.replace(plan, earlier=(*before.earlier, ended))


@dataclass(frozen=True, slots=True)
class NotedCondition:
    """What a name in a survey stands for.

    Attributes:
        condition: the condition's own name; a file may give it another one.
        sets: names of the sets that it belongs to.
        package: name and version of the package of others that brings it; empty for ours, whose
            version the journal has anyway.

    """

    condition: str
    sets: tuple[str, ...] = ()
    package: str = ""

    def words(self, name: str) -> str:
        """Return the name, with what it stands for where that does not go without saying."""
        condition = "" if name == self.condition else self.condition
        whose = f"of {self.package}" if self.package else ""
        said = " ".join(filter(None, (condition, whose)))
        return f"{name} ({said})" if said else name


def noted_conditions(chosen: Sequence[ChosenCondition]) -> dict[str, NotedCondition]:
    """Return what is noted of chosen conditions, by the names that they have in the survey.

    Raises:
        UserError: edgeflare is not installed.

    """
    return {
        chosen_condition.name: NotedCondition(
            chosen_condition.condition.name,
            chosen_condition.condition.sets,
            package_of(chosen_condition.condition),
        )
        for chosen_condition in chosen
    }


def noted_sets(conditions: Mapping[str, NotedCondition]) -> dict[str, frozenset[str]]:
    """Return the names that noted conditions have in a survey, by the sets that they are of."""
    names = {name for condition in conditions.values() for name in condition.sets}
    return {
        name: frozenset(at for at, condition in conditions.items() if name in condition.sets)
        for name in names
    }
