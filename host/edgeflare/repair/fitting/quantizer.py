"""Models rewritten by litert-quantizer: other operators in float, or other activations.

Each function makes a new file of the original and says the recipe by which it was made. The
original has to be a float `.tflite`. A file that the library wrote may be broken without a sign of
it: `candidate_check` looks at it before it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.float_model import FloatModel, Recipe
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.weight_rounding import RoundedLayer

_EACH = ".*"
_ALL = "*"
_MIN_MAX = "min_max_uniform_quantize"
"""Of the library's algorithms the one that takes ranges as they are given."""

_LIBRARY_NAMES = {"TRANSPOSE_CONV": "CONV_2D_TRANSPOSE"}
_WITH_WEIGHTS = frozenset(
    {"CONV_2D", "DEPTHWISE_CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED", "TRANSPOSE_CONV"}
)
_PROBABILITIES = frozenset({"LOGISTIC", "SOFTMAX"})
"""Operators whose int8 output has a fixed step of 1/256, in which the precision of what is before
them would be lost."""

_WEIGHTS = {"num_bits": 8, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
_ACTIVATIONS = {"symmetric": False, "granularity": "TENSORWISE", "dtype": "INT"}


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A rewritten model.

    Attributes:
        content: the `.tflite` file.
        recipe: as litert-quantizer takes it; the ranges that it was given with it are those of the
            file.

    """

    content: bytes
    recipe: Recipe


def weights_only(network: QuantizedNetwork, rounded: Sequence[RoundedLayer] = ()) -> Rewritten:
    """Store all weights as int8, one scale for each channel, and compute everything in float.

    Args:
        network: whose original is rewritten.
        rounded: the layers whose weights are not to be rounded to the nearest, by GPTQ with the
            inputs to fit with: `round_original(network.original, network.original_rows, …)`.

    Raises:
        UserError: litert-quantizer is not installed.
        RewritingFailed: it makes no file.

    """
    model = FloatModel(network)
    for layer in rounded:
        model.set_rounded(layer)
    return _rewritten(model, (_stored_int8(_EACH, _ALL),))


def float_operators(
    network: QuantizedNetwork, operators: Collection[int], rounded: Sequence[RoundedLayer] = ()
) -> Rewritten:
    """Compute some operators in float, with the original's weights as int8, and the rest as it is.

    What is not named keeps the ranges, the weights and the biases that the compressed model has. A
    softmax or logistic function behind a named operator is computed in float too. The model's
    inputs and outputs stay int8 but where a float operator makes an output, or nothing else than
    float operators reads the inputs: then all outputs, or all inputs, are float.

    Args:
        network: whose original is rewritten.
        operators: positions in the graph of the compressed model.
        rounded: the layers whose weights are not to be rounded to the nearest, see `weights_only`;
            those of other operators are passed over.

    Raises:
        UserError: litert-quantizer is not installed, or an operator has no counterpart in the
            original.
        RewritingFailed: the library makes no file.

    """
    chosen = _chosen(network, operators)
    model = FloatModel(network)
    model.keep_ranges()
    for layer in network.layers:
        if layer.operator not in chosen:
            model.keep_values(layer)
    for one in rounded:
        if one.operator in chosen.values():
            model.set_rounded(one)
    original = network.original_graph
    rules = [_integer(_EACH, _ALL, 8)]
    for operator in chosen.values():
        name, scope = original.operators[operator].name, model.scope(operator)
        rules.append(_unchanged(scope, _ALL))
        if name in _WITH_WEIGHTS:
            rules.append(_stored_int8(scope, _LIBRARY_NAMES.get(name, name)))
    readers = {
        one.index for one in original.layers if not set(original.inputs).isdisjoint(one.inputs)
    }
    if readers.issubset(chosen.values()):
        rules.append(_unchanged(_EACH, "INPUT"))
    if _makes_an_output(original, chosen.values()):
        rules.append(_unchanged(_EACH, "OUTPUT"))
    return _rewritten(model, tuple(rules))


def int16_operators(network: QuantizedNetwork, operators: Collection[int]) -> Rewritten:
    """Compute some operators on int16 activations, in ranges as they are, and the rest as it is.

    All weights and biases are those of the compressed model. A softmax or logistic function behind
    a named operator has int16 activations too. Where such an operator makes an output of the model,
    all outputs are int16. tflite-runtime 2.14 refuses files with int8 and int16 activations.

    Args:
        network: whose original is rewritten.
        operators: positions in the graph of the compressed model.

    Raises:
        UserError: litert-quantizer is not installed, or an operator has no counterpart in the
            original.
        RewritingFailed: the library makes no file.

    """
    chosen = _chosen(network, operators)
    model = FloatModel(network)
    model.keep_ranges()
    for layer in network.layers:
        model.keep_values(layer)
    rules = [_integer(_EACH, _ALL, 8)]
    rules += [_integer(model.scope(operator), _ALL, 16) for operator in chosen.values()]
    if _makes_an_output(network.original_graph, chosen.values()):
        rules.append(_integer(_EACH, "OUTPUT", 16))
    return _rewritten(model, tuple(rules))


def _chosen(network: QuantizedNetwork, operators: Collection[int]) -> dict[int, int]:
    """Return named operators and softmaxes behind them, each with its counterpart's position."""
    graph = network.graph
    chosen = set(operators)
    for one in graph.layers:
        behind = {graph.made_by.get(tensor) for tensor in graph.fed(one)}
        if one.name in _PROBABILITIES and behind & chosen:
            chosen.add(one.index)
    known = {layer.operator: layer.original for layer in network.layers}
    for operator in sorted(chosen - known.keys()):
        raise UserError(
            f"operator {operator} of the compressed model, {graph.operators[operator].name}, has "
            "no counterpart in the original: name another one"
        )
    return {operator: known[operator] for operator in sorted(chosen)}


def _makes_an_output(graph: Graph, operators: Collection[int]) -> bool:
    return any(graph.made_by.get(tensor) in operators for tensor in graph.outputs)


def _rewritten(model: FloatModel, recipe: Recipe) -> Rewritten:
    return Rewritten(model.quantized(recipe), recipe)


def _integer(regex: str, operation: str, bits: int) -> dict[str, Any]:
    """Return the rule that computes on integers; int16 activations are symmetric."""
    activations = {**_ACTIVATIONS, "num_bits": bits, "symmetric": bits == 16}
    return _rule(
        regex,
        operation,
        compute="INTEGER",
        activation_tensor_config=activations,
        weight_tensor_config=_WEIGHTS,
    )


def _stored_int8(regex: str, operation: str) -> dict[str, Any]:
    return _rule(
        regex, operation, compute="FLOAT", weight_tensor_config=_WEIGHTS, explicit_dequantize=True
    )


def _rule(regex: str, operation: str, compute: str, **config: Any) -> dict[str, Any]:
    return {
        "regex": regex,
        "operation": operation,
        "algorithm_key": _MIN_MAX,
        "op_config": {"compute_precision": compute, "explicit_dequantize": False, **config},
    }


def _unchanged(regex: str, operation: str) -> dict[str, Any]:
    return {
        "regex": regex,
        "operation": operation,
        "algorithm_key": "no_quantize",
        "op_config": {},
    }
