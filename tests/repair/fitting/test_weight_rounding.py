"""Weights rounded by GPTQ: what holds of random problems, and of real networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dynamic_range import quantize_weights
from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting import weight_rounding
from edgeflare.repair.fitting.gptq import Real, damped, output_errors, rounded_by_gptq
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import captured
from edgeflare.repair.fitting.weight_rounding import InputMoments, fit_rounding, round_original
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import FITTED_WITH, JUDGED_BY, judged, untold
from graph_writer import GraphWriter
from operator_chain import ChainStep, write_tflite
from tampering import COMPRESSED, ORIGINAL, constant_of, edited, run, with_constant


@dataclass(frozen=True)
class Problem:
    """Weights (groups, outputs, k), the Hessian (groups, k, k) and scales (groups, outputs)."""

    weights: Real
    hessian: Real
    scales: Real

    def errors(self, steps: Real) -> Real:
        """The squared error of each output, (groups, outputs)."""
        return output_errors(self.weights - steps * self.scales[..., None], self.hessian)

    @property
    def nearest(self) -> Real:
        return np.clip(np.rint(self.weights / self.scales[..., None]), -127, 127)


@st.composite
def problems(
    draw: st.DrawFn, *, widest: float = 1.0, per_tensor: bool = False, coarse: bool = False
) -> Problem:
    """Random problems, of which the inputs are correlated as those of neighbouring pixels are.

    Beyond `widest` 1, weights are cut off. The greatest weight of `coarse` problems is a few steps.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    inputs, rows = draw(st.integers(1, 12)), draw(st.integers(0, 40))
    correlated = rng.normal(size=(groups, rows, inputs)) @ rng.normal(size=(groups, inputs, inputs))
    shared = draw(st.floats(0, 3)) * rng.normal(size=(groups, rows, 1))
    given_ = correlated + shared
    given_[..., rng.random(inputs) < 0.1] = 0
    weights = rng.normal(size=(groups, outputs, inputs))
    largest = np.abs(weights).max(axis=None if per_tensor else -1)
    scales = np.broadcast_to(largest / (127 * widest), (groups, outputs))
    factor = draw(st.sampled_from([20.0, 60.0])) if coarse else 1.0
    return Problem(weights, given_.transpose(0, 2, 1) @ given_, scales * factor)


def _rounded(problem: Problem) -> Real:
    steps = rounded_by_gptq(problem.weights, problem.hessian, problem.scales)
    assert steps.dtype == np.int8
    return steps.astype(np.float64)


@given(st.one_of(problems(), problems(widest=3), problems(per_tensor=True), problems(coarse=True)))
def test_no_output_has_a_larger_error_than_rounded_to_nearest(problem: Problem) -> None:
    """Weights are whole steps within their range."""
    steps, allowed = _rounded(problem), problem.errors(problem.nearest)
    assert (problem.errors(steps) <= allowed + 1e-9 * (1 + allowed)).all()
    assert steps.shape == problem.weights.shape
    assert np.abs(steps).max() <= 127


@given(st.one_of(problems(coarse=True), problems(coarse=True, per_tensor=True)))
def test_the_error_is_within_the_bound_of_the_nearest_plane(problem: Problem) -> None:
    """Half a step of each column, as far as the columns behind it cannot make up for it."""
    steps = _rounded(problem)
    assume(np.abs(steps).max() < 127)  # else a weight may have been cut off
    hessian = damped(problem.hessian)
    behind = [np.linalg.inv(hessian[:, j:, j:])[:, 0, 0] for j in range(hessian.shape[-1])]
    bound = problem.scales**2 / 4 * (1 / np.array(behind)).sum(axis=0)[:, None]
    assert (problem.errors(steps) <= bound * (1 + 1e-6)).all()


def test_the_errors_of_correlated_inputs_are_less_than_half() -> None:
    """Those of 200 random outputs together, and of most of them less than rounded to nearest."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1, 500, 30)) + 3 * rng.normal(size=(1, 500, 1))
    weights = rng.normal(size=(1, 200, 30))
    scales = np.abs(weights).max(axis=-1) / 7
    problem = Problem(weights, inputs.transpose(0, 2, 1) @ inputs, scales)
    steps = _rounded(problem)
    assert problem.errors(steps).sum() < 0.5 * problem.errors(problem.nearest).sum()
    assert (problem.errors(steps) < problem.errors(problem.nearest)).mean() > 0.5


@given(problems(), st.integers(0, 2**32 - 1))
def test_weights_of_whole_steps_stay(problem: Problem, seed: int) -> None:
    steps = np.random.default_rng(seed).integers(-127, 128, problem.weights.shape)
    on_grid = Problem(steps * problem.scales[..., None], problem.hessian, problem.scales)
    assert (_rounded(on_grid) == steps).all()


@given(problems())
def test_uncorrelated_inputs_round_to_nearest(problem: Problem) -> None:
    diagonal = problem.hessian * np.eye(problem.hessian.shape[-1])
    alone = Problem(problem.weights, diagonal, problem.scales)
    assert (_rounded(alone) == problem.nearest).all()


@given(problems(), st.integers(-20, 20))
def test_a_factor_of_the_hessian_changes_nothing(problem: Problem, exponent: int) -> None:
    scaled = Problem(problem.weights, problem.hessian * 2.0**exponent, problem.scales)
    assert (_rounded(scaled) == _rounded(problem)).all()


@given(problems())
def test_groups_are_rounded_each_by_itself(problem: Problem) -> None:
    for group in range(len(problem.weights)):
        one = slice(group, group + 1)
        alone = Problem(problem.weights[one], problem.hessian[one], problem.scales[one])
        assert (_rounded(alone) == _rounded(problem)[one]).all()


Rows = NDArray[np.float32]


def _drawn(seed: int, groups: int, rows: int, inputs: int, off: float) -> tuple[Rows, Rows]:
    """Inputs with a mean, and the original's, from which they differ in a way that depends on them.

    So weights can make up for some of the difference.
    """
    rng = np.random.default_rng(seed)
    original = rng.normal(size=(groups, rows, inputs)) + rng.normal(size=inputs)
    mixed = original @ rng.normal(size=(inputs, inputs))
    given_ = original + off * (mixed + rng.normal(size=original.shape) + 1)
    return given_.astype(np.float32), original.astype(np.float32)


def _moments(
    given_: Rows,
    original: Rows | None,
    *,
    centred: bool,
    parts: int = 1,
    weights: NDArray[np.float64] | None = None,
) -> InputMoments:
    groups, _, inputs = given_.shape
    moments = InputMoments(groups, inputs, centred=centred, original_weights=weights)
    for some in np.array_split(np.arange(given_.shape[1]), parts):
        moments.add(given_[:, some], None if original is None else original[:, some])
    return moments


@pytest.mark.parametrize("centred", [True, False])
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(1, 2), outputs=st.integers(1, 3))
def test_compensating_weights_are_those_of_ridge_regression(
    centred: bool, seed: int, groups: int, outputs: int
) -> None:
    given_, original = _drawn(seed, groups, 50, 4, 0.2)
    weights = np.random.default_rng(seed).normal(size=(groups, outputs, 4))
    got = _moments(given_, original, centred=centred).compensating(weights)
    for group in range(groups):
        x, y = given_[group].astype(np.float64), original[group].astype(np.float64)
        if centred:
            x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        # Rows that hold the weights to the original's, as strongly as 1 % of the inputs' variance.
        hold = np.sqrt(0.01 * (x**2).sum() / 4) * np.eye(4)
        left = np.concatenate([x, hold])
        right = np.concatenate([y @ weights[group].T, hold @ weights[group].T])
        wanted = np.linalg.lstsq(left, right, rcond=None)[0].T
        np.testing.assert_allclose(got[group], wanted, rtol=1e-3, atol=1e-3)


@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 7))
def test_inputs_may_come_in_parts(seed: int, parts: int) -> None:
    given_, original = _drawn(seed, 2, 30, 3, 0.3)
    at_once = _moments(given_, original, centred=True)
    in_parts = _moments(given_, original, centred=True, parts=parts)
    np.testing.assert_allclose(in_parts.hessian, at_once.hessian, rtol=1e-4, atol=1e-4)
    weights = np.ones((2, 1, 3))
    np.testing.assert_allclose(
        in_parts.compensating(weights), at_once.compensating(weights), rtol=1e-3, atol=1e-3
    )


@given(seed=st.integers(0, 2**32 - 1), centred=st.booleans())
def test_weights_that_are_known_before_are_fitted_alike(seed: int, centred: bool) -> None:
    """Sums are then of what errors make of the outputs, here of 2 of 9 inputs each."""
    given_, original = _drawn(seed, 2, 200, 9, 0.2)
    weights, others = np.random.default_rng(seed).normal(size=(2, 2, 2, 9))
    known = _moments(given_, original, centred=centred, parts=3, weights=weights)
    any_ = _moments(given_, original, centred=centred)
    assert known._products_of_errors.shape < any_._products_of_errors.shape
    np.testing.assert_allclose(
        known.compensating(weights), any_.compensating(weights), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(
        known.output_difference(weights, others),
        any_.output_difference(weights, others),
        rtol=1e-3,
        atol=1e-3,
    )


@given(seed=st.integers(0, 2**32 - 1), centred=st.booleans())
def test_equal_inputs_leave_the_weights_as_they_are(seed: int, centred: bool) -> None:
    given_, _ = _drawn(seed, 1, 20, 5, 0.2)
    weights = np.random.default_rng(seed).normal(size=(1, 3, 5))
    for original in (given_, None):
        moments = _moments(given_, original, centred=centred)
        assert (moments.compensating(weights) == weights).all()
        assert (moments.output_difference(weights, weights) == 0).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_inputs_that_are_always_the_same_leave_weights_as_they_are(seed: int) -> None:
    _, original = _drawn(seed, 1, 700, 9, 0.2)
    clipped = np.broadcast_to(original[:, :1], original.shape)
    moments = _moments(clipped, original, centred=True, parts=3)
    assert not moments.hessian.any()
    weights = np.random.default_rng(seed).normal(size=(1, 3, 9))
    assert (moments.compensating(weights) == weights).all()


@given(seed=st.integers(0, 2**32 - 1), centred=st.booleans())
def test_the_difference_of_the_outputs_is_that_of_their_means(seed: int, centred: bool) -> None:
    given_, original = _drawn(seed, 2, 40, 4, 0.5)
    rng = np.random.default_rng(seed)
    before, after = rng.normal(size=(2, 2, 3, 4))
    got = _moments(given_, original, centred=centred).output_difference(before, after)
    difference = original @ before.transpose(0, 2, 1) - given_ @ after.transpose(0, 2, 1)
    np.testing.assert_allclose(got, difference.mean(axis=1), rtol=1e-4, atol=1e-4)


_LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def _example(content: bytes | None = None, *, others: bool = False) -> QuantizedNetwork:
    """The example's pair, with images to fit with, or others to judge by."""
    known = judged("example")
    network = replace(known.network, content=content or known.network.content)
    if others:
        network = replace(network, rows=known.rows, original_rows=known.original_rows)
    quantized = network.graph.tensors[network.graph.inputs[0]].scales
    return network if quantized else replace(network, rows=network.original_rows)


def _layer_errors(network: QuantizedNetwork, content: bytes) -> dict[int, float]:
    """Mean squared error of each layer's output against the original's, by operator."""
    layers = [layer for layer in network.layers if layer.name in _LAYERS]
    graph = network.graph
    got = captured(content, network.rows, [one.output for one in layers])
    wanted = captured(
        network.original, network.original_rows, [one.original_output for one in layers]
    )
    errors = {}
    for one in layers:
        raw = got[one.output].reshape(-1, *graph.tensors[one.output].shape)
        real = graph.tensors[one.output].real(raw).ravel()
        errors[one.operator] = float(
            np.mean((real - wanted[one.original_output].ravel().astype(np.float64)) ** 2)
        )
    return errors


@pytest.fixture(scope="module")
def fitted() -> bytes:
    return fit_rounding(_example(), untold)


@pytest.mark.slow
def test_every_layer_comes_nearer_to_the_original_on_other_inputs(fitted: bytes) -> None:
    network = _example(others=True)
    before, after = _layer_errors(network, network.content), _layer_errors(network, fitted)
    assert all(after[operator] < before[operator] for operator in before), (before, after)
    assert after[max(after)] < 0.8 * before[max(before)]


@pytest.mark.slow
def test_nothing_changes_but_weights_and_biases(fitted: bytes) -> None:
    content = COMPRESSED.read_bytes()
    before, after = Graph(content), Graph(fitted)
    assert len(fitted) == len(content)
    assert (after.tensors, after.operators) == (before.tensors, before.operators)
    changeable = {
        tensor for one in before.operators if one.name in _LAYERS for tensor in one.inputs[1:]
    }
    weights = {one.inputs[1] for one in before.operators if one.name in _LAYERS}
    for tensor in (one.index for one in before.tensors if one.constant):
        same = (before.values(tensor) == after.values(tensor)).all()
        assert same or tensor in changeable
        assert not same or tensor not in weights
        if tensor in weights:
            assert np.abs(after.values(tensor).astype(int)).max() <= 127


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_the_file_runs_on_all_kernels(fitted: bytes, kernels: Kernels) -> None:
    network = _example(others=True)
    same = [
        run(fitted, [row[None]], kernels)[0].argmax() == run(network.original, [real])[0].argmax()
        for row, real in zip(network.rows, network.original_rows[:, None], strict=True)
    ]
    assert np.mean(same) >= 0.95


@pytest.mark.slow
def test_weights_and_biases_of_the_file_do_not_matter_and_chance_neither(fitted: bytes) -> None:
    """All is derived from the original and from the inputs: damage is mended on the way."""
    damaged = COMPRESSED.read_bytes()
    for operator, position in ((0, 2), (2, 1), (8, 2)):
        name = constant_of(damaged, operator, position)
        damaged = with_constant(damaged, name, np.zeros_like)
    seen: list[tuple[int, int]] = []
    network = _example(damaged)
    again = Graph(fit_rounding(network, lambda done, of: seen.append((done, of))))
    first = Graph(fitted)
    for one in first.tensors:
        if one.constant:
            assert (again.values(one.index) == first.values(one.index)).all()
    assert seen == [(done, 4) for done in range(5)]


@pytest.mark.slow
def test_layers_are_rounded_with_more_inputs_where_there_are_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The dense ones with all of them, convolutions with what there was of their many positions."""
    few, many = _example(), _example(others=True)
    monkeypatch.setattr(weight_rounding, "MOST_INPUTS", JUDGED_BY)
    monkeypatch.setattr(weight_rounding, "_POSITIONS", JUDGED_BY)
    asked: list[int] = []

    def further(wanted: int) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
        asked.append(wanted)
        return many.rows, many.original_rows

    made = Graph(fit_rounding(replace(few, further=further), untold))
    rows, original_rows = many.rows[:FITTED_WITH], many.original_rows[:FITTED_WITH]
    alone = replace(many, rows=rows, original_rows=original_rows)
    first = Graph(fit_rounding(alone, untold))
    whole = Graph(fit_rounding(many, untold))
    assert asked == [JUDGED_BY]
    convolution, *_, dense = (one.inputs[1] for one in made.layers if one.name in _LAYERS)
    assert (made.values(convolution) == first.values(convolution)).all()
    assert (made.values(convolution) != whole.values(convolution)).any()
    assert (made.values(dense) != first.values(dense)).any()


@pytest.mark.slow
def test_a_part_of_the_positions_rounds_as_well(
    fitted: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_rounding, "_MOST_POSITIONS", 100 * FITTED_WITH)
    thinned, network = fit_rounding(_example(), untold), _example(others=True)
    every, some = _layer_errors(network, fitted), _layer_errors(network, thinned)
    assert every != some
    assert all(some[operator] < 1.05 * every[operator] for operator in every), (every, some)


@pytest.mark.slow
def test_a_layer_with_wrong_scales_becomes_as_good_as_a_sound_one(fitted: bytes) -> None:
    content, graph = COMPRESSED.read_bytes(), Graph(COMPRESSED.read_bytes())
    weights = graph.tensors[graph.operators[2].inputs[1]]
    edit = InPlaceEdit(content)
    wrong = [0.6 * scale for scale in weights.scales]
    edit.set_quantization(weights.index, wrong, weights.zero_points)
    mended = fit_rounding(_example(edit.content()), untold)
    network = _example(others=True)
    sound, after = _layer_errors(network, fitted), _layer_errors(network, mended)
    assert all(after[operator] < 1.1 * sound[operator] for operator in sound), (sound, after)


@pytest.mark.slow
def test_logits_that_were_shifted_for_their_range_stay_shifted(fitted: bytes) -> None:
    """A softmax does not see a shift, and ranges that were fitted before count on theirs."""
    content = COMPRESSED.read_bytes()
    first = Graph(fitted)
    _, weights, bias = first.operators[9].inputs
    steps = np.rint(2.0 / np.asarray(first.tensors[bias].scales)).astype(np.int32)
    shifted = with_constant(content, constant_of(content, 9, 2), lambda values: values - steps)
    again = Graph(fit_rounding(_example(shifted), untold))
    moved = again.values(bias).astype(int) - first.values(bias).astype(int)
    assert np.abs(moved + steps).max() <= 1
    assert (again.values(weights) == first.values(weights)).all()


@pytest.mark.slow
def test_depthwise_convolutions_and_one_scale_for_a_layer() -> None:
    known = judged("mobilenet")
    network = known.network
    others = replace(network, rows=known.rows, original_rows=known.original_rows)
    assert {layer.name for layer in network.layers} >= set(_LAYERS)
    (dense,) = (one for one in network.graph.layers if one.name == "FULLY_CONNECTED")
    assert len(network.graph.tensors[dense.inputs[1]].scales) == 1
    changed = fit_rounding(network, untold)
    before, after = _layer_errors(others, network.content), _layer_errors(others, changed)
    assert all(after[operator] < before[operator] for operator in before), (before, after)
    assert sum(after.values()) < 0.9 * sum(before.values())


def test_a_layer_that_is_exact_stays_to_the_byte() -> None:
    """Weights and biases are whole steps, and the original has the inputs that the layer has."""
    rng = np.random.default_rng(0)
    ranges = {"image": (0.0, 255 / 256), "dense": (-8.0, 8.0)}
    whole = rng.integers(-127, 128, (4, 6)).astype(np.float32)
    whole[:, 0] = 127
    bias = rng.integers(-999, 999, 4).astype(np.float32) / np.float32(2**15)
    weights = whole / np.float32(128)
    steps = [ChainStep("dense", "FULLY_CONNECTED", ("image",), (1, 4), weights, bias)]
    rows = rng.integers(-128, 128, (30, 6)).astype(np.int8)
    real = (rows.astype(np.float32) + 128) / np.float32(256)
    content = write_tflite(steps, (1, 6), ranges)
    network = QuantizedNetwork(content, write_tflite(steps, (1, 6)), rows, real)
    assert fit_rounding(network, untold) == content


@pytest.mark.slow
def test_weights_of_a_dynamic_range_model_are_rounded_too() -> None:
    network = _example(quantize_weights(ORIGINAL.read_bytes()))
    others = _example(network.content, others=True)
    changed = fit_rounding(network, untold)
    before, after = _layer_errors(others, network.content), _layer_errors(others, changed)
    assert all(after[operator] < before[operator] for operator in before), (before, after)


def test_a_network_without_int8_weights_is_refused(refusal: Callable[..., str]) -> None:
    message = refusal(fit_rounding, _example(ORIGINAL.read_bytes()), untold)
    assert "no int8 weights" in message
    message = refusal(round_original, COMPRESSED.read_bytes(), _example().rows, untold)
    assert "no float32 weights" in message


@pytest.mark.slow
def test_weights_of_the_original_are_rounded_for_a_computation_in_float() -> None:
    graph, network = Graph(ORIGINAL.read_bytes()), _example()
    seen: list[tuple[int, int]] = []
    rounded = round_original(
        network.original, network.original_rows, lambda done, of: seen.append((done, of))
    )
    assert [one.operator for one in rounded] == [
        one.index for one in graph.layers if one.name in _LAYERS
    ]
    for one in rounded:
        weights = graph.values(one.weights).astype(np.float32)
        assert (one.steps.shape, one.steps.dtype.name) == (weights.shape, "int8")
        assert np.abs(one.steps.astype(int)).max() <= 127
        flat = weights.reshape(len(weights), -1)
        assert np.allclose(one.scales, np.abs(flat).max(axis=1) / 127, rtol=1e-6)
        assert (np.rint(flat / one.scales[:, None]).reshape(weights.shape) != one.steps).any()
    assert (seen[0], seen[-1]) == ((0, 80), (80, 80))


def test_the_original_may_have_its_operators_in_another_order() -> None:
    """Of two branches, that which the compressed model computes last is the first of its own."""
    rng = np.random.default_rng(0)

    def layer(name: str, source: str, size: int) -> ChainStep:
        weights = rng.normal(size=(8, size, size, 8)).astype(np.float32)
        bias = rng.normal(size=8).astype(np.float32)
        return ChainStep(name, "CONV_2D", (source,), (1, 4, 4, 8), weights, bias)

    first, last = (
        layer("first", "image", 1),
        [layer("deep", "first", 3), layer("deeper", "deep", 3)],
    )
    short = layer("short", "first", 1)
    end = ChainStep("sum", "ADD", ("short", "deeper"), (1, 4, 4, 8))
    ranges = {"image": (0.0, 255 / 256), "first": (-8.0, 8.0), "short": (-40.0, 40.0)}
    ranges |= {"deep": (-99.0, 99.0), "deeper": (-999.0, 999.0), "sum": (-999.0, 999.0)}
    content = write_tflite([first, *last, short, end], (1, 4, 4, 8), ranges)
    rows = rng.integers(-128, 128, (20, 4, 4, 8)).astype(np.int8)
    real = (rows.astype(np.float32) + 128) / np.float32(256)
    found = [
        fit_rounding(
            QuantizedNetwork(content, write_tflite(steps, (1, 4, 4, 8)), rows, real), untold
        )
        for steps in ([first, *last, short, end], [first, short, *last, end])
    ]
    assert found[0] == found[1] != content


def test_layers_with_activations_in_16_bits_have_biases_in_int64() -> None:
    rng = np.random.default_rng(0)
    weights, bias = (
        rng.normal(size=(4, 6)).astype(np.float32),
        np.array([3, -7, 0.5, 20], np.float32),
    )
    scale = float(np.abs(weights).max() / 127)
    writer = GraphWriter()
    image = writer.tensor("image", (1, 6), "INT16", (1 / 2**15, 0))
    steps = writer.constant("weights", np.round(weights / scale).astype(np.int8), (scale, 0))
    wrong = writer.constant("bias", np.zeros(4, np.int64), (scale / 2**15, 0))
    made = writer.tensor("made", (1, 4), "INT16", (1 / 2**10, 0))
    options = schema.FullyConnectedOptionsT()
    writer.operator("FULLY_CONNECTED", [image, steps, wrong], [made], options, 7)
    content = writer.content([image], [made])
    chain = [ChainStep("made", "FULLY_CONNECTED", ("image",), (1, 4), weights, bias)]
    rows = rng.integers(-(2**15), 2**15, (30, 6)).astype(np.int16)
    real = rows.astype(np.float32) / np.float32(2**15)
    mended = fit_rounding(
        QuantizedNetwork(content, write_tflite(chain, (1, 6)), rows, real), untold
    )
    made_of = np.concatenate([run(mended, [row[None]])[0] for row in rows]).astype(np.float64)
    assert np.abs(made_of / 2**10 - (real @ weights.T + bias)).max() < 0.05


def test_weights_that_two_layers_read_are_refused() -> None:
    """One rounding is not the best for both."""
    rng = np.random.default_rng(0)
    weights, bias = rng.normal(size=(6, 6)).astype(np.float32), np.zeros(6, np.float32)
    chain = [
        ChainStep(name, "FULLY_CONNECTED", (source,), (1, 6), weights, bias)
        for name, source in (("first", "image"), ("second", "first"))
    ]

    def share(model: Any) -> None:
        first, second = model.subgraphs[0].operators
        second.inputs = [second.inputs[0], first.inputs[1], second.inputs[2]]

    ranges = {"image": (0.0, 255 / 256), "first": (-8.0, 8.0), "second": (-50.0, 50.0)}
    content, original = (
        edited(write_tflite(chain, (1, 6), known), share) for known in (ranges, None)
    )
    rows = rng.integers(-128, 128, (30, 6)).astype(np.int8)
    real = (rows.astype(np.float32) + 128) / np.float32(256)
    network = QuantizedNetwork(content, original, rows, real)
    with pytest.raises(UserError, match="the values of tensor 'first/weights' belong to something"):
        fit_rounding(network, untold)
