"""Differences between groups of inputs: in deviations, accuracy, and what the arms decide.

SPD, AAOD and EOD are the measures by which FMT and the literature on fairness judge decisions
(Eq. 9 to 11 there). With more than two classes, each class is taken against the rest, and the
largest difference counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
import numpy as np

from edgeflare.record.json_types import Count, Share
from edgeflare.statistics.mover import difference
from edgeflare.statistics.multiple_comparisons import simultaneous
from edgeflare.survey.items.survey_facts import Fact, Flags, Numbers, Sample, SurveyFacts, headline
from edgeflare.survey.rates.rate_interval import Rate, SignedEstimate, SlicedFact, rate
from edgeflare.survey.rates.slices import right_fact, surveyed

COMPARED_GROUPS = 10
"""Groups that are compared, the largest first: 45 pairs."""

MOST_CLASSES = 20
"""Classes up to which the device's decisions are compared: with more, each interval is so
wide that the largest difference says nothing."""


@dataclass(frozen=True, slots=True)
class DecisionGap:
    """The largest difference between two groups in a share of decisions, from -1 to 1.

    Attributes:
        value: the largest; exact for original and twin, whose low and high are the same.
        low, high: an interval of it that holds together with those of all other classes.
        label: the class of which it is.

    """

    value: float
    low: float
    high: float
    label: Count


class ArmGaps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Differences between two groups in what each arm decides; absent where it cannot be said."""

    original: DecisionGap | None = None
    twin: DecisionGap | None = None
    device: DecisionGap | None = None


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """How two groups differ.

    Attributes:
        first, second: their names.
        deviation: the rate of deviations of the one less that of the other; those of kernels
            without an original.
        accuracy_drop: likewise, of the accuracy that is lost from original to device; null without
            an original, or where no label of one of them is known.
        spd: how much more often a class is decided on in the one group (statistical parity
            difference, SPD); null where decisions are not counted.
        aaod: the mean of two sizes, how much more often a class is decided on among the items with
            its label, and among those without it (average absolute odds difference, AAOD); null
            where labels are not known, too.
        eod: how much more often a class is decided on among the items with its label (equal
            opportunity difference, EOD); likewise.

    Of the last three the largest over the classes counts.

    """

    first: str
    second: str
    deviation: SignedEstimate
    accuracy_drop: SignedEstimate | None
    spd: ArmGaps | None
    aaod: ArmGaps | None
    eod: ArmGaps | None


@dataclass(frozen=True, slots=True)
class GroupDifferences:
    """How groups differ, each from each.

    Attributes:
        confidence: confidence of each interval of a rate, so that those of all pairs hold together.
        left_out: groups beyond the ten largest, which are not compared.
        pairs: differences of the pairs, in the order of the groups.

    """

    confidence: Share
    left_out: Count
    pairs: tuple[GroupDifference, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    chosen: Flags


@dataclass(frozen=True, slots=True)
class _Question:
    """How often a class is decided on: among its own items, those of others, or (None) all."""

    label: int
    of_label: bool | None = None


def group_differences(
    facts: SurveyFacts, sample: Sample, confidence: float
) -> GroupDifferences | None:
    """Return how groups differ; None where there are not two.

    Args:
        facts: what is known of the items.
        sample: those of the items that the device was asked about.
        confidence: confidence with which the intervals of all pairs hold together, from 0 to 1.

    """
    among = surveyed(facts)
    named = (
        _Group(name, among & (facts.groups == at)) for at, name in enumerate(facts.group_names)
    )
    groups = [group for group in named if group.chosen.any()]
    kept = sorted(groups, key=lambda group: -int(group.chosen.sum()))[:COMPARED_GROUPS]
    compared = [group for group in groups if any(group is other for other in kept)]
    if len(compared) < 2:
        return None
    pairs = list(combinations(compared, 2))
    each = simultaneous(confidence, len(pairs))
    rates = [_Rates.of(facts, sample, group, each) for group in compared]
    labels, counted = _labels(facts), _counted(facts)
    # Of true and of false positives, in this order.
    odd = [_Question(label, of_label) for label in labels for of_label in (True, False)]
    known = counted & facts.labelled
    decided = _gaps(facts, sample, compared, [*map(_Question, labels)], counted, confidence)
    odds = _gaps(facts, sample, compared, odd, known, confidence)
    return GroupDifferences(
        each,
        len(groups) - len(compared),
        tuple(
            GroupDifference(
                first.group,
                other.group,
                first.deviation_less(other),
                first.drop_less(other),
                _largest(decided.get((first.group, other.group)), labels, _of_decisions),
                _largest(odds.get((first.group, other.group)), labels, _of_both),
                _largest(odds.get((first.group, other.group)), labels, _of_true_positives),
            )
            for first, other in combinations(rates, 2)
        ),
    )


@dataclass(frozen=True, slots=True)
class _Rates:
    """The rates of a group that differences are taken of."""

    group: str
    deviation: Rate
    original: float | None
    device: Rate | None

    @classmethod
    def of(cls, facts: SurveyFacts, sample: Sample, group: _Group, confidence: float) -> _Rates:
        deviation = rate(headline(facts), sample, group.chosen, confidence)
        labelled = group.chosen & facts.labelled
        if not facts.has_original or not labelled.any():
            return cls(group.name, deviation, None, None)
        original = float(facts.original_right[labelled].mean())
        device = rate(right_fact(facts), sample, labelled, confidence)
        return cls(group.name, deviation, original, device)

    def deviation_less(self, other: _Rates) -> SignedEstimate:
        return SignedEstimate(*difference(self.deviation, other.deviation))

    def drop_less(self, other: _Rates) -> SignedEstimate | None:
        """Return the difference of the drops; what is lost less is what the device has more."""
        if self.original is None or other.original is None:
            return None
        if self.device is None or other.device is None:
            return None
        exact = self.original - other.original
        return SignedEstimate(*(exact + end for end in difference(other.device, self.device)))


def _counted(facts: SurveyFacts) -> Flags:
    """Return the items about which the host's arms decide on a class."""
    if facts.twin_decision is None:
        return np.zeros(facts.items, bool)
    counted = facts.twin_decision >= 0
    return counted if facts.original_decision is None else counted & (facts.original_decision >= 0)


def _labels(facts: SurveyFacts) -> list[int]:
    """Return the classes that an arm decides on."""
    arms = (facts.original_decision, facts.twin_decision, facts.device_decision)
    given = [np.unique(arm[arm >= 0]) for arm in arms if arm is not None]
    return sorted({int(label) for some in given for label in some})


def _gaps(
    facts: SurveyFacts,
    sample: Sample,
    groups: Sequence[_Group],
    questions: Sequence[_Question],
    counted: Flags,
    confidence: float,
) -> dict[tuple[str, str], dict[str, _Differences]]:
    """Return the differences of each pair of groups, by arm; of the items that count."""
    arms = {"original": facts.original_decision, "twin": facts.twin_decision}
    shares = {
        arm: [
            _shares(questions, decisions[these], facts.classes[these])
            for group in groups
            for these in [group.chosen & counted]
        ]
        for arm, decisions in arms.items()
        if decisions is not None
    }
    if len({question.label for question in questions}) <= MOST_CLASSES:
        pairs = len(groups) * (len(groups) - 1) // 2
        each = simultaneous(confidence, pairs * len(questions))
        shares["device"] = _estimates(facts, sample, groups, questions, counted, each)
    found: dict[tuple[str, str], dict[str, _Differences]] = defaultdict(dict)
    for arm, rates in shares.items():
        for (group, these), (other, those) in combinations(zip(groups, rates, strict=True), 2):
            found[group.name, other.name][arm] = list(_differences(these, those))
    return found


def _estimates(
    facts: SurveyFacts,
    sample: Sample,
    groups: Sequence[_Group],
    questions: Sequence[_Question],
    counted: Flags,
    confidence: float,
) -> list[list[Rate | None]]:
    """Return the device's shares, for each group and question; None where that is of no item."""
    device, twin = facts.device_decision, facts.twin_decision
    if device is None or twin is None:
        return [[None] * len(questions) for _ in groups]
    group_of = np.full(facts.items, -1)
    for at, group in enumerate(groups):
        group_of[group.chosen & counted] = at

    def estimated(question: _Question) -> list[Rate | None]:
        fact = Fact(twin == question.label, device == question.label)
        of = np.where(_among(facts, question), group_of, -1)
        found = SlicedFact.of(fact, sample, of, len(groups))
        return [
            found.rate(at, confidence) if items else None
            for at, items in enumerate(found.items.tolist())
        ]

    by_question = [estimated(question) for question in questions]
    return [[of_groups[at] for of_groups in by_question] for at in range(len(groups))]


def _among(facts: SurveyFacts, question: _Question) -> Flags:
    """Return which items a question is about."""
    if question.of_label is None:
        return np.ones(facts.items, bool)
    return np.asarray((facts.classes == question.label) == question.of_label)


def _shares(
    questions: Sequence[_Question], decisions: Numbers, classes: Numbers
) -> list[Rate | None]:
    """Return exact shares, as rates without width; None where a question is about no item.

    Items are counted once for all questions, of which there may be thousands.

    Args:
        questions: how often which class is decided on.
        decisions: (some items,) the classes that an arm decides on, from 0.
        classes: (some items,) the class of each.

    """
    # By number, as those of joint decisions go up to 2⁶³.
    said, of, right = (
        Counter(values.tolist()) for values in (decisions, classes, decisions[decisions == classes])
    )
    shares: list[Rate | None] = []
    for question in questions:
        at = question.label
        items, seen = {
            None: (len(decisions), said[at]),
            True: (of[at], right[at]),
            False: (len(decisions) - of[at], said[at] - right[at]),
        }[question.of_label]
        share = seen / max(1, items)
        shares.append(Rate(share, share, share, items, items, seen) if items else None)
    return shares


def _differences(
    these: Sequence[Rate | None], those: Sequence[Rate | None]
) -> Iterator[SignedEstimate | None]:
    """Yield the difference for each question; None where it is about no item of one group."""
    for own, other in zip(these, those, strict=True):
        known = None if own is None or other is None else difference(own, other)
        yield None if known is None else SignedEstimate(*known)


def _largest(
    by_arm: Mapping[str, _Differences] | None, labels: Sequence[int], measure: _Measure
) -> ArmGaps | None:
    """Return the largest difference over the classes, by arm; None where none can be said.

    Of two that are as large, as those of two classes are, it is that of the later class.
    """
    found = {}
    for arm, differences in (by_arm or {}).items():
        gaps = [
            DecisionGap(known.value, known.low, known.high, label)
            for at, label in enumerate(labels)
            if (known := measure(differences, at)) is not None
        ]
        if gaps:
            found[arm] = max(gaps, key=lambda gap: (round(abs(gap.value), _DIGITS), gap.label))
    return ArmGaps(**found) if found else None


_Differences = Sequence[SignedEstimate | None]
"""The difference of two groups for each question."""

_Measure = Callable[[_Differences, int], SignedEstimate | None]
"""Returns how unfair an arm is about a class, by its place among the classes."""

_DIGITS = 12
"""Digits of a difference by which it is compared with others: the rest is lost in sums."""


def _of_decisions(differences: _Differences, at: int) -> SignedEstimate | None:
    return differences[at]


def _of_true_positives(differences: _Differences, at: int) -> SignedEstimate | None:
    return differences[2 * at]


def _of_both(differences: _Differences, at: int) -> SignedEstimate | None:
    """Return the mean size of the differences of true and of false positives.

    Its interval is that of the mean where both lie in theirs.
    """
    true, false = differences[2 * at : 2 * at + 2]
    if true is None or false is None:
        return None
    sizes = [_size(signed_estimate) for signed_estimate in (true, false)]
    return SignedEstimate(*(sum(ends) / 2 for ends in zip(*sizes, strict=True)))


def _size(estimate: SignedEstimate) -> tuple[float, float, float]:
    least = (
        0.0 if estimate.low <= 0.0 <= estimate.high else min(abs(estimate.low), abs(estimate.high))
    )
    return abs(estimate.value), least, max(abs(estimate.low), abs(estimate.high))
