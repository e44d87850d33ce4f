"""Surveys whose truth is known: facts made of drawn answers, samples of them, and documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from documents import run_device, run_host, run_pair
from edgeflare.survey.baseline import BaselineSurvey
from edgeflare.survey.gates.gate_judgement import DescribedGate, State
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.items.survey_facts import UNCHANGED, Cell, Sample, SurveyFacts
from edgeflare.survey.items.survey_inputs import AskedInputs
from edgeflare.survey.record.survey_document import (
    AboutSurvey,
    AskedPlan,
    RareEstimate,
    SurveyDocument,
    SurveyFinding,
)
from edgeflare.survey.survey_derivation import survey_document

CONDITIONS = ("fog", "dark")

SEVERITIES = (1, 3, 5)

CLASSES = 4


def constructed_facts(
    inputs: int = 60,
    conditions: tuple[str, ...] = CONDITIONS,
    severities: tuple[int, ...] = SEVERITIES,
    rng_seed: int = 0,
    groups: tuple[str, ...] = ("old", "young"),
    devices: tuple[str, ...] = (),
) -> SurveyFacts:
    """Return facts of which the device answered all.

    An arm keeps to the label, or to the arm before it, with a chance that falls with severity; some
    decisions are ties, and a few times the device fails.
    """
    rng = np.random.default_rng(rng_seed)
    cells = (Cell(UNCHANGED, 0), *(Cell(name, one) for name in conditions for one in severities))
    severity = np.repeat([one.severity for one in cells], inputs)
    items = len(severity)
    label = np.tile(rng.integers(0, CLASSES, inputs), len(cells))

    def otherwise(decision: NDArray[np.int64], chance: float) -> NDArray[np.int64]:
        changes = rng.random(items) < chance * (1 + severity)
        return np.where(changes, (decision + 1) % CLASSES, decision).astype(np.int64)

    original = otherwise(label, 0.04)
    twin = otherwise(original, 0.03)
    device = otherwise(twin, 0.01)
    failed = rng.random(items) < 0.01
    device = np.where(failed, -1, device)
    return SurveyFacts(
        cells=cells,
        inputs=inputs,
        has_original=True,
        labelled=np.tile(np.arange(inputs) % 5 > 0, len(cells)),
        classes=label,
        groups=np.tile(np.arange(inputs) % max(1, len(groups)), len(cells)) - (not groups),
        group_names=groups,
        compression=original != twin,
        compression_tied=(original != twin) & (rng.random(items) < 0.2),
        original_right=(original == label) & np.tile(np.arange(inputs) % 5 > 0, len(cells)),
        twin_right=(twin == label) & np.tile(np.arange(inputs) % 5 > 0, len(cells)),
        margin=rng.random(items),
        doubtful=rng.random(items) < 0.1,
        asked=np.ones(items, bool),
        deviates=original != device,
        deviates_tied=(original != device) & ~failed & (rng.random(items) < 0.2),
        kernel=twin != device,
        kernel_tied=(twin != device) & ~failed & (rng.random(items) < 0.3),
        device_right=(device == label) & np.tile(np.arange(inputs) % 5 > 0, len(cells)),
        failed=failed,
        strength=np.where(original != device, rng.random(items), np.nan),
        original_decision=original,
        twin_decision=twin,
        device_decision=device.astype(np.int64),
        devices=devices,
    )


def facts_of(cells: Sequence[Cell], inputs: int, **given: Any) -> SurveyFacts:
    """Return facts of inputs in cells; all that is not given is as if nothing deviated.

    What is given has (items,) each, or is a plain value.
    """
    items = len(cells) * inputs
    no = np.zeros(items, dtype=bool)
    made: dict[str, Any] = {
        "cells": tuple(cells),
        "inputs": inputs,
        "has_original": True,
        "classes": np.full(items, -1),
        "groups": np.full(items, -1),
        "group_names": (),
        "margin": np.ones(items),
        "strength": np.full(items, np.nan),
    }
    flags = (
        "compression", "compression_tied", "original_right", "twin_right", "doubtful", "asked",
        "deviates", "deviates_tied", "kernel", "kernel_tied", "device_right", "failed", "labelled",
    )  # fmt: skip
    return SurveyFacts(**{**dict.fromkeys(flags, no), **made, **given})


def whole_sample(facts: SurveyFacts) -> Sample:
    """Return the sample of all items, in two strata."""
    return Sample((facts.margin > 0.3).astype(np.int64), np.ones(facts.items, bool))


def drawn_sample(facts: SurveyFacts, share: float, rng_seed: int = 0) -> Sample:
    """Return a sample of a share of one stratum, and of twice that of the other."""
    rng = np.random.default_rng(rng_seed)
    stratum = (facts.margin > 0.3).astype(np.int64)
    asked = np.zeros(facts.items, bool)
    for one, of in ((0, 2 * share), (1, share)):
        members = np.flatnonzero(stratum == one)
        asked[rng.permutation(members)[: max(2, round(of * len(members)))]] = True
    return Sample(stratum, asked)


def as_asked(facts: SurveyFacts, sample: Sample) -> SurveyFacts:
    """Return facts as they are known where the device was asked about a sample."""
    asked = sample.asked
    flags = ("deviates", "deviates_tied", "kernel", "kernel_tied", "device_right", "failed")
    known: dict[str, Any] = {name: getattr(facts, name) & asked for name in flags}
    known["strength"] = np.where(asked, facts.strength, np.nan)
    if facts.device_decision is not None:
        known["device_decision"] = np.where(asked, facts.device_decision, -1)
    for name in ("device_distance", "device_truth_distance"):
        if (far := getattr(facts, name)) is not None:
            known[name] = np.where(asked, far, np.nan)
    return replace(facts, asked=asked, **known)


def without_original(facts: SurveyFacts) -> SurveyFacts:
    """Return facts of the same answers of twin and device, without an original."""
    nothing = np.zeros(facts.items, bool)
    return replace(
        facts,
        has_original=False,
        compression=nothing,
        compression_tied=nothing,
        original_right=nothing,
        deviates=nothing,
        deviates_tied=nothing,
        original_decision=None,
    )


def with_distances(facts: SurveyFacts) -> SurveyFacts:
    """Return facts of a task that measures distances and knows no classes."""
    rng = np.random.default_rng(7)
    twin = rng.random(facts.items)
    device = np.where(facts.failed, np.nan, twin + 0.1 * rng.standard_normal(facts.items))
    return replace(
        facts,
        labelled=np.zeros(facts.items, bool),
        classes=np.full(facts.items, -1),
        twin_distance=twin,
        device_distance=device,
        distance_noun="mean IoU",
        original_decision=None,
        twin_decision=None,
        device_decision=None,
    )


def with_targets(facts: SurveyFacts) -> SurveyFacts:
    """Return facts of a task whose targets say what is right, which arms miss by distances."""
    rng = np.random.default_rng(8)
    return replace(
        with_distances(facts),
        labelled=facts.labelled,
        truth_measure="mean IoU",
        original_truth_distance=rng.random(facts.items),
        twin_truth_distance=rng.random(facts.items),
        device_truth_distance=np.where(facts.failed, np.nan, rng.random(facts.items)),
    )


def gate_entry(
    text: str, state: State, words: str, conditions: Sequence[str] | None = None
) -> DescribedGate:
    """Return what a survey's document says of a gate.

    Args:
        text: of the gate.
        state: of it.
        words: what it came to.
        conditions: those of the set that it names; None where it names no set.

    """
    gate = parse_gate(text)
    named = None if gate.condition is None else (gate.condition,)
    return DescribedGate(
        gate=text,
        measure=gate.measure,
        limit=gate.limit,
        condition=gate.condition,
        conditions=named if conditions is None else tuple(conditions),
        left_out=(),
        severity=gate.severity,
        group=gate.group,
        state=state,
        sentence=words,
        value=0.1,
        low=0.0,
        high=0.2,
    )


RARE = RareEstimate(
    value=1.5e-4,
    low=1e-4,
    high=2.25e-4,
    ceiling=2.1e-3,
    unseen_share=0.9,
    repetitions=(1e-4, 2e-4),
    thresholds=(0.5, 0.25),
    device_queries=2011,
    host_queries=99_000,
    seconds=4.5,
)
"""What a survey's document says of rare events."""

PLAN = AskedPlan(
    conditions=CONDITIONS,
    severities=SEVERITIES,
    inputs=AskedInputs(path="images.npz", count=60, sha256=64 * "a"),
    groups=None,
    precision=0.005,
    device_queries=None,
    time_limit_seconds=None,
    earlier=(),
    confidence=0.95,
    gates=("rate<0.01",),
    findings=50,
    rare_queries=None,
    rng_seed=0,
    limit=None,
    first=None,
    ensemble=("builtin",),
)


def about_survey(**changes: Any) -> AboutSurvey:
    """Return what whoever ran a survey says of it."""
    about = AboutSurvey(
        edgeflare="0.1.0",
        pair=run_pair(name="sneakers"),
        devices=(run_device(),),
        host=run_host(),
        classes=("ant", "bee", "cat", "dog"),
        plan=PLAN,
        stopped_by="precision",
        seconds=12.5,
        device_queries=420,
        overhead_device_queries=30,
        gates=(
            gate_entry("rate<0.01", "fail", "the rate is above 1 %"),
            gate_entry("rate<0.9 under fog", "pass", "the rate is below 90 %"),
        ),
        findings=(SurveyFinding(seed_id=0, condition="fog", severity=5, strength=0.9),),
        rare=None,
        warnings=("the pair's seeds are surveyed",),
    )
    return msgspec.structs.replace(about, **changes)


def constructed_document(
    facts: SurveyFacts | None = None, sample: Sample | None = None, **changes: Any
) -> SurveyDocument:
    """Return the document of a survey of constructed facts; of all of them where no sample is."""
    facts = constructed_facts() if facts is None else facts
    sample = whole_sample(facts) if sample is None else sample
    return survey_document(as_asked(facts, sample), sample, about_survey(**changes))


def constructed_baseline(
    facts: SurveyFacts, sample: Sample | None = None, **changes: Any
) -> BaselineSurvey:
    """Return a survey of constructed facts to compare others with."""
    sample = whole_sample(facts) if sample is None else sample
    document = constructed_document(facts, sample, **changes)
    return BaselineSurvey("before", document, as_asked(facts, sample), sample)
