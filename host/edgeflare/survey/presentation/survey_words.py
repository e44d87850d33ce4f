"""What a survey says in words: its headline, a sentence for release notes, gates, rare events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from shlex import quote
from typing import Final

import msgspec

from edgeflare.core.interrupt import INTERRUPTED_BY
from edgeflare.pages.facts import count_of
from edgeflare.record.request import how_to_ask_more
from edgeflare.report.entry_words import input_words
from edgeflare.survey.gates.gate_judgement import STATE_WORDS, DescribedGate
from edgeflare.survey.rates.rate_interval import Rate, SignedEstimate
from edgeflare.survey.rates.rate_words import (
    between,
    bounds,
    estimated,
    exact,
    interval,
    percent,
)
from edgeflare.survey.rates.slices import TruthDistance
from edgeflare.survey.record.survey_document import AskedPlan, RareEstimate, SurveyDocument
from edgeflare.survey.record.survey_plan import SurveyPlan

UNEVEN = 0.01
"""Probability of conditions that differ as much by chance, below which pooling is in doubt."""

NOT_RARE: Final = 1e-3
"""A rate above which events are seen often enough by a survey alone."""

_STOPPED = {
    **{by: f"stopped by {word} before its end" for by, word in INTERRUPTED_BY.items()},
    "infrastructure": "stopped by a failure before its end",
    "error": "ended by an error before its end",
    "killed": "killed before its end",
}
"""Why a survey ended before it could say what was asked, and with it the device's share is less."""

_ENDED = {
    "precision": "the precision asked for was reached",
    "device-queries": "the device queries that were allowed were spent",
    "gates": "each gate was decided",
    "time-limit": "the time that was allowed was over",
    "all-items": "the device had been asked about every item",
}

_ARGUMENTS: Final = {
    "device-queries": "a larger device_queries=",
    "time-limit": "a longer time_limit=",
    "precision": "a smaller precision=, or none",
}
"""What to give a survey that is a test where one of these ended it before a gate was decided."""


def headline(document: SurveyDocument) -> str:
    """Return the rate over all in a clause: `deviates on 2.31 % (2.05–2.60) of 500 images under …`.

    Args:
        document: document of a survey.

    """
    found = document.overall.rate
    if found.seen == 0 and found.value == 0.0 and found.high > 0.0:
        rate = f"at most {percent(found.high)}"
    else:
        rate = interval(found)
    whose = "deviates" if document.has_original else "decides otherwise than its twin"
    return f"{whose} on {rate} of {_surveyed(document)}{_ties(document)}; {_queries(document)}"


def accuracy_sentence(document: SurveyDocument) -> str:
    """Return how often each arm is right, and whom the change harms; empty where that is not known.

    Args:
        document: document of a survey.

    """
    accuracy = document.overall.accuracy
    if accuracy is None:
        return ""
    shares = {} if accuracy.original is None else {"original": accuracy.original.share}
    shares |= {"twin": accuracy.twin.share, "device": accuracy.device.value}
    right = ", ".join(f"{arm} {percent(share)}" for arm, share in shares.items())
    return (
        f"Right by labels or targets: {right}; the device loses {interval(accuracy.harmed)} that"
        f" the {next(iter(shares))} has right, and gains {interval(accuracy.helped)}."
    )


def release_sentence(document: SurveyDocument) -> str:
    """Return what release notes can say of a survey, in two sentences or three.

    The interval of the inputs alone would promise too much of few inputs, so that of the field is
    beside it.

    Args:
        document: document of a survey.

    """
    overall, name = document.overall, document.pair.name
    found = overall.rate
    against = (
        "from the original model" if document.has_original else "from the same file on the host"
    )
    said = (
        f"On {_devices(document)}, {name} decides differently {against} on"
        f" {estimated(found)} of {_surveyed(document)}, {_certainty(document, found)}"
        f" ({_queries(document)}){_ties(document)}. {field_sentence(document)}"
    )
    if found.seen == 0:
        said = f"{said} {rare_release(document)}".rstrip()
    accuracy = overall.accuracy
    if accuracy is None or accuracy.original is None or accuracy.drop is None:
        return said
    right, before = accuracy.device.value, accuracy.original.share
    return (
        f"{said} Its accuracy on those surveyed is {percent(right)}, the original's"
        f" {percent(before)}: {_drop(document, accuracy.drop)}."
        f"{_truth_distance(document, accuracy.distance)}"
    )


def _truth_distance(document: SurveyDocument, far: TruthDistance | None) -> str:
    """Return a sentence about how far device and original are from targets; empty without them."""
    if far is None or far.original is None or far.device is None:
        return ""
    return (
        f" Its {document.truth_measure} is {far.device.value:.4g} on average, the"
        f" original's {far.original:.4g}."
    )


def _certainty(document: SurveyDocument, found: Rate) -> str:
    """Return between what limits a rate lies, or that it is exact."""
    if exact(found):
        return "which is exact, since the device was asked about all of them"
    return f"with a {_confidence(document)} interval of {bounds(found)} %"


def _drop(document: SurveyDocument, drop: SignedEstimate) -> str:
    """Return by how much accuracy falls or rises: `a drop of 2.00 points (1.00–3.00)`."""
    word, low, high = "drop", drop.low, drop.high
    if round(100 * drop.value, 2) < 0.0:
        word, low, high = "gain", 0.0 - drop.high, 0.0 - drop.low
    said = f"a {word} of {abs(100 * drop.value):.2f} points"
    if exact(drop):
        return f"{said}, exact of these {input_words(document.pair).many} alone"
    return f"{said} ({between(low, high)})"


def _devices(document: SurveyDocument) -> str:
    """Return the devices, and of several that each has a part."""
    names = [device.name for device in document.devices]
    if len(names) < 2:
        return "".join(names)
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{listed}, each with its share of the {input_words(document.pair).many}"


def field_sentence(document: SurveyDocument) -> str:
    """Return what the rate in the field is, where the inputs are a sample of that."""
    return (
        f"If the {_inputs(document)} were drawn at random from the field, the rate there"
        f" lies within {between(document.field.low, document.field.high)} %."
    )


def ending(document: SurveyDocument) -> str:
    """Return why a survey ended; empty where nothing is known of that."""
    why = document.stopped_by
    if why is None:
        return ""
    return _STOPPED.get(why) or _ENDED.get(why) or str(why)


def cut_off(document: SurveyDocument) -> bool:
    """Whether a survey was ended before it reached what was asked of it."""
    return document.stopped_by in _STOPPED


def method_sentences(document: SurveyDocument) -> Iterator[str]:
    """Yield how the rates were found, and what they are of.

    Args:
        document: document of a survey.

    """
    many = input_words(document.pair).many
    overall = document.overall
    arms = "The original and the twin" if document.has_original else "The twin"
    yield (
        f"{arms} answered all {document.items:,} items on the host: {document.inputs:,}"
        f" {many}, each unchanged and under every condition and severity."
    )
    yield (
        f"The device was asked about {document.asked:,} of them, drawn with known probabilities,"
        " more where the twin is near a tie; each rate is what the host foretells, corrected by"
        " what the device said."
    )
    if document.asked == document.items:
        yield (
            "All items were asked, so that rates, drops and differences are exact and have no"
            f" interval. They are of these {many} under these conditions, and of no others; over"
            f" all, {overall.items:,} items count."
        )
    else:
        yield (
            f"Intervals hold with {_confidence(document)} confidence, in a table all of them"
            f" together. They are of these {many} under these conditions, and of no others; over"
            f" all, {overall.items:,} items count. A figure without one is exact: all that it"
            " is about were asked, or the host alone knows it."
        )
        yield from _pooled(document)
    yield (
        f"{field_sentence(document)} For that {many} count, and not the conditions that each is"
        " under."
    )
    yield (
        "Rates count decisions that hang on a tie of raw outputs, but for those that are said to"
        " leave ties out."
    )


def _pooled(document: SurveyDocument) -> Iterator[str]:
    """Yield how the rates of slices are estimated."""
    p, surprises = document.pooling.p_corrected, document.pooling.surprises
    of = f"(p = {p:.2g}, from {count_of(surprises, 'surprise')})"
    differ = f"No difference in how often the device surprises there was seen {of}."
    if p < UNEVEN:
        differ = (
            "Conditions, severities or classes differ in how often the device surprises there"
            f" {of}, so these intervals are too narrow."
        )
    yield (
        "The rate of a condition, a severity, a cell or a class pools what the device said about"
        " all items of which the host foretells the same at like margins; that of a group does"
        f" not. {differ} survey.csv has beside each what its own answers say alone."
    )


def shown_plan(document: SurveyDocument) -> AskedPlan:
    """Return what was asked, without the folders of the machine that it ran on."""
    plan = document.plan
    if plan.inputs.path is None:
        return plan
    inputs = replace(plan.inputs, path=PurePath(plan.inputs.path).name)
    return msgspec.structs.replace(plan, inputs=inputs)


def _surveyed(document: SurveyDocument) -> str:
    """Return what the rate over all is of: `500 images under 19 conditions in 5 severities …`."""
    conditions = len(document.by_condition.slices)
    if not conditions:
        return f"{_inputs(document)} as they are"
    severities = len(document.by_severity.slices)
    return (
        f"{_inputs(document)} under {count_of(conditions, 'condition')} in"
        f" {count_of(severities, 'severity', 'severities')}"
        f" ({count_of(document.overall.items, 'item')})"
    )


def _inputs(document: SurveyDocument) -> str:
    words = input_words(document.pair)
    return count_of(document.inputs, words.one, words.many)


def _ties(document: SurveyDocument) -> str:
    """Return how many of the deviations that were seen hang on a tie; empty where none was seen."""
    seen, strict = document.overall.rate.seen, document.overall.rate_strict.seen
    if not seen:
        return ""
    return f", of {count_of(seen, 'deviation')} seen {seen - strict:,} by a tie"


def _queries(document: SurveyDocument) -> str:
    return count_of(document.device_queries, "device query", "device queries")


def _confidence(document: SurveyDocument) -> str:
    return f"{100 * document.confidence:g} %"


def rare_sentences(document: SurveyDocument) -> tuple[str, ...]:
    """Return what was found of rare events, in sentences; none where they were not looked for.

    Args:
        document: document of a survey.

    """
    rare = document.rare
    if rare is None and document.plan.rare_queries is None:
        return ()
    if rare is None:
        return (
            "They were asked for and are not estimated yet: the same command with --resume does.",
        )
    often = (
        f"Above {percent(NOT_RARE)} nothing is rare: the survey's own rate, which took no such"
        " queries, says as much."
    )
    return (
        _rare_rate(document, rare),
        f"The ceiling, which does not take that for granted, is {percent(rare.ceiling)};"
        f" {100 * rare.unseen_share:.0f} % of it comes from where nothing was seen.",
        f"That took {count_of(rare.device_queries, 'device query', 'device queries')} more, and"
        f" {count_of(rare.host_queries, 'query', 'queries')} on the host.",
        *([often] if rare.value > NOT_RARE else []),
    )


def rare_release(document: SurveyDocument) -> str:
    """Return what release notes can say of rare events, where a survey saw none of them.

    It is empty where they were not estimated.

    Args:
        document: document of a survey.

    """
    rare = document.rare
    if rare is None:
        return ""
    at = "at severities between 1 and 5"
    if rare.value == 0.0:
        ceiling = percent(rare.ceiling)
        return f"Looked for as rare events {at}, none were found, with a ceiling of {ceiling}."
    many = input_words(document.pair).many
    return (
        f"Looked for as rare events {at}, such decisions are those on {interval(rare)} of {many}."
    )


def _rare_rate(document: SurveyDocument, rare: RareEstimate) -> str:
    many = input_words(document.pair).many
    drawn = "With input, condition and severity drawn at random"
    whose = (
        "the device deviates"
        if document.has_original
        else "the device decides otherwise than its twin"
    )
    if rare.value == 0.0:
        return (
            f"{drawn}, the host foretold no deviation and the device showed none, which does not"
            " say that there is none."
        )
    return (
        f"{drawn}, {whose} on {interval(rare)} of {many}. The interval is that of"
        f" {len(rare.repetitions)} repetitions, and takes for granted that nothing happens where"
        " nothing was seen."
    )


def gate_sentence(gate: DescribedGate) -> str:
    """Return what became of a gate: `rate<0.01 is held: …`."""
    return f"{gate.name} is {STATE_WORDS[gate.state]}: {gate.sentence}"


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
    if gate.state != "open" or document.stopped_by is None:
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
    more = _ARGUMENTS.get(document.stopped_by or "") if gate.state == "open" else None
    return "" if more is None else f"; to decide it, give {more}"
