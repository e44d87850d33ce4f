"""The layers of a pair, input by input: entire, single, sensitivity, and the device."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.diagnose.layered_models import LayeredModel
from edgeflare.diagnose.layers.against_original import OriginalSide, margin_change
from edgeflare.diagnose.layers.against_twin import DeviceSide, operators_together
from edgeflare.diagnose.layers.layer_figures import LayerFigures
from edgeflare.diagnose.layers.layer_walk import LayerWalk, walk
from edgeflare.diagnose.layers.layers_document import differs_on_device, own_share
from edgeflare.models.tflite_graph import Graph
from tampering import (
    COMPRESSED,
    ORIGINAL,
    InterpreterProbe,
    class_reader,
    constant_of,
    edited,
    example_input,
    original_input,
    weighted,
    with_constant,
)

CONTENT, FLOAT = COMPRESSED.read_bytes(), ORIGINAL.read_bytes()
INPUTS = 4


def opens(model: bytes, capture: bool) -> InterpreterProbe:
    return InterpreterProbe(model, capture=capture)


def figures_of(
    content: bytes, *, device: DeviceSide | None = None, original: bytes | None = FLOAT
) -> tuple[list[LayerFigures], LayerWalk]:
    """Return the figures of a compressed model on some inputs, and what looked into them."""
    side = None
    if original is not None:
        side = OriginalSide(LayeredModel(Graph(original), original), class_reader(original))
    layers = LayerWalk(LayeredModel(Graph(content), content), opens, side, device)
    with closing(layers):
        inputs = [(example_input(at), original_input(at)) for at in range(INPUTS)]
        assert walk(layers, inputs, INPUTS) == INPUTS
        return list(layers.figures()), layers


@pytest.fixture(scope="module")
def healthy() -> list[LayerFigures]:
    return figures_of(CONTENT)[0]


def test_the_first_layer_has_no_errors_of_layers_before(healthy: list[LayerFigures]) -> None:
    first = next(one for one in healthy if one.layer.name == "CONV_2D")
    assert first.entire == first.single
    assert own_share(first) == 1.0


def test_layers_of_a_converted_model_are_all_seen(healthy: list[LayerFigures]) -> None:
    for one in healthy:
        assert one.matched_by == "structure"
        assert one.entire is not None
        assert one.entire.inputs == INPUTS
        assert one.entire.sqnr_db is None or one.entire.sqnr_db > 20
        assert (one.device_single, one.device_entire) == (None, None)
    measured = [one for one in healthy if one.sensitivity is not None]
    assert {one.layer.name for one in healthy} - {one.layer.name for one in measured} == {"SOFTMAX"}


def test_the_last_layer_moves_the_margin_by_its_own_error(healthy: list[LayerFigures]) -> None:
    """Behind the scores nothing is in between: the margin is a difference of two of them."""
    graph = Graph(CONTENT)
    last = [one for one in graph.layers if one.name == "FULLY_CONNECTED"][-1]
    found = next(one for one in healthy if one.layer.operator == last.index)
    assert found.sensitivity is not None
    assert found.single is not None
    assert 0 < found.sensitivity.margin <= 2 * found.single.largest


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_a_layer_of_wrong_weights_is_the_most_sensitive(operator: int) -> None:
    content = with_constant(CONTENT, constant_of(CONTENT, operator, 1), lambda values: -values)
    found, _ = figures_of(content)
    measured = [one for one in found if one.sensitivity is not None]
    worst = max(measured, key=lambda one: one.sensitivity.margin)  # type: ignore[union-attr]
    assert worst.layer.operator == operator
    assert worst.single is not None
    assert worst.single.sqnr_db is not None
    assert worst.single.sqnr_db < 3


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_a_layer_that_the_device_computes_otherwise_differs_by_itself(operator: int) -> None:
    """The device has other weights in one layer, also in the parts that are cut out."""
    wrong = with_constant(
        CONTENT, constant_of(CONTENT, operator, 1), lambda values: np.roll(values, 1, axis=0)
    )
    device = DeviceSide(_Faulty(CONTENT, wrong).opens, 2**20)
    found, layers = figures_of(CONTENT, device=device, original=None)
    assert [one.layer.operator for one in found if differs_on_device(one)] == [operator]
    assert {(one.entire, one.sensitivity) for one in found} == {(None, None)}
    behind = {one.layer.operator for one in found if one.device_entire and one.device_entire.off}
    assert min(behind) == operator
    assert not layers.notes


class _Faulty:
    """A device whose kernels go by other constants than the file's."""

    def __init__(self, right: bytes, wrong: bytes) -> None:
        before, after = Graph(right), Graph(wrong)
        self._others = [
            (before.values(one.index).tobytes(), after.values(one.index).tobytes())
            for one in before.tensors
            if one.constant
            and before.values(one.index).tobytes() != after.values(one.index).tobytes()
        ]

    def opens(self, model: bytes, capture: bool) -> InterpreterProbe:
        for right, wrong in self._others:
            assert model.count(right) <= 1
            model = model.replace(right, wrong)
        return opens(model, capture)


def test_a_device_that_captures_nothing_is_compared_one_by_one() -> None:
    class Blind(InterpreterProbe):
        captures = False

    device = DeviceSide(lambda model, _capture: Blind(model, capture=False), 2**20)
    found, layers = figures_of(CONTENT, device=device, original=None)
    assert all(one.device_entire is None for one in found)
    assert any(one.device_single is not None for one in found)
    assert list(layers.notes) == [
        "the device captures no tensors, so its layers are compared one by one"
    ]


def test_operators_go_together_as_far_as_one_message_carries_them() -> None:
    graph = Graph(CONTENT)
    sizes = {
        one.index: sum(graph.tensors[tensor].nbytes for tensor in graph.fed(one))
        for one in graph.layers
        if graph.fed(one)
    }
    limit = max(sizes.values())
    groups = list(operators_together(graph, limit))
    assert [op for group in groups for op in group] == list(sizes)
    assert all(sum(sizes[op] for op in group) <= limit for group in groups)
    assert len(groups) < len(sizes)
    small = [op for group in operators_together(graph, limit - 1) for op in group]
    assert small == [op for op, size in sizes.items() if size < limit]


def test_a_walk_that_is_stopped_has_the_inputs_until_then() -> None:
    layers = LayerWalk(LayeredModel(Graph(CONTENT), CONTENT), opens, None, None)
    seen: list[int] = []
    with closing(layers):
        done = walk(
            layers,
            [(example_input(at), None) for at in range(3)],
            0,
            lambda at, _of: seen.append(at),
            lambda: len(seen) == 2,
        )
    assert (done, seen) == (2, [1, 2])


def test_a_margin_changes_by_the_scores_of_the_decision_at_home() -> None:
    home, other = (
        Answer(int(np.argmax(scores)), False, np.ones(3) / 3, np.array(scores))
        for scores in ([3.0, 1.0, 0.0], [2.0, 2.5, 0.0])
    )
    assert margin_change(home, other) == 2.5
    assert margin_change(home, home) == 0.0


def test_values_have_no_margin_but_a_distance() -> None:
    class Values(Answer):
        def margin(self, home: Answer) -> float:  # noqa: ARG002
            return np.inf

        def distance(self, other: Answer) -> float:  # noqa: ARG002
            return 0.25

    home, other = (Values(0, False, np.empty(0), np.empty(0)) for _ in range(2))
    assert margin_change(home, other) == 0.25


def test_constants_are_compared_whatever_the_input() -> None:
    operator = weighted(CONTENT)[1]
    name = constant_of(CONTENT, operator, 2)
    content = with_constant(CONTENT, name, lambda values: values + 1000)
    found, _ = figures_of(content)
    beyond = [one.layer.operator for one in found if one.constants and one.constants.beyond]
    assert beyond == [operator]


def test_the_range_of_the_input_is_held_against_what_the_original_is_given() -> None:
    _, layers = figures_of(CONTENT)
    assert layers.input_range is not None
    assert (layers.input_range.below, layers.input_range.above) == (0.0, 0.0)
    halved = edited(CONTENT, _halve_input)
    _, narrow = figures_of(halved)
    assert narrow.input_range is not None
    assert narrow.input_range.above > 0.05
    assert figures_of(CONTENT, original=None)[1].input_range is None


def _halve_input(model: Any) -> None:
    graph = model.subgraphs[0]
    graph.tensors[graph.inputs[0]].quantization.scale = [0.5 / 255]
