"""A survey against an earlier one of the same inputs: whether the new build is worse.

Both surveys make the same changed inputs. Where both devices were asked about all of them, each is
a pair, and a sign-flip test asks whether more of them deviate only now than only before. Its signs
are those of the inputs: one input is under many conditions, and what changes under one of them
likely does under others, so that items taken as independent would say far too much (of two builds
that deviate alike, each input in its own way under half of 95 cells, McNemar's test called 82 %
different). Where each input is one item it is McNemar's exact test.
Elsewhere the pairs say less: each survey asks more often where its own twin is near a tie, so that
of two builds that deviate as often, the one that was asked more has more of the pairs. There the
estimated rates are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from edgeflare.errors import UserError
from edgeflare.statistics.mover import difference, p_value_of_interval
from edgeflare.statistics.multiple_comparisons import holm
from edgeflare.statistics.sign_flips import sign_flip_test
from edgeflare.survey.items.survey_facts import Cell, Flags, SurveyFacts, headline
from edgeflare.survey.rates.rate_interval import Rate, SignedEstimate
from edgeflare.survey.rates.slices import items_by_condition, surveyed
from edgeflare.survey.record.survey_document import PairedItems, SurveyComparison, SurveyDocument


@dataclass(frozen=True, slots=True)
class BaselineSurvey:
    """A survey that another one is compared with.

    Attributes:
        name: name of its run directory, for readers.
        document: the survey's document, as `read_survey` returns it.
        facts: facts of its items, from its journal.
        checksums: checksum of each item's input, by item; empty where they are not known.

    """

    name: str
    document: SurveyDocument
    facts: SurveyFacts
    checksums: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskedItems:
    """What of a survey's plan decides whether another one can be compared with it.

    Attributes:
        sha256: digest of the inputs.
        rng_seed: seed of the run.
        confidence: confidence of the intervals.

    """

    sha256: str
    rng_seed: int
    confidence: float


def require_same_items(
    asked: AskedItems, cells: Sequence[Cell], *, has_original: bool, baseline: BaselineSurvey
) -> None:
    """Refuse a baseline whose items are not those of a survey.

    Args:
        asked: what was asked of the survey.
        cells: cells of the survey.
        has_original: whether it has an original.
        baseline: what it is to be compared with.

    """
    theirs = baseline.document.plan
    whose = f"the baseline {baseline.name}"
    if asked.sha256 != theirs.inputs.sha256:
        raise UserError(f"{whose} has other inputs: give the same ones with --inputs and --limit")
    if asked.rng_seed != theirs.rng_seed:
        raise UserError(
            f"{whose} has another run seed, so its changed inputs are others: give --rng-seed"
            f" {theirs.rng_seed}"
        )
    if tuple(cells) != baseline.facts.cells:
        raise UserError(
            f"{whose} has other conditions or severities, {_cells(cells, baseline.facts.cells)}:"
            " give those of the baseline with --conditions and --severities"
        )
    if asked.confidence != theirs.confidence:
        raise UserError(f"{whose} has another confidence: give --confidence {theirs.confidence:g}")
    if has_original != baseline.facts.has_original:
        raise UserError(
            f"{whose} {'has no' if has_original else 'has an'} original, and the pair"
            f" {'has one' if has_original else 'has none'}: compare surveys of the same kind"
        )


def compare(
    facts: SurveyFacts, document: SurveyDocument, baseline: BaselineSurvey
) -> SurveyComparison:
    """Return what changed since the baseline.

    Args:
        facts: facts of the survey.
        document: document of the survey, with its plan and rates.
        baseline: earlier survey of the same inputs and cells.

    Raises:
        UserError: they are not the same; says in what they differ.

    """
    plan = document.plan
    asked = AskedItems(plan.inputs.sha256, plan.rng_seed, plan.confidence)
    require_same_items(asked, facts.cells, has_original=facts.has_original, baseline=baseline)
    overall = _paired(facts, document, baseline, None, surveyed(facts))
    by_condition = [
        _paired(facts, document, baseline, name, chosen)
        for name, chosen in items_by_condition(facts)
    ]
    corrected = holm([items.p for items in by_condition])
    return SurveyComparison(
        run=baseline.name,
        overall=overall,
        by_condition=tuple(
            msgspec.structs.replace(items, p_corrected=p)
            for items, p in zip(by_condition, corrected, strict=True)
        ),
    )


def _paired(
    facts: SurveyFacts,
    document: SurveyDocument,
    baseline: BaselineSurvey,
    condition: str | None,
    chosen: Flags,
) -> PairedItems:
    both = chosen & facts.asked & baseline.facts.asked
    now, before = headline(facts).seen & both, headline(baseline.facts).seen & both
    gone, come = before & ~now, now & ~before
    changes = np.bincount(facts.input[come], minlength=facts.inputs)
    changes = changes - np.bincount(facts.input[gone], minlength=facts.inputs)
    confidence, now_rate = _rate(document, condition)
    found = SignedEstimate(*difference(now_rate, _rate(baseline.document, condition)[1]))
    complete = bool(both.sum() == chosen.sum())
    p = (
        sign_flip_test(changes)
        if complete
        else p_value_of_interval(found.value, found.low, found.high, confidence)
    )
    return PairedItems(
        condition=condition,
        both=int(both.sum()),
        only_now=int(come.sum()),
        only_before=int(gone.sum()),
        test="sign-flips" if complete else "rates",
        p=p,
        p_corrected=p,
        difference=found,
    )


def _rate(document: SurveyDocument, condition: str | None) -> tuple[float, Rate]:
    """Return a rate of a survey that pools nothing, and the confidence of its interval."""
    table = document.by_condition
    found = [(table.confidence, slice_) for slice_ in table.slices if slice_.condition == condition]
    confidence, one = found[0] if found else (document.confidence, document.overall)
    if (alone := one.rate.alone) is None:
        return confidence, one.rate
    own = replace(one.rate, value=alone.value, low=alone.low, high=alone.high, alone=None)
    return confidence, own


def _cells(ours: Sequence[Cell], theirs: Sequence[Cell]) -> str:
    """Name a cell that only one of two surveys has."""
    for cells, other, where in ((ours, theirs, "not"), (theirs, ours, "only")):
        missing = [cell for cell in cells if cell not in other]
        if missing:
            return f"{missing[0].condition} {missing[0].severity} is {where} in it"
    return "in another order"
