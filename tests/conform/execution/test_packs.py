"""Packs of models: how they are grouped, written and waited for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.conform.execution import model_pack as pack_files
from edgeflare.conform.execution.culprit_search import CulpritSearch, row_seconds, work_seconds
from edgeflare.conform.execution.failure_history import FailureHistory
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.execution.model_pack import (
    ModelPack,
    PackLimits,
    model_bytes,
    next_group,
    pack_file,
)
from edgeflare.conform.execution.pack_runner import Outcome, PackRunner
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, side_by_side
from posed_models import ROWS, addition, mixed_models, posed, unary

CRASH = RunFailure("crash", "SIGSEGV")


def groups(
    history: FailureHistory, models: list[PosedModel], limits: PackLimits
) -> list[list[int]]:
    left = list(range(len(models)))
    found = []
    while left:
        found.append(next_group(models, left, lambda at: history.odds(models[at].graph), limits))
        left = [at for at in left if at not in found[-1]]
    return found


def test_models_with_variables_have_files_of_their_own() -> None:
    value = GraphValue("float32", (2,))
    variable = OperatorGraph.of_operator(
        "READ_VARIABLE", [value], [value], {"sharedName": "variable"}
    )
    models = [posed(one) for one in (unary("ABS"), variable, unary("NEG"), variable)]
    assert groups(FailureHistory(), models, PackLimits()) == [[0, 2], [1, 3]]


@given(st.lists(st.booleans(), max_size=60))
def test_odds_are_between_those_before_and_those_seen(fates: list[bool]) -> None:
    history = FailureHistory()
    before = history.odds(unary("ABS"))
    for failed in fates:
        history.note(posed(unary("ABS", (7,))), CRASH if failed else None)
    seen = sum(fates) / len(fates) if fates else before
    assert min(before, seen) - 1e-9 <= history.odds(unary("ABS")) <= max(before, seen) + 1e-9
    assert history.odds(unary("NEG")) == before


def test_what_has_no_values_is_likelier_to_fail() -> None:
    history = FailureHistory()
    before = history.odds(unary("ABS", (2, 0)))
    assert before > 10 * history.odds(unary("ABS", (2, 1)))
    # Unless it is seen to do no harm.
    for _ in range(70):
        history.note(posed(unary("NEG", (0, 3))), None)
    assert history.odds(unary("ABS", (2, 0))) < before / 3
    history.note(posed(unary("NEG", (0, 3))), CRASH)
    assert history.odds(unary("ABS", (2, 0))) > before / 3


GPU = "the GPU accelerator takes 0 of 1 nodes, and not ADD: "


@pytest.mark.parametrize(
    ("detail", "this_version", "all_versions"),
    [
        ("some runtime 1.2 has no operator ADD version 77: convert the model", True, False),
        ("TFLite Micro has no operator ADD", True, True),
        (f"{GPU}Operation is not supported: set", True, True),
        (f"{GPU}Not supported op ADD: set fallback", True, True),
        # For its types alone, so that it is tried with others.
        (f"{GPU}Not supported Cast case. Input type: INT64: set fallback", False, False),
        (f"{GPU}Not supported batched mat mul case: unsupported rank: set fallback", False, False),
    ],
)
def test_an_operator_that_is_missing_is_not_tried_again(
    detail: str, this_version: bool, all_versions: bool
) -> None:
    history, refusal = FailureHistory(), RunFailure("refused", detail)
    history.note(posed(addition(version=77)), refusal)
    assert history.refusal(addition((1, 2), version=77)) == (refusal if this_version else None)
    assert history.refusal(addition()) == (refusal if all_versions else None)
    assert history.refusal(unary("ABS")) is None


def test_witnesses_are_harmless_models_that_lived_one_of_each_kind() -> None:
    history = FailureHistory()
    models = [*mixed_models(8), posed(unary("FLOOR")), posed(unary("CEIL"))]
    for model in models[:-1]:
        history.note(model, None)
    history.note(models[-1], CRASH)
    assert not history.hung(unary("CEIL"))
    history.note(posed(unary("TANH")), RunFailure("hang", "no answer"))
    assert history.hung(unary("TANH", (5,)))
    history.note_corruption(unary("FLOOR"))
    assert history.corrupts(unary("FLOOR", (9,)))
    assert history.odds(unary("FLOOR")) == 1
    assert list(map(id, history.witnesses(ROWS))) == list(map(id, models[4:8]))
    assert history.witnesses(ROWS + 1) == []


@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 100), st.integers(100, 5000))
def test_every_model_has_one_group_within_the_limits(
    count: int, most: int, tensors: int, size: int
) -> None:
    models = mixed_models(count)
    limits = PackLimits(most, tensors, size)
    found = groups(FailureHistory(), models, limits)
    assert [at for group in found for at in group] == list(range(count))
    for group in found:
        chosen = [models[at] for at in group]
        assert len(group) <= most
        assert len(group) == 1 or sum(map(model_bytes, chosen)) <= size
        assert len(group) == 1 or sum(len(one.graph.values) for one in chosen) <= tensors


def test_what_failed_before_goes_behind_the_others_in_few() -> None:
    history = FailureHistory()
    for _ in range(4):
        history.note(posed(unary("FLOOR")), CRASH)
    models = mixed_models(20)
    for at in (2, 3, 11, 12, 13):
        models[at] = posed(unary("FLOOR", (2, 3, 4)))
    models[14] = posed(unary("FLOOR"))
    first, *others = groups(history, models, PackLimits())
    assert len(first) == 14
    assert others == [[2, 3], [11, 12], [13], [14]]  # those of other ranks are less likely to fail


def test_what_fails_at_some_ranks_alone_stops_no_other() -> None:
    history = FailureHistory()
    for _ in range(40):
        history.note(posed(unary("FLOOR", (1, 2, 3, 4, 5))), CRASH)
        history.note(posed(unary("FLOOR", (1, 2, 3, 4))), None)
    models = [posed(unary("FLOOR", (1, 2, 3, 4))) for _ in range(20)]
    assert groups(history, models, PackLimits()) == [list(range(20))]


def test_graphs_that_several_arms_run_are_written_once() -> None:
    graphs = [one.graph for one in mixed_models(6)]
    with ThreadPoolExecutor(4) as threads:
        files = list(threads.map(pack_file, [graphs] * 4))
    assert files[0] == graph_file(side_by_side(graphs))
    assert all(one is files[0] for one in files)
    for graph in [one.graph for one in mixed_models(40)]:
        pack_file([graph])
    assert len(pack_files._files) < 40


def test_equal_values_in_other_operators_make_another_file() -> None:
    graph = next(one.graph for one in mixed_models(6) if one.graph.nodes[0].operator == "NEG")
    changed = replace(graph, nodes=(replace(graph.nodes[0], operator="ABS", options={}),))
    assert pack_file([graph]) != pack_file([changed])
    assert pack_file([graph]) == graph_file(graph)


def _convolution(size: int, channels: int) -> PosedModel:
    """Return a 3 × 3 convolution of a square image."""
    weights = np.zeros((channels, 3, 3, channels), np.float32)
    shape = (1, size, size, channels)
    operands = [
        GraphValue("float32", shape),
        GraphValue("float32", weights.shape, values=weights),
        GraphValue("float32", (channels,), values=np.zeros(channels, np.float32)),
    ]
    graph = OperatorGraph.of_operator("CONV_2D", operands, [GraphValue("float32", shape)])
    return PosedModel(graph, (np.zeros((1, *shape), np.float32),))


@pytest.mark.parametrize(("size", "channels"), [(16, 8), (112, 32), (56, 64)])
def test_a_convolution_is_given_time_for_its_multiplications(size: int, channels: int) -> None:
    multiplications = size * size * 9 * channels * channels
    assert work_seconds(_convolution(size, channels)) == pytest.approx(multiplications / 10e6)


class SeenSeconds:
    """What runs packs: remembers how long each may take, and answers."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def run(self, pack: ModelPack, seconds: float) -> Outcome:
        self.seconds.append(seconds)
        return tuple(ModelAnswer() for _ in pack.models)


def test_models_are_waited_for_as_long_as_their_work_takes() -> None:
    runner, large = SeenSeconds(), _convolution(56, 64)
    search = CulpritSearch(
        cast("PackRunner", runner), FailureHistory(), [large], PackLimits(), patience_seconds=4.0
    )
    search.answers()
    assert runner.seconds == [4.0 + row_seconds([large])]
    assert row_seconds([large]) > work_seconds(large) > 10
