"""What a survey says in words of one of its gates."""

from __future__ import annotations

from shlex import quote
from typing import Final

from edgeflare.record.request import how_to_ask_more
from edgeflare.survey.gates.gate_judgement import UNDECIDED, DescribedGate
from edgeflare.survey.record.survey_document import SurveyDocument
from edgeflare.survey.record.survey_plan import SurveyPlan

_ARGUMENTS: Final = {
    "device-queries": "a larger device_queries=",
    "time-limit": "a longer time_limit=",
    "precision": "a smaller precision=, or none",
}
"""What to give a survey that is a test where one of these ended it before a gate was decided."""


def gate_sentence(gate: DescribedGate) -> str:
    """Return what became of a gate: `rate<0.01 is held: …`."""
    return f"{gate.name} is {gate.state}: {gate.words}"


def gated_conditions(document: SurveyDocument) -> frozenset[str]:
    """Return the conditions that gates of a survey name one by one, and not as a part of a set."""
    return frozenset(
        gate.condition
        for gate in document.gates
        if gate.condition is not None and gate.conditions == (gate.condition,)
    )


def next_step(document: SurveyDocument, gate: DescribedGate, where: str = "RUN") -> str:
    """Return what to type where a gate is undecided, to be put behind its sentence; else nothing.

    Args:
        document: document of the survey; one that is still running has nothing that ended it.
        gate: one of its gates.
        where: the run directory as the user knows it; its placeholder in a file that is passed on.

    """
    if gate.state != UNDECIDED or document.stopped_by is None:
        return ""
    words = how_to_ask_more(SurveyPlan, f"--{document.stopped_by}")
    more = "" if words is None else f" and {words}"
    return f"; the same command with --out {quote(where)} --resume{more} goes on"


def next_arguments(document: SurveyDocument, gate: DescribedGate) -> str:
    """Return what to change in a test where a gate is undecided, likewise; else nothing.

    Args:
        document: document of the survey.
        gate: one of its gates.

    """
    more = _ARGUMENTS.get(document.stopped_by or "") if gate.state == UNDECIDED else None
    return "" if more is None else f"; to decide it, give {more}"
