"""`survey.json`, schema `edgeflare.survey/v1`: what a survey found, and what it was asked.

`record/survey.schema.json` describes it; docs/survey.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from typing import Any

import numpy as np

from edgeflare import __version__
from edgeflare.run.holm_correction import holm
from edgeflare.survey.estimate.field_interval import FieldInterval, field_interval
from edgeflare.survey.estimate.pooling_check import pooling_p_value
from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.items.measures import headline
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.rates.baseline import BaselineSurvey, compare
from edgeflare.survey.rates.group_differences import group_differences
from edgeflare.survey.rates.item_parts import surveyed
from edgeflare.survey.rates.overall_rate import overall_rate
from edgeflare.survey.rates.slices import survey_rates
from edgeflare.survey.record.survey_file import SCHEMA
from edgeflare.survey.shown.survey_words import release_sentence

ABOUT = (
    "pair", "devices", "host", "classes", "plan", "stopped_by", "seconds", "device_queries",
    "overhead_device_queries", "gates", "findings", "rare", "warnings",
)  # fmt: skip
"""The keys that whoever ran the survey gives, as `survey.schema.json` describes them."""

_STREAM = 0x9001
"""Tells the generator of the permutations from others of the run seed."""

DIGITS = 9
"""Of a figure; more say nothing, and differ between machines."""


def survey_document(
    facts: SurveyFacts,
    sample: Sample,
    about: Mapping[str, Any],
    baseline: BaselineSurvey | None = None,
) -> dict[str, Any]:
    """Return a survey as plain JSON values.

    Args:
        facts: what is known of its items.
        sample: which of them the device was asked about.
        about: all of `ABOUT`; `plan` has the `confidence`, the `rng_seed` and the `inputs`.
        baseline: what it is compared with; None where nothing was asked.

    Raises:
        UserError: the baseline is of other inputs, cells or draws; says which.

    """
    confidence = float(about["plan"]["confidence"])
    rates = {key: _plain(one) for key, one in _fields(survey_rates(facts, sample, confidence))}
    document = {
        "schema": SCHEMA,
        "edgeflare": __version__,
        **{key: _plain(about[key]) for key in ABOUT},
        "confidence": confidence,
        "has_original": facts.has_original,
        "inputs": facts.inputs,
        "items": facts.items,
        "asked": int(sample.asked.sum()),
        "labelled": int(facts.labelled[: facts.inputs].sum()),
        "distance": facts.distance_noun or None,
        "truth_measure": facts.truth_measure or None,
        **rates,
        "pooling": _pooling(facts, sample, about["plan"]),
        "field": _plain(_field(facts, sample, confidence)),
        "groups": _plain(group_differences(facts, sample, confidence)),
        "baseline": None,
    }
    if baseline is not None:
        document["baseline"] = _plain(compare(facts, document, baseline))
    return {**document, "sentence": release_sentence(document)}


def _field(facts: SurveyFacts, sample: Sample, confidence: float) -> FieldInterval:
    """Return the limits of the rate over all, where the inputs are a sample of the field's."""
    fact, chosen = headline(facts), surveyed(facts)
    found = overall_rate(facts, sample, confidence)
    field = field_interval(found, fact, sample, facts.input, chosen, confidence)
    return replace(field, low=max(0.0, field.low), high=min(1.0, field.high))


def _pooling(facts: SurveyFacts, sample: Sample, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return whether conditions, severities or classes differ in how often the device surprises."""
    fact, rng = headline(facts), np.random.default_rng([plan["rng_seed"], _STREAM])
    names = [one.condition for one in facts.cells]
    numbers = {name: at for at, name in enumerate(dict.fromkeys(names))}
    conditions = np.asarray([numbers[name] for name in names])[facts.cell]
    severities = np.asarray([one.severity for one in facts.cells])[facts.cell]
    p_values = [
        pooling_p_value(fact, sample, slices, rng)
        for slices in (conditions, severities, facts.classes)
    ]
    surprises = int((sample.asked & (fact.seen != fact.foretold)).sum())
    return {"p": min(holm(p_values)), "surprises": surprises}


def _fields(one: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(one, name)) for name in one.__dataclass_fields__]


def _plain(value: Any) -> Any:
    """Return what JSON holds, figures rounded."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value
