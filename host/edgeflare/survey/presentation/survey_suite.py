"""A survey as cases: one for each gate, and one for each condition."""

from __future__ import annotations

from typing import Any

import msgspec

from edgeflare.pages.junit import JUnitCase, JUnitFailure, Suite
from edgeflare.survey.gates.gate_judgement import HELD, NOT_HELD, DescribedGate
from edgeflare.survey.presentation.gate_words import gate_sentence, next_step
from edgeflare.survey.presentation.survey_words import (
    ending,
    headline,
    rare_sentences,
    release_sentence,
    shown_plan,
)
from edgeflare.survey.rates.rate_words import interval
from edgeflare.survey.record.survey_document import SurveyDocument

_EXTENSIVE = ("repetitions", "thresholds")
"""What is known of rare events in as many figures as no server shows."""


def survey_suite(document: SurveyDocument) -> Suite:
    """Return a survey as cases.

    A gate that is not held fails, and so does one that is undecided, as they do for the exit code.
    A condition fails where a gate about it, or about a set that it is of, is not held or undecided;
    without gates all cases pass, since nothing says what a rate may be. The rates are
    properties, and so is what was found of rare events.

    Args:
        document: as `read_survey` returns it.

    """
    by_condition = [document.unchanged, *document.by_condition.slices]
    missed = {
        name: gate
        for gate in document.gates
        for name in gate.conditions or ()
        if gate.state != HELD
    }
    return Suite(
        command="survey",
        name=document.pair.name,
        known={
            "edgeflare": document.edgeflare,
            "survey": headline(document),
            "sentence": release_sentence(document),
            "ended": ending(document),
            "rate": {str(one.condition): interval(one.rate) for one in by_condition},
            "rare events": _rare(document),
            "pair": document.pair,
            "plan": shown_plan(document),
            **{f"device {one.name}": one.provenance for one in document.devices},
        },
        cases=[
            *(_case(document, f"gate {gate.name}", gate) for gate in document.gates),
            *(
                _case(document, f"condition {one.condition}", missed.get(one.condition or ""))
                for one in by_condition
            ),
        ],
        seconds=document.seconds,
    )


def _rare(document: SurveyDocument) -> dict[str, Any]:
    """Return what was found of rare events, in words and figures; nothing without them."""
    rare = document.rare
    if rare is None:
        return {}
    figures = {
        key: value for key, value in msgspec.structs.asdict(rare).items() if key not in _EXTENSIVE
    }
    return {"found": " ".join(rare_sentences(document)), **figures}


def _case(document: SurveyDocument, name: str, gate: DescribedGate | None) -> JUnitCase:
    """Return a case, which fails where its gate is not held; None for no gate."""
    if gate is None or gate.state == HELD:
        return JUnitCase(name=name)
    message = f"gate {gate_sentence(gate)}{next_step(document, gate)}"
    kind = "gate" if gate.state == NOT_HELD else "undecided"
    return JUnitCase(name=name, failure=JUnitFailure(message, kind, message))
