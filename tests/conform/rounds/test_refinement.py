"""Which findings are refined, by how many models."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from conforming import ADD, SUM
from edgeflare.conform.drafts.cells import Cell, drawn_configuration
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.findings.fault_condition import FaultCondition
from edgeflare.conform.findings.finding_evidence import FindingKey
from edgeflare.conform.findings.grouping import FindingGroup, grouped
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.rounds.conformance import Conformance
from edgeflare.conform.rounds.draft_verdict import JudgedDraft
from edgeflare.conform.rounds.refinement import Refinement, with_failing
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

WRONG = KernelJudgement("device", "wrong-values", counted=True, worst=9.0, unit="steps")
SHARED = KernelJudgement("shared", "wrong-values", worst=9.0, unit="steps")
HANG = KernelJudgement("hang", "hang", counted=True)
CRASH = KernelJudgement("crash", "crash", counted=True)
SETTINGS = {ADD: ("activation", "RELU6"), SUM: ("keep_dims", True)}


@cache
def _nodes(cell: Cell, count: int) -> list[DraftNode]:
    rng = np.random.default_rng(1)
    found = (drawn_configuration(cell, rng) for _ in range(count))
    return [DraftNode(*cell, one, at, ()) for at, one in enumerate(found) if one is not None]


def _seen(said: dict[Cell, KernelJudgement], models: int = 60) -> Conformance:
    """Return models of some cells, which fail where one setting is as in `SETTINGS`."""
    state = Conformance()
    for cell, judgement in said.items():
        name, setting = SETTINGS[cell]
        for node in _nodes(cell, models):
            fails = node.configuration[name] == setting
            one = judgement if fails else KernelJudgement("right")
            state.add(JudgedDraft(Draft((node,)), (one,)))
    return state


def _groups(state: Conformance) -> list[FindingGroup]:
    known = known_operators()
    return [group for some in state.observations.values() for group in grouped(some, known)]


def _shares(drafts: list[Draft]) -> Counter[Cell]:
    return Counter(draft.nodes[0].cell for draft in drafts)


@pytest.mark.slow
def test_findings_that_count_share_a_round() -> None:
    state = _seen({ADD: WRONG, SUM: WRONG})
    drafts, again, other = (
        Refinement().drafts(_groups(state), state, {}, seed) for seed in ([0, 1], [0, 1], [0, 2])
    )
    assert drafts == again != other
    shares = _shares(drafts)
    assert 0 < shares[ADD] <= 48
    assert 0 < shares[SUM] <= 48
    assert len({draft.nodes[0].constants_seed for draft in drafts}) == len(drafts)
    state = _seen({ADD: SHARED, SUM: WRONG})
    assert _shares(Refinement().drafts(_groups(state), state, {}, [0, 1])).keys() == {SUM}


def test_models_of_a_finding_are_valid_and_near_its_condition() -> None:
    state = _seen({ADD: WRONG})
    drafts = Refinement().drafts(_groups(state), state, {}, [0, 1])
    specification = known_operators()["ADD"]
    for draft in drafts:
        (node,) = draft.nodes
        assert specification.invalid(node.type, node.configuration) is None
        assert len(node.sources) == (2 if node.configuration["constant"] == "none" else 1)
    fails = [draft.nodes[0].configuration["activation"] == "RELU6" for draft in drafts]
    assert any(fails)
    assert not all(fails)


@pytest.mark.slow
def test_a_finding_has_enough_models_some_day() -> None:
    state = _seen({ADD: WRONG}, 24)
    refinement, groups = Refinement(), _groups(state)
    asked = [len(refinement.drafts(groups, state, {}, [0, number])) for number in range(12)]
    assert sum(asked) == refinement.asked[groups[0].key] <= 300
    assert max(asked) <= 48
    assert asked[-1] == 0


@pytest.mark.parametrize(("judgement", "each", "most"), [(HANG, 4, 16), (CRASH, 12, 60)])
def test_a_dear_finding_has_few_models(judgement: KernelJudgement, each: int, most: int) -> None:
    state = _seen({SUM: judgement}, 20)
    (group,) = _groups(state)
    node = next(one for one in _nodes(SUM, 20) if one.configuration["keep_dims"] is True)
    assert len(group.failing) < most
    assert 0 < len(Refinement().drafts([group], state, {}, [0, 1])) <= each
    assert not Refinement().is_dear(node, group)
    known = replace(group, failing=group.failing * most)
    assert Refinement().drafts([known], state, {}, [0, 1]) == []
    assert Refinement().is_dear(node, known)
    settings = {**node.configuration, "keep_dims": False}
    assert not Refinement().is_dear(replace(node, configuration=settings), known)
    wrong = replace(known, key=FindingKey(*SUM, "device", "wrong-values", counted=True))
    assert not Refinement().is_dear(node, wrong)


def test_a_further_model_joins_the_finding_whose_condition_it_meets() -> None:
    state = _seen({ADD: WRONG})
    observations = state.observations[ADD]
    (group,) = _groups(state)
    first = replace(group, failing=group.failing[:-2])
    assert with_failing([first], observations, group.failing[-2:]) == [group]
    assert with_failing([first], observations, []) == [first]
    assert with_failing([], observations, []) == []


def test_a_model_of_no_finding_is_told() -> None:
    state = _seen({ADD: WRONG})
    observations = state.observations[ADD]
    (group,) = _groups(state)
    at = group.failing[-1]
    unlike = replace(group, condition=FaultCondition.parsed(["activation is RELU"]))
    assert with_failing([unlike], observations, [at]) is None
    assert with_failing([], observations, [at]) is None
    otherwise = replace(group, key=replace(group.key, symptom="biased"))
    assert with_failing([otherwise], observations, [at]) is None
