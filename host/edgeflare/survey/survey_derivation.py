"""The document of a survey, derived from its journal: at its end, and of one that was cut off."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from edgeflare.core.query import Arm
from edgeflare.core.task import LEAST_SEEDS
from edgeflare.errors import UserError
from edgeflare.record.folder_lock import is_locked
from edgeflare.record.journal import reporting_damage
from edgeflare.run.derive_document import derive_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.run_warnings import MOST_TIED
from edgeflare.run.survey_rows import DeviceRow, HostRow
from edgeflare.statistics.binomial import exact_interval
from edgeflare.statistics.multiple_comparisons import holm
from edgeflare.survey.baseline import BaselineSurvey, compare
from edgeflare.survey.gates.gate_judgement import DescribedGate, JudgedGates
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.items.survey_facts import UNCHANGED, Sample, SurveyFacts, headline
from edgeflare.survey.presentation.survey_words import release_sentence
from edgeflare.survey.rare_events.rare_phase import noted_estimate
from edgeflare.survey.rates.group_differences import group_differences
from edgeflare.survey.rates.pooling import pooling_p_value
from edgeflare.survey.rates.rate_interval import FieldInterval, field_interval
from edgeflare.survey.rates.slices import overall_rate, survey_rates, surveyed
from edgeflare.survey.record.survey_document import (
    AboutSurvey,
    AskedPlan,
    Pooling,
    SurveyDocument,
    SurveyFinding,
    check_survey,
)
from edgeflare.survey.record.survey_journal import facts_of, host_is_done
from edgeflare.survey.record.survey_plan import ENDED_KEY, SurveyPlan, noted_plan, noted_sets
from edgeflare.survey.sampling_design import SamplingRounds
from edgeflare_protos import __version__

_STREAM = 0x9001
"""Tells the generator of the permutations from others of the run seed."""

_DIGITS = 9
"""Significant digits of a figure; more say nothing, and differ between machines."""

RUNNING = "the survey is still running: this is what is known so far"

_Part = TypeVar("_Part", bound=msgspec.Struct)


def derive_survey(
    directory: RunDirectory,
    journal: RunJournal,
    gates: JudgedGates,
    baseline: BaselineSurvey | None,
) -> SurveyDocument:
    """Return the document of a survey, whose host has answered all items.

    Args:
        directory: directory of the run.
        journal: journal of the run.
        gates: gates of the survey.
        baseline: what it is compared with; None where nothing was asked.

    Raises:
        UserError: the baseline is of other items; says which.

    """
    document = derive_document(directory, journal)
    facts, plan = facts_of(journal), noted_plan(journal)
    rounds = SamplingRounds.replayed(
        facts, document.rng_seed, plan.device_queries, plan.earlier_queries
    )
    about = _about_survey(journal, document, gates.described(facts, rounds))
    return survey_document(facts, rounds.design.sample_of(facts.asked), about, baseline)


def derive_unwritten_survey(directory: RunDirectory) -> SurveyDocument:
    """Return the document of a survey that was cut off, or still runs, before it was written.

    It is compared with nothing: where its baseline lies only the run itself says, and what a run
    names outside of itself is not opened because it says so.

    Args:
        directory: directory of the run.

    Raises:
        UserError: the host has not answered all items, so that there is nothing to say yet.

    """
    running = is_locked(directory.path)
    with closing(RunJournal.open(directory.journal)) as journal:
        plan = noted_plan(journal)
        # In a transaction all is of one moment, also while the survey goes on.
        with reporting_damage(directory.journal), journal.transaction():
            if not host_is_done(journal):
                done = journal.survey.host_count()
                items = plan.items
                raise UserError(f"{directory.path} {_nothing_yet(done, items, running=running)}")
            texts, sets = plan.gates, noted_sets(plan.conditions)
            gates = JudgedGates(tuple(map(parse_gate, texts)), plan.confidence, sets, plan.left_out)
            derived = derive_survey(directory, journal, gates, None)
            more = [RUNNING] if running else []
            if plan.baseline is not None:
                more.append(_not_compared(plan.baseline))
            derived = msgspec.structs.replace(
                derived,
                stopped_by=None if running else derived.stopped_by,
                warnings=(*derived.warnings, *more),
            )
            text = json.dumps(msgspec.to_builtins(derived)).encode()
    return check_survey(text, directory.journal)


def survey_document(
    facts: SurveyFacts,
    sample: Sample,
    about: AboutSurvey,
    baseline: BaselineSurvey | None = None,
) -> SurveyDocument:
    """Return the document of a survey.

    Args:
        facts: what is known of its items.
        sample: those of the items that the device was asked about.
        about: what is known of it beside.
        baseline: what it is compared with; None where nothing was asked.

    Raises:
        UserError: the baseline is of other inputs, cells or draws; says which.

    """
    confidence = float(about.plan.confidence)
    rates = survey_rates(facts, sample, confidence)
    document = _rounded(
        SurveyDocument(
            **msgspec.structs.asdict(about),
            confidence=confidence,
            has_original=facts.has_original,
            inputs=facts.inputs,
            items=facts.items,
            asked=int(sample.asked.sum()),
            labelled=int(facts.labelled[: facts.inputs].sum()),
            distance=facts.distance_noun or None,
            truth_measure=facts.truth_measure or None,
            overall=rates.overall,
            unchanged=rates.unchanged,
            by_condition=rates.by_condition,
            by_severity=rates.by_severity,
            by_cell=rates.by_cell,
            by_class=rates.by_class,
            by_group=rates.by_group,
            by_device=rates.by_device,
            pooling=_pooling(facts, sample, about.plan.rng_seed),
            field=_field(facts, sample, confidence),
            groups=group_differences(facts, sample, confidence),
            baseline=None,
            sentence="",
        )
    )
    compared = None if baseline is None else _rounded(compare(facts, sample, document, baseline))
    sentence = release_sentence(document)
    return msgspec.structs.replace(document, baseline=compared, sentence=sentence)


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


def _about_survey(
    journal: RunJournal, document: RunDocument, gates: tuple[DescribedGate, ...]
) -> AboutSurvey:
    """Return what is said of a survey beside its rates.

    Args:
        journal: journal of the survey.
        document: document of its run.
        gates: what became of them.

    """
    plan, noted, totals = noted_plan(journal), journal.about(), document.totals
    asked = journal.survey.device_count()
    host = journal.survey.host()
    signs = signs_in_answers(host, journal.survey.device())
    if noted.get("labels") is not None and Arm.ORIGINAL.value in noted["arms"]:
        signs += signs_of_chance(host, noted["labels"])
    return AboutSurvey(
        edgeflare=__version__,
        pair=document.pair,
        devices=document.devices,
        host=document.host,
        classes=document.classes,
        plan=_plan(plan, document),
        stopped_by=document.stopped_by or noted.get(ENDED_KEY),
        seconds=totals.setup_seconds + totals.wall_seconds + totals.verify_seconds,
        device_queries=asked,
        overhead_device_queries=totals.overhead_device_queries - asked,
        gates=gates,
        findings=tuple(map(_finding, document.deviations)),
        rare=noted_estimate(journal),
        warnings=(*document.warnings, *signs, *_looks(plan, asked)),
    )


def signs_in_answers(host: Sequence[HostRow], device: Sequence[DeviceRow]) -> list[str]:
    """Return the signs that the device does not answer as a trained model does, a line each.

    Args:
        host: the rows of all items.
        device: those of the items that the device was asked about; its failures say nothing here.

    """
    answered = [row for row in device if not row.failed]
    if len(answered) < LEAST_SEEDS:
        return []
    twin = {row.item: row.twin_decision for row in host}
    decided = {row.device_decision for row in answered}
    lines, tied = [], sum(row.tied for row in answered)
    if len(decided) == 1 and len({twin[row.item] for row in answered}) > 1:
        lines.append(
            f"the device decides the same on all {len(answered):,} items that it answered, and its"
            " twin does not: look at the device's kernels"
        )
    if tied > MOST_TIED * len(answered):
        lines.append(
            f"the device's decision hangs on a tie of equal outputs on {tied:,} of the"
            f" {len(answered):,} items that it answered: which of them wins says nothing"
        )
    return lines


def signs_of_chance(host: Sequence[HostRow], labels: Sequence[int]) -> list[str]:
    """Return a line where the original is no better than the most frequent label for all would be.

    Args:
        host: the rows of all items.
        labels: labels of the inputs.

    """
    known = [row for row in host if row.known]
    if len(known) < LEAST_SEEDS:
        return []
    ((_, most),) = Counter(labels[row.item % len(labels)] for row in known).most_common(1)
    right, count = sum(row.original_right for row in known), len(known)
    if exact_interval(right, count)[0] > most / count:
        return []
    return [
        f"the original is right on {right / count:.1%} of {count:,} items, no better than one label"
        f" for all of them ({most / count:.1%}): that the device loses no accuracy, and a gate that"
        " is held, says nothing here"
    ]


def _looks(plan: SurveyPlan, asked: int) -> list[str]:
    """Return what is to be known of a survey that had ended, and asked more after that."""
    if not any(
        earlier_ends.ended is not None and earlier_ends.asked < asked
        for earlier_ends in plan.earlier
    ):
        return []
    return [
        "the survey had ended and went on: an interval is for one look, and is too narrow for who"
        " goes on until it pleases; gates hold at every look"
    ]


def _plan(plan: SurveyPlan, document: RunDocument) -> AskedPlan:
    cells, inputs = plan.cells[1:], plan.inputs
    return AskedPlan(
        conditions=tuple(dict.fromkeys(cell.condition for cell in cells)),
        severities=tuple(sorted({cell.severity for cell in cells})),
        inputs=inputs,
        groups=None if plan.groups is None else plan.groups.column,
        precision=plan.precision,
        device_queries=plan.device_queries,
        time_limit_seconds=plan.time_limit_seconds,
        earlier=plan.earlier,
        confidence=plan.confidence,
        gates=plan.gates,
        findings=plan.findings,
        rare_queries=plan.rare_queries,
        rng_seed=document.rng_seed,
        limit=document.plan.limit,
        first=document.plan.first,
        ensemble=document.ensemble,
    )


def _finding(finding: Finding) -> SurveyFinding:
    """Return which item a finding is; its operator says the condition and the severity."""
    condition, _, severity = (finding.operators or (f"{UNCHANGED}:0",))[0].rpartition(":")
    return SurveyFinding(
        seed_id=finding.seed_id,
        condition=condition,
        severity=int(severity),
        strength=finding.strength,
    )


def _field(facts: SurveyFacts, sample: Sample, confidence: float) -> FieldInterval:
    """Return the limits of the rate over all, where the inputs are a sample of the field's."""
    fact, chosen = headline(facts), surveyed(facts)
    found = overall_rate(facts, sample, confidence)
    field = field_interval(found, fact, sample, facts.input, chosen, confidence)
    return replace(field, low=max(0.0, field.low), high=min(1.0, field.high))


def _pooling(facts: SurveyFacts, sample: Sample, rng_seed: int) -> Pooling:
    """Return whether conditions, severities or classes differ in how often the device surprises."""
    fact, rng = headline(facts), np.random.default_rng([rng_seed, _STREAM])
    names = [cell.condition for cell in facts.cells]
    numbers = {name: at for at, name in enumerate(dict.fromkeys(names))}
    conditions = np.asarray([numbers[name] for name in names])[facts.cell]
    severities = np.asarray([cell.severity for cell in facts.cells])[facts.cell]
    p_values = [
        pooling_p_value(fact, sample, slices, rng)
        for slices in (conditions, severities, facts.classes)
    ]
    surprises = int((sample.asked & (fact.seen != fact.foretold)).sum())
    return Pooling(p_corrected=min(holm(p_values)), surprises=surprises)


def _rounded(part: _Part) -> _Part:
    """Return a part of a document with its figures rounded."""
    fields = msgspec.structs.asdict(part).items()
    return msgspec.structs.replace(part, **{key: _rounded_value(inner) for key, inner in fields})


def _rounded_value(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _rounded(value)
    if is_dataclass(value) and not isinstance(value, type):
        names = value.__dataclass_fields__
        return replace(value, **{name: _rounded_value(getattr(value, name)) for name in names})
    if isinstance(value, Mapping):
        return {str(key): _rounded_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(_rounded_value, value))
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value
