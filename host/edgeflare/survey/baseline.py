"""A survey against an earlier one of the same inputs: whether the new build is worse.

Both surveys make the same changed inputs. A sign-flip test asks whether more of them deviate now
than before. Its signs are those of the inputs: one input is under many conditions, and what changes
under one of them likely does under others, so that items taken as independent would say far too
much (of two builds that deviate alike, each input in its own way under half of 95 cells, McNemar's
test called 82 % different). Where each input is one item, and both devices were asked about all, it
is McNemar's exact test.

Where a device was asked about a part, the changes are estimated, each surprise weighted by the
items that it stands for. Counts of items that both were asked about would be no evidence: each
survey asks more often where its own twin is near a tie, so that of two builds that deviate as
often, the one that was asked more has more of them. Nor are the limits of the two rates: they are
about the very inputs, and leave chance no room where most items were asked (of two builds that
deviate alike, asked about 95 % of 1,200 items, they called 70 to 88 % different).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from edgeflare.errors import UserError
from edgeflare.statistics.mover import difference
from edgeflare.statistics.multiple_comparisons import holm
from edgeflare.statistics.sign_flips import sign_flip_test
from edgeflare.survey.items.survey_facts import Cell, Flags, Sample, SurveyFacts, headline
from edgeflare.survey.rates.rate_interval import Rate, SignedEstimate, counts_of_inputs
from edgeflare.survey.rates.slices import items_by_condition, surveyed
from edgeflare.survey.record.survey_document import PairedItems, SurveyComparison, SurveyDocument


@dataclass(frozen=True, slots=True)
class BaselineSurvey:
    """A survey that another one is compared with.

    Attributes:
        name: name of its run directory, for readers.
        document: the survey's document, as `read_survey` returns it.
        facts: facts of its items, from its journal.
        sample: those of the items that its device was asked about.
        checksums: checksum of each item's input, by item; empty where they are not known.

    """

    name: str
    document: SurveyDocument
    facts: SurveyFacts
    sample: Sample
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
    facts: SurveyFacts, sample: Sample, document: SurveyDocument, baseline: BaselineSurvey
) -> SurveyComparison:
    """Return what changed since the baseline.

    Args:
        facts: facts of the survey.
        sample: those of its items that the device was asked about.
        document: document of the survey, with its plan and rates.
        baseline: earlier survey of the same inputs and cells.

    Raises:
        UserError: they are not the same; says in what they differ.

    """
    plan = document.plan
    asked = AskedItems(plan.inputs.sha256, plan.rng_seed, plan.confidence)
    require_same_items(asked, facts.cells, has_original=facts.has_original, baseline=baseline)
    overall = _paired(facts, sample, document, baseline, None, surveyed(facts))
    by_condition = [
        _paired(facts, sample, document, baseline, name, chosen)
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
    sample: Sample,
    document: SurveyDocument,
    baseline: BaselineSurvey,
    condition: str | None,
    chosen: Flags,
) -> PairedItems:
    both = chosen & facts.asked & baseline.facts.asked
    now, before = headline(facts), headline(baseline.facts)
    changes = counts_of_inputs(now, sample, facts.input, chosen)
    changes = changes - counts_of_inputs(before, baseline.sample, facts.input, chosen)
    found = difference(_rate(document, condition), _rate(baseline.document, condition))
    p = sign_flip_test(changes)
    return PairedItems(
        condition=condition,
        both=int(both.sum()),
        only_now=int((both & now.seen & ~before.seen).sum()),
        only_before=int((both & before.seen & ~now.seen).sum()),
        p=p,
        p_corrected=p,
        difference=SignedEstimate(*found),
    )


def _rate(document: SurveyDocument, condition: str | None) -> Rate:
    """Return a rate of a survey that pools nothing."""
    slices = (document.overall, *document.by_condition.slices)
    one = next((part for part in slices if part.condition == condition), document.overall)
    if (alone := one.rate.alone) is None:
        return one.rate
    return replace(one.rate, value=alone.value, low=alone.low, high=alone.high, alone=None)


def _cells(ours: Sequence[Cell], theirs: Sequence[Cell]) -> str:
    """Name a cell that only one of two surveys has."""
    for cells, other, where in ((ours, theirs, "not"), (theirs, ours, "only")):
        missing = [cell for cell in cells if cell not in other]
        if missing:
            return f"{missing[0].condition} {missing[0].severity} is {where} in it"
    return "in another order"
