"""Which findings get more models, and how many, so that their conditions become certain.

Those that count alone: the condition of another one is what the models that are drawn show of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from edgeflare.conform.drafts.cells import drawn_seed
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs
from edgeflare.conform.findings.finding_evidence import (
    FindingKey,
    Observation,
    finding_key,
    stronger,
)
from edgeflare.conform.findings.grouping import FindingGroup, meets_any
from edgeflare.conform.findings.refining import proposals
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.conformance import Conformance, settings_of
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

_ROUND: Final = 192
"""Models of a refining round, of all findings together."""

_EACH: Final = 48
"""Most models of a refining round for one finding."""

_ENOUGH: Final = 300
"""Models after which a key's findings are refined no more."""

_DEAR: Final = {"hang": (4, 16), "crash": (12, 60), "corrupts": (4, 16)}
"""Failures that cost worker processes, or the time limit of an input: models of one refining round;
and failing models after which none that meets the condition is drawn any more."""


_SLOW: Final = {**_DEAR, "neighbours": (12, 60)}
"""Those failures and the ones that take a process for each model to be seen; models of the latter
are drawn all the same."""


@dataclass(slots=True)
class Refinement:
    """Shares models out over the findings that count.

    Attributes:
        asked: models that were run so far for the findings of a key.

    """

    asked: Counter[FindingKey] = field(default_factory=Counter)

    def drafts(
        self,
        groups: Sequence[FindingGroup],
        state: Conformance,
        given: Mapping[int, OperatorGraph],
        seed: Sequence[int],
    ) -> list[Draft]:
        """Return models whose verdicts tell the possible conditions of findings apart.

        Args:
            groups: the findings so far.
            state: state of the run, to whose observations the findings refer.
            given: the operators of the model that the user named, by their place in it.
            seed: seed of what is drawn.

        """
        drafts: list[Draft] = []
        graphs = NodeGraphs(given)
        for at, group in enumerate(member for member in groups if member.key.counted):
            count = min(self._wanted(group), _ROUND - len(drafts))
            if count <= 0:
                continue
            key, rng = group.key, np.random.default_rng([*seed, at])
            observations = state.observations[key.operator, key.type]
            specification = known_operators()[key.operator]
            for settings in proposals(specification, group, observations, rng, count):
                node = DraftNode(key.operator, key.type, settings, drawn_seed(rng), ())
                fresh = (FRESH,) * len(graphs.operands(node))
                drafts.append(Draft((replace(node, sources=fresh),)))
                self.asked[key] += 1
        return drafts

    def is_dear(self, node: DraftNode, group: FindingGroup) -> bool:
        """Return whether a node is known to fail like a finding, in a way that costs much."""
        dear = _DEAR.get(group.key.symptom)
        if dear is None or len(group.failing) < dear[1]:
            return False
        return group.condition.holds(settings_of(node))

    def _wanted(self, group: FindingGroup) -> int:
        """Return how many models a finding may have in this round."""
        left = _ENOUGH - self.asked[group.key]
        slow = _SLOW.get(group.key.symptom)
        if slow is not None:
            left = min(left, slow[0], slow[1] - len(group.failing))
        return min(left, _EACH)


def steers(judgement: KernelJudgement) -> bool:
    """Return whether a finding with such a model steers what is drawn."""
    return judgement.counted or judgement.symptom in _DEAR


def with_failing(
    groups: Sequence[FindingGroup], observations: Sequence[Observation], failing: Sequence[int]
) -> list[FindingGroup] | None:
    """Return findings with further failing models, each in one whose condition it meets.

    Args:
        groups: the findings of a cell so far.
        observations: all models of the cell.
        failing: places of the further ones.

    Returns:
        None if a model meets no condition of its key: then the findings are others.

    """
    places = [list(group.failing) for group in groups]
    for at in failing:
        one = observations[at]
        key = finding_key(one)
        fitting = (
            number
            for number, group in enumerate(groups)
            if group.key == key and group.condition.holds(one.settings)
        )
        if (number := next(fitting, None)) is not None:
            places[number].append(at)
        elif key is None or not _is_weak_sign(key, one, groups):
            return None
    return [replace(group, failing=tuple(mine)) for group, mine in zip(groups, places, strict=True)]


def _is_weak_sign(key: FindingKey, one: Observation, groups: Sequence[FindingGroup]) -> bool:
    strong = stronger(key)
    return strong != key and meets_any([group for group in groups if group.key == strong], one)
