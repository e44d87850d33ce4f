"""Failing models of one operator and symptom, grouped by the condition that they have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.findings.condition_learning import (
    Hypothesis,
    ModelEvidence,
    hypotheses,
    lowest,
    surprise_of,
)
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import (
    STRONGER,
    FindingKey,
    Observation,
    evidence_for,
    finding_key,
    stronger,
)
from edgeflare.conform.findings.settings_table import SettingsTable
from edgeflare.conform.specification.operator_specification import OperatorSpecification

MOST_CONDITIONS = 3
"""Most conditions, and so findings, of one symptom of an operator and type."""

SPLIT_COST = 6.0
"""Nats that two conditions have to explain better than one, besides what their predicates cost."""

_LOOKS = 3
"""Times that conditions are learned, each time with failing models that those before do not meet:
of very many the latest are looked at, and a rare fault may show in others alone."""

_SPLITS_TRIED = 5

_SPLIT_HEADS = 60
"""Predicates that a second one is looked for, to tell failing models from others."""

Indexes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Models that fail alike.

    Attributes:
        key: what they share.
        condition: met by all of them, and by as few others as few predicates allow.
        failing: their places among the observations.

    """

    key: FindingKey
    condition: FaultCondition
    failing: tuple[int, ...]


def grouped(
    observations: Sequence[Observation], specifications: Mapping[str, OperatorSpecification]
) -> list[FindingGroup]:
    """Return the findings of some models, in the order of their keys.

    Args:
        observations: observations of any operators.
        specifications: declarations of the operators, by name.

    """
    keys = {key for observation in observations if (key := finding_key(observation)) is not None}
    return grouped_as(keys, observations, specifications)


def grouped_as(
    keys: Collection[FindingKey],
    observations: Sequence[Observation],
    specifications: Mapping[str, OperatorSpecification],
) -> list[FindingGroup]:
    """Return the findings of some keys, in the order of the keys.

    Args:
        keys: keys of findings, each with at least one model among the observations.
        observations: observations of any operators.
        specifications: declarations of the operators, by name.

    """
    groups: dict[FindingKey, list[FindingGroup]] = {}
    # What may be a weak sign of another symptom comes after it.
    for key in sorted(keys, key=lambda candidate: (candidate.symptom in STRONGER, candidate)):
        failing = [
            at for at, observation in enumerate(observations) if finding_key(observation) == key
        ]
        strong = groups.get(stronger(key), [])
        if len(failing) < sum(len(group.failing) for group in strong):
            failing = [at for at in failing if not meets_any(strong, observations[at])]
        specification = specifications[key.operator]
        groups[key] = _groups(key, observations, failing, specification) if failing else []
    return [group for key in sorted(keys) for group in groups[key]]


def meets_any(groups: Sequence[FindingGroup], observation: Observation) -> bool:
    """Return whether a model meets the condition of one of some findings."""
    return any(member.condition.holds(observation.settings) for member in groups)


def _groups(
    key: FindingKey,
    observations: Sequence[Observation],
    failing: Sequence[int],
    specification: OperatorSpecification,
) -> list[FindingGroup]:
    first: list[int] = []
    for _ in range(_LOOKS):
        others = set(failing).difference(first)
        groups = _learned(key, observations, [*sorted(others), *first], specification)
        kept = [at for member in groups for at in member.failing]
        older = sorted(set(failing).difference(kept))
        meeting = _meeting(groups, older, observations)
        unmet = [at for at, place in zip(older, meeting, strict=True) if place is None]
        if not unmet:
            break
        first = [*first, *unmet][-(len(kept) // 2) :]
    places = [list(member.failing) for member in groups]
    for at, place in zip(older, meeting, strict=True):
        places[place or 0].append(at)
    return [
        FindingGroup(member.key, member.condition, tuple(sorted(mine)))
        for member, mine in zip(groups, places, strict=True)
    ]


def _learned(
    key: FindingKey,
    observations: Sequence[Observation],
    failing: Sequence[int],
    specification: OperatorSpecification,
) -> list[FindingGroup]:
    """Return the groups of those failing models that are looked at, the last ones."""
    evidence = evidence_for(key, observations, failing, specification)
    kept = np.array(failing[-evidence.failing.shape[1] :])
    found = conditions_of(evidence, np.arange(len(kept)), MOST_CONDITIONS)
    return [
        FindingGroup(key, hypothesis.condition, tuple(int(at) for at in kept[mine]))
        for hypothesis, mine in found
    ]


def _meeting(
    groups: Sequence[FindingGroup], models: Sequence[int], observations: Sequence[Observation]
) -> list[int | None]:
    """Return for each of some models the place of the first group whose condition it meets."""
    if not models:
        return []
    table = SettingsTable([observations[at].settings for at in models])
    held = np.stack([member.condition.held(table) for member in groups])
    return [int(np.argmax(met)) if met.any() else None for met in held.T]


def conditions_of(
    evidence: ModelEvidence, failing: Indexes, most: int
) -> list[tuple[Hypothesis, Indexes]]:
    """Return the conditions that explain failing models, and which of these each explains.

    One condition explains all, unless several explain them far better: then there are as many
    faults. The region of several is judged as one, so that a fault that shows more often in
    some models than in others is still one fault.
    """
    whole = hypotheses(_only(evidence, failing), 1)[0]
    best: list[tuple[Hypothesis, Indexes]] = [(whole, failing)]
    possible = surprise_of(len(failing), 0) + SPLIT_COST
    if most == 1 or len(failing) == 1 or whole.score < possible:
        return best
    least = whole.score
    for mine in _splits(evidence, failing):
        rest = np.setdiff1d(failing, mine)
        first = (hypotheses(_only(evidence, mine), 1)[0], mine)
        several = [first, *conditions_of(evidence, rest, 1)]
        score = _joint_score(evidence, several) + SPLIT_COST
        if score < least:
            least, best = score, several
    if len(best) > 1:
        return [best[0], *conditions_of(evidence, best[1][1], most - 1)]
    return best


def _only(evidence: ModelEvidence, failing: Indexes) -> ModelEvidence:
    return ModelEvidence(evidence.vocabulary, evidence.failing[:, failing], evidence.passing)


def _splits(evidence: ModelEvidence, failing: Indexes) -> list[Indexes]:
    """Return subsets of failing models that one or two predicates tell from the others best.

    A subset is good if its models and the others fail at rates that differ much.
    """
    held = evidence.failing[:, failing].astype(np.float32)
    passing = evidence.passing.astype(np.float32)
    costs = evidence.vocabulary.costs
    totals = len(failing), passing.shape[1]
    alone = costs + _apart(held.sum(axis=1), passing.sum(axis=1), totals)
    heads = lowest(alone, _SPLIT_HEADS)
    both = costs[heads, None] + costs
    both[np.arange(len(heads)), heads] = costs[heads]
    scores = both + _apart(held[heads] @ held.T, passing[heads] @ passing.T, totals)
    found: dict[bytes, Indexes] = {}
    for flat in lowest(scores.ravel(), _SPLITS_TRIED * 20):
        one, other = divmod(int(flat), len(costs))
        if len(found) < _SPLITS_TRIED and np.isfinite(scores[one, other]):
            mine = failing[(held[heads[one]] * held[other]).astype(np.bool_)]
            found.setdefault(mine.tobytes(), mine)
    return list(found.values())


def _apart(
    inside: NDArray[np.float32], met: NDArray[np.float32], totals: tuple[int, int]
) -> NDArray[np.float64]:
    """Return how improbable regions and their complements are, each with a rate of its own.

    Args:
        inside: failing models in each region; infinitely improbable are regions of none or all.
        met: passing models in each region.
        totals: all failing and all passing models.

    """
    failing, passing = inside.astype(np.intp), met.astype(np.intp)
    scores = _surprise(failing, passing) + _surprise(totals[0] - failing, totals[1] - passing)
    return np.where((failing == 0) | (failing == totals[0]), np.inf, scores)


def _surprise(failing: Indexes, passing: Indexes) -> NDArray[np.float64]:
    """Return `surprise_of` for arrays of numbers."""
    most = int(failing.max(initial=0) + passing.max(initial=0)) + 2
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most)))])
    result = logs[failing + passing] - logs[failing] - logs[passing]
    return np.asarray(result + np.log(failing + passing + 1.0))


def _joint_score(evidence: ModelEvidence, several: Sequence[tuple[Hypothesis, Indexes]]) -> float:
    """Return the score of conditions together, one of which each failing model meets."""
    texts = {str(predicate): at for at, predicate in enumerate(evidence.vocabulary.predicates)}
    met = np.zeros(evidence.passing.shape[1], np.bool_)
    cost, failing = 0.0, 0
    for hypothesis, mine in several:
        places = [texts[str(predicate)] for predicate in hypothesis.condition.predicates]
        met |= evidence.passing[places].all(axis=0)
        cost += float(evidence.vocabulary.costs[places].sum())
        failing += len(mine)
    return surprise_of(failing, int(met.sum())) + cost
