"""The layers of a pair, input by input: entire, single, sensitivity, and the device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.core.answer import Answer
from edgeflare.diagnose.layer_graphs import LayeredModel
from edgeflare.diagnose.layers.device_comparison import DeviceSide, operators_together
from edgeflare.diagnose.layers.layer_comparison import (
    ComparedInput,
    LayerComparison,
    compare_layers,
    open_layers,
)
from edgeflare.diagnose.layers.layer_figures import LayerFigures, Sensitivity
from edgeflare.diagnose.layers.layers_document import differs_on_device, own_share
from edgeflare.diagnose.layers.original_comparison import OriginalSide, margin_change
from edgeflare.errors import InfrastructureError
from edgeflare.models.model_probe import ProbeRefused, Values
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.record.json_types import plain_json
from graph_writer import GraphWriter
from prepared_weights import with_prepared_weights
from tampering import (
    COMPRESSED,
    EXAMPLE,
    ORIGINAL,
    InterpreterProbe,
    class_reader,
    constant_of,
    edited,
    example_input,
    original_input,
    weighted,
    with_constant,
    with_rectifiers_apart,
)

NOT_ALONE = "not run by themselves: RESHAPE (operator 7)"

CONTENT, FLOAT = COMPRESSED.read_bytes(), ORIGINAL.read_bytes()
INPUTS = [ComparedInput(example_input(at), original_input(at), at < 3) for at in range(4)]


def opens(model: bytes, capture: bool) -> InterpreterProbe:
    return InterpreterProbe(model, capture=capture)


def refused(capture: bool) -> bool:
    """Refuse what is to capture, as some runtimes do."""
    if capture:
        raise ProbeRefused("it captures no tensors")
    return False


def figures_of(
    content: bytes,
    *,
    device: DeviceSide | None = None,
    original: bytes | None = FLOAT,
    float_input: bool = False,
) -> tuple[list[LayerFigures], LayerComparison]:
    """Return the figures of a compressed model on some inputs, and what looked into them."""
    inputs = INPUTS
    if float_input:
        inputs = [replace(one, encoded=original_input(at)) for at, one in enumerate(INPUTS)]
    side = None
    if original is not None:
        side = OriginalSide(LayeredModel(Graph(original), original), class_reader(original))
    layers = LayerComparison(LayeredModel(Graph(content), content), opens, side, device)
    with closing(layers):
        compare_layers(layers, inputs)
        assert layers.inputs == len(INPUTS)
        return list(layers.figures()), layers


@pytest.fixture(scope="module")
def healthy() -> list[LayerFigures]:
    return figures_of(CONTENT)[0]


def test_the_first_layer_has_no_errors_of_layers_before(healthy: list[LayerFigures]) -> None:
    share = own_share(next(one for one in healthy if one.layer.name == "CONV_2D"))
    assert share is not None
    assert 0.8 < share < 1.2  # but for the rounding of the input


def test_operators_that_hand_on_what_they_are_given_add_nothing(
    healthy: list[LayerFigures],
) -> None:
    handing = [one for one in healthy if one.layer.name in ("MAX_POOL_2D", "RESHAPE")]
    assert handing
    for one in handing:
        assert own_share(one) == pytest.approx(0.0, abs=1e-4)
        assert one.sensitivity == Sensitivity(3, 0.0, 0.0, 0)


def test_layers_of_a_converted_model_are_all_seen(healthy: list[LayerFigures]) -> None:
    for one in healthy:
        assert one.matched_by == "structure"
        assert one.entire is not None
        assert one.entire.inputs == len(INPUTS)
        assert one.entire.snr_db is None or one.entire.snr_db > 20
        assert (one.device_single, one.device_entire) == (None, None)
    measured = [one for one in healthy if one.sensitivity is not None]
    assert {one.layer.name for one in healthy} - {one.layer.name for one in measured} == {"SOFTMAX"}


def test_the_last_layer_moves_the_margin_by_its_own_error(healthy: list[LayerFigures]) -> None:
    """Behind the scores nothing is in between: the margin is a difference of two of them."""
    graph = Graph(CONTENT)
    last = [one for one in graph.layers if one.name == "FULLY_CONNECTED"][-1]
    found = next(one for one in healthy if one.layer.operator_index == last.index)
    assert found.sensitivity is not None
    assert found.single is not None
    assert 0 < found.sensitivity.margin <= 2 * found.single.max_error


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_a_layer_of_wrong_weights_is_the_most_sensitive(operator: int) -> None:
    content = with_constant(CONTENT, constant_of(CONTENT, operator, 1), lambda values: -values)
    found, _ = figures_of(content)
    measured = [one for one in found if one.sensitivity is not None]
    worst = max(measured, key=lambda one: one.sensitivity.margin)  # type: ignore[union-attr]
    assert worst.layer.operator_index == operator
    assert worst.single is not None
    assert worst.single.snr_db is not None
    assert worst.single.snr_db < 3


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_a_layer_that_the_device_computes_otherwise_differs_by_itself(operator: int) -> None:
    """The device has other weights in one layer, also in the parts that are cut out."""
    wrong = with_constant(
        CONTENT, constant_of(CONTENT, operator, 1), lambda values: np.roll(values, 1, axis=0)
    )
    device = DeviceSide(_Faulty(CONTENT, wrong).opens, 2**20)
    found, layers = figures_of(CONTENT, device=device, original=None)
    assert [one.layer.operator_index for one in found if differs_on_device(one)] == [operator]
    assert {(one.entire, one.sensitivity) for one in found} == {(None, None)}
    behind = {
        one.layer.operator_index for one in found if one.device_entire and one.device_entire.off
    }
    assert min(behind) == operator
    assert layers.notes.lines() == [NOT_ALONE]
    assert layers.outputs_differ == len(INPUTS)
    assert layers.together == ()  # what is wrong by itself is to blame
    right = DeviceSide(opens, 2**20)
    assert figures_of(CONTENT, device=right, original=None)[1].outputs_differ == 0


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

    def replaced(self, model: bytes) -> bytes:
        for right, wrong in self._others:
            assert model.count(right) <= 1
            model = model.replace(right, wrong)
        return model

    def opens(self, model: bytes, capture: bool) -> InterpreterProbe:
        return opens(self.replaced(model), capture)


def test_operators_that_are_wrong_together_alone_are_named() -> None:
    """The device computes an operator otherwise where the one that feeds it is in the file, too."""
    graph = Graph(CONTENT)
    last = [one for one in graph.layers if one.name == "FULLY_CONNECTED"][-1]
    (fed,) = graph.fed(last)
    before = graph.operators[graph.made_by[fed]]
    name = constant_of(CONTENT, last.index, 1)
    wrong = _Faulty(CONTENT, with_constant(CONTENT, name, lambda values: -values))
    names = {graph.tensors[one.outputs[0]].name for one in (before, last)}

    def fused(model: bytes, capture: bool) -> InterpreterProbe:
        made = Graph(model)
        held = {made.tensors[one.outputs[0]].name for one in made.layers if one.outputs}
        joined = names <= held and any(
            made.made_by.get(tensor) is not None
            for one in made.layers
            if made.tensors[one.outputs[0]].name == graph.tensors[last.outputs[0]].name
            for tensor in made.fed(one)
        )
        return wrong.opens(model, False) if joined else opens(model, False)

    def blind(model: bytes, capture: bool) -> InterpreterProbe:
        return fused(model, refused(capture))

    found, layers = figures_of(CONTENT, device=DeviceSide(blind, 2**20), original=None)
    assert not any(differs_on_device(one) for one in found)
    assert [one.operator_index for one in layers.together] == [before.index, last.index]
    cut = LayerComparison(LayeredModel(graph, CONTENT), opens, None, DeviceSide(blind, 2**20))
    with closing(cut):
        cut.add(INPUTS[0], lambda: True)
        assert (cut.inputs, cut.together) == (1, ())
    _, right = figures_of(CONTENT, device=DeviceSide(opens, 2**20), original=None)
    assert right.together == ()


def test_a_device_that_captures_nothing_is_compared_one_by_one() -> None:
    device = DeviceSide(lambda model, capture: opens(model, refused(capture)), 2**20)
    found, layers = figures_of(CONTENT, device=device, original=None)
    assert all(one.device_entire is None for one in found)
    assert any(one.device_single is not None for one in found)
    (note,) = [one for one in layers.notes.lines() if "captures" in one]
    assert note == "the device captures no tensors: its layers are compared one by one"


def test_a_device_that_is_wrong_in_a_further_output_of_an_operator_differs_there() -> None:
    writer, options = GraphWriter(), schema.SplitOptionsT()
    options.numSplits = 2
    x = writer.tensor("x", (1, 4), "FLOAT32")
    halves = [writer.tensor(name, (1, 2), "FLOAT32") for name in ("left", "right")]
    axis = writer.constant("axis", np.array([1], np.int32).reshape(()))
    writer.operator("SPLIT", [axis, x], halves, options)
    content = writer.content([x], halves)

    class Doubling(InterpreterProbe):
        def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
            left, right, *others = super().run(inputs)
            return (left, np.asarray(right * 2), *others)

    device = DeviceSide(lambda model, capture: Doubling(model, capture=capture), 2**20)
    layers = LayerComparison(LayeredModel(Graph(content), content), opens, None, device)
    with closing(layers):
        layers.add(ComparedInput(np.array([[1, 2, 3, 4]], np.float32), None))
        (split,) = layers.figures()
    assert differs_on_device(split)
    assert split.device_single is not None
    assert split.device_single.max_error == 4.0


def test_outputs_of_a_twin_whose_layers_are_not_seen_are_compared() -> None:
    name = constant_of(CONTENT, weighted(CONTENT)[0], 1)
    wrong = _Faulty(CONTENT, with_constant(CONTENT, name, lambda values: -values))
    outputs = len(Graph(CONTENT).outputs)

    def blind(model: bytes, capture: bool) -> InterpreterProbe:
        return opens(model, refused(capture or len(Graph(model).outputs) > outputs))

    device = DeviceSide(wrong.opens, 2**20)
    layers = LayerComparison(LayeredModel(Graph(CONTENT), CONTENT), blind, None, device)
    with closing(layers):
        compare_layers(layers, INPUTS)
    assert layers.outputs_differ == layers.inputs == len(INPUTS)


def test_a_device_that_is_lost_within_an_input_leaves_counts_that_go_together() -> None:
    name = constant_of(CONTENT, weighted(CONTENT)[0], 1)
    wrong, asked = _Faulty(CONTENT, with_constant(CONTENT, name, lambda values: -values)), []

    class Lost(InterpreterProbe):
        def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
            asked.append(len(inputs))
            if len(inputs) > 1 and len(asked) > 4:
                raise InfrastructureError("the phone is gone")
            return super().run(inputs)

    def losing(model: bytes, capture: bool) -> InterpreterProbe:
        return Lost(wrong.replaced(model), capture=capture)

    side = OriginalSide(LayeredModel(Graph(FLOAT), FLOAT), class_reader(FLOAT))
    device = DeviceSide(losing, 2**20)
    layers = LayerComparison(LayeredModel(Graph(CONTENT), CONTENT), opens, side, device)
    with closing(layers):
        with pytest.raises(InfrastructureError):
            compare_layers(layers, INPUTS)
        measured = {one.sensitivity.inputs for one in layers.figures() if one.sensitivity}
    assert measured == {layers.inputs} == {2}
    assert layers.outputs_differ == 1


def test_operators_go_together_as_far_as_one_message_carries_them() -> None:
    graph = Graph(CONTENT)
    sizes = {
        one.index: sum(graph.tensors[tensor].nbytes for tensor in graph.fed(one))
        for one in graph.layers
        if graph.fed(one) and one.name != "RESHAPE"  # which is told its shape
    }
    limit = max(sizes.values())
    groups = list(operators_together(graph, limit))
    assert [op for group in groups for op in group] == list(sizes)
    assert all(sum(sizes[op] for op in group) <= limit for group in groups)
    assert len(groups) < len(sizes)
    small = [op for group in operators_together(graph, limit - 1) for op in group]
    assert small == [op for op, size in sizes.items() if size < limit]


def test_an_operator_that_is_refused_takes_no_other_along() -> None:
    """The device takes no FULLY_CONNECTED that is cut out, as an accelerator may refuse one."""

    def picky(model: bytes, capture: bool) -> InterpreterProbe:
        names = [one.name for one in Graph(model).operators]
        if "FULLY_CONNECTED" in names and len(names) < len(Graph(CONTENT).operators):
            raise ProbeRefused("no FULLY_CONNECTED here")
        return opens(model, capture)

    found, layers = figures_of(CONTENT, device=DeviceSide(picky, 2**20), original=None)
    compared = {one.layer.name for one in found if one.device_single is not None}
    assert compared >= {"CONV_2D", "MAX_POOL_2D", "SOFTMAX"}
    assert "FULLY_CONNECTED" not in compared
    refused = [one for one in layers.notes.lines() if "no FULLY_CONNECTED here" in one]
    assert len(refused) == 2


def test_a_comparison_that_is_stopped_has_the_inputs_until_then() -> None:
    layers = LayerComparison(LayeredModel(Graph(CONTENT), CONTENT), opens, None, None)
    seen: list[int] = []
    with closing(layers):
        compare_layers(layers, INPUTS, lambda at, _of: seen.append(at), lambda: len(seen) == 2)
    assert (layers.inputs, seen) == (2, [1, 2])


def test_inputs_come_in_an_order_whose_beginning_is_of_all_labels(tmp_path: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as stored:
        labels, order = np.unique(stored["labels"], return_inverse=True)
        images = stored["images"][np.argsort(order, kind="stable")]
        np.savez(tmp_path / "sorted.npz", images=images, labels=np.sort(order))
    places = {image.tobytes(): at for at, image in enumerate(images)}
    pair = replace(load_pair(EXAMPLE), seeds=tmp_path / "sorted.npz")
    with ExitStack() as stack:
        opened = open_layers(pair, len(images), 30, None, stack)
    given = [(one.encoded.astype(int) + 128).astype(np.uint8) for one in opened.inputs]
    begun = [np.sort(order)[places[image.tobytes()]] for image in given[:20]]
    assert set(begun) == set(range(len(labels)))
    assert [one.sensitivity for one in opened.inputs] == [at < 30 for at in range(len(images))]


def test_a_model_that_does_not_run_is_noted_once() -> None:
    def broken(model: bytes, capture: bool) -> InterpreterProbe:
        raise ProbeRefused("it does not run here")

    layers = LayerComparison(LayeredModel(Graph(CONTENT), CONTENT), broken, None, None)
    with closing(layers):
        compare_layers(layers, INPUTS)
    assert layers.inputs == 0
    assert layers.notes.lines() == ["the twin gives no answer: it does not run here (4 times)"]


def test_a_float16_file_is_seen_whole() -> None:
    found, _ = figures_of(with_prepared_weights(FLOAT, ["DEQUANTIZE"]), float_input=True)
    assert found
    assert all(one.entire is not None and one.entire.inputs == len(INPUTS) for one in found)


@pytest.mark.parametrize("apart", ["compressed", "original"])
def test_layers_are_compared_behind_an_activation_that_one_file_fuses(apart: str) -> None:
    half = with_prepared_weights(FLOAT, ["DEQUANTIZE"])
    content, original = half, with_rectifiers_apart(FLOAT)
    if apart == "compressed":
        content, original = with_rectifiers_apart(half), FLOAT
    found, layers = figures_of(content, original=original, float_input=True)
    assert layers.notes.lines() == []
    assert {one.layer.name for one in found} >= {"CONV_2D", "FULLY_CONNECTED"}
    for one in found:
        for error in (one.entire, one.single):
            assert error is not None
            assert error.snr_db is None or error.snr_db > 40
        assert one.sensitivity is None or one.sensitivity.margin < 0.05


def test_the_quantize_of_a_float_input_stands_for_the_input() -> None:
    found, _ = figures_of(edited(CONTENT, _with_float_input), float_input=True)
    assert (found[0].layer.name, found[0].matched_by) == ("QUANTIZE", "conversion")
    assert found[0].original_index is None
    assert found[0].entire == found[0].single
    assert msgspec.convert(plain_json(found), list[LayerFigures]) == found


def _with_float_input(model: Any) -> None:
    graph = model.subgraphs[0]
    (raw,) = graph.inputs
    real = schema.TensorT(name=b"real", shape=graph.tensors[raw].shape, buffer=0)
    graph.tensors.append(real)
    code = schema.BuiltinOperator.QUANTIZE
    model.operatorCodes.append(schema.OperatorCodeT(builtinCode=code, deprecatedBuiltinCode=code))
    at = len(graph.tensors) - 1
    made = schema.OperatorT(opcodeIndex=len(model.operatorCodes) - 1, inputs=[at], outputs=[raw])
    graph.operators.insert(0, made)
    graph.inputs = [at]
    model.signatureDefs = []


def test_a_changed_decision_is_counted() -> None:
    name = constant_of(CONTENT, weighted(CONTENT)[-1], 1)
    content = with_constant(CONTENT, name, lambda values: -values)
    (found,) = (
        one for one in figures_of(content)[0] if one.layer.operator_index == weighted(CONTENT)[-1]
    )
    assert found.sensitivity is not None
    assert found.sensitivity.changed == found.sensitivity.inputs == 3


def test_ranges_are_held_against_what_the_original_puts_out() -> None:
    """The twin itself has no value beyond its range."""
    first = weighted(CONTENT)[0]

    def narrowed(model: Any) -> None:
        tensors = model.subgraphs[0].tensors
        scale = tensors[model.subgraphs[0].operators[first].outputs[0]].quantization.scale[0]
        for tensor in tensors:  # those of the pool behind it too, whose scale is the same
            known = tensor.quantization
            if known is not None and np.array_equal(known.scale, [scale]):
                known.scale = [scale / 4]

    found, _ = figures_of(edited(CONTENT, narrowed))
    cut = next(one for one in found if one.layer.operator_index == first)
    assert cut.range is not None
    assert cut.range.above > 0.01


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
    beyond = [one.layer.operator_index for one in found if one.constants and one.constants.beyond]
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
