"""Models rewritten by litert-quantizer: other operators in float, or other activations.

Each function makes a new file of the original and says the recipe by which it was made. The
original has to be a float `.tflite`.

A file that the library wrote may be broken without a sign of it, so `candidate_fault` looks at it
before it counts. litert-quantizer 0.11 can write files in which an int8 tensor holds the bytes of a
float32 one. ai-edge-litert runs them, with other labels, and says nothing; tflite-runtime refuses
them. Other files load with some kernels and not with others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from edgeflare.campaign.pair_panel import host_arm
from edgeflare.core.answer import Answer
from edgeflare.core.seeds import Seeds
from edgeflare.diagnose.layer_matching import CONVERSIONS
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_compressed
from edgeflare.models.model_file import read_model_file
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.pages.facts import count_of
from edgeflare.repair.fitting.float_model import FloatModel, Recipe
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.weight_rounding import RoundedLayer
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels

_EACH = ".*"
_ALL = "*"
_MIN_MAX = "min_max_uniform_quantize"
"""Algorithm of the library that takes ranges as they are given."""

_LIBRARY_NAMES = {"TRANSPOSE_CONV": "CONV_2D_TRANSPOSE"}
_WITH_WEIGHTS = frozenset(
    {"CONV_2D", "DEPTHWISE_CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED", "TRANSPOSE_CONV"}
)
_PROBABILITIES = frozenset({"LOGISTIC", "SOFTMAX"})
"""Operators whose int8 output has a fixed step of 1/256, in which the precision of what is before
them would be lost."""

_WEIGHTS = {"num_bits": 8, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
_ACTIVATIONS = {"num_bits": 8, "symmetric": False, "granularity": "TENSORWISE", "dtype": "INT"}
_ACTIVATIONS_OF_16_BITS = {**_ACTIVATIONS, "num_bits": 16, "symmetric": True}


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
        network: network whose original is rewritten.
        rounded: the layers whose weights are not to be rounded to the nearest, by GPTQ with the
            inputs to fit with: `round_original(network.original, network.original_rows, …)`.

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
        network: network whose original is rewritten.
        operators: positions in the graph of the compressed model.
        rounded: the layers whose weights are not to be rounded to the nearest, see `weights_only`;
            those of other operators are passed over.

    """
    chosen = _chosen(network, operators)
    model = FloatModel(network)
    model.keep_ranges()
    for layer in network.layers:
        if layer.operator not in chosen:
            model.keep_values(layer)
    for rounded_layer in rounded:
        if rounded_layer.operator in chosen.values():
            model.set_rounded(rounded_layer)
    original = network.original_graph
    rules = [_integer(_EACH, _ALL, _activations(network.graph))]
    for operator in chosen.values():
        name, scope = original.operators[operator].name, model.scope(operator)
        rules.append(_unchanged(scope, _ALL))
        if name in _WITH_WEIGHTS:
            rules.append(_stored_int8(scope, _LIBRARY_NAMES.get(name, name)))
    readers = {
        operator.index
        for operator in original.layers
        if not set(original.inputs).isdisjoint(operator.inputs)
    }
    if readers.issubset(chosen.values()):
        rules.append(_unchanged(_EACH, "INPUT"))
    if any(original.made_by.get(tensor) in chosen.values() for tensor in original.outputs):
        rules.append(_unchanged(_EACH, "OUTPUT"))
    return _rewritten(model, tuple(rules))


def compressed_as(compressed: bytes, network: QuantizedNetwork) -> Rewritten:
    """Compress a float network as another one was: in 8 bits whole, or its weights alone.

    The file has the other one's metadata. Activations have the range of their values on the inputs
    to fit with. Inputs and outputs are in float where those of the other network are.

    Args:
        compressed: the other compressed network's file.
        network: network whose original is compressed.

    Raises:
        UserError: the other one is compressed neither way.
        RewritingFailed: the library does not rewrite the network so.

    """
    like = Graph(compressed, "the compressed model")
    integers = computes_in_8_bits(like)
    model = FloatModel(network, compressed)
    if not integers:
        return _rewritten(model, (_stored_int8(_EACH, _ALL),))
    model.observe_ranges()
    rules = [_integer(_EACH, _ALL)]
    for name, ends in (("INPUT", like.inputs), ("OUTPUT", like.outputs)):
        if not all(like.tensors[tensor].holds_8_bits for tensor in ends):
            rules.append(_unchanged(_EACH, name))
    return _rewritten(model, tuple(rules))


def computes_in_8_bits(compressed: Graph) -> bool:
    """Whether a network is compressed in 8 bits whole; false where its weights alone are.

    Raises:
        UserError: it is compressed neither way.

    """
    computed = [compressed.tensors[at] for layer in compressed.layers for at in layer.outputs]
    quantized = [tensor for tensor in computed if tensor.scales]
    held = quantized or compressed.tensors
    alike = all if quantized else any
    if not alike(tensor.holds_8_bits for tensor in held):
        raise UserError(
            f"{compressed.source} is compressed neither in 8 bits whole nor in its weights alone,"
            " and a repaired original is compressed again in one of these ways: compress it so"
        )
    return bool(quantized)


def operators_in_float(content: bytes) -> int:
    """Return how many operators of a network compute floats; those that convert them do not."""
    graph = Graph(content)
    return sum(
        graph.tensors[made].dtype.startswith("float")
        for layer in graph.layers
        if layer.name not in CONVERSIONS
        for made in layer.outputs[:1]  # what writes a variable has none
    )


def _chosen(network: QuantizedNetwork, operators: Collection[int]) -> dict[int, int]:
    """Return named operators and softmaxes behind them, each with its counterpart's position."""
    graph = network.graph
    chosen = set(operators)
    for layer in graph.layers:
        behind = {graph.made_by.get(tensor) for tensor in graph.fed(layer)}
        if layer.name in _PROBABILITIES and behind & chosen:
            chosen.add(layer.index)
    known = {layer.operator: layer.original for layer in network.layers}
    for operator in sorted(chosen - known.keys()):
        raise UserError(
            f"operator {operator} of the compressed model, {graph.operators[operator].name}, has "
            "no counterpart in the original: name another one"
        )
    return {operator: known[operator] for operator in sorted(chosen)}


def _rewritten(model: FloatModel, recipe: Recipe) -> Rewritten:
    return Rewritten(model.quantized(recipe), recipe)


def _activations(graph: Graph) -> Mapping[str, Any]:
    """Return how the activations of a network are quantized: in 16 bits where any is."""
    computed = (graph.tensors[tensor] for layer in graph.layers for tensor in layer.outputs)
    wide = any(tensor.scales and tensor.dtype == "int16" for tensor in computed)
    return _ACTIVATIONS_OF_16_BITS if wide else _ACTIVATIONS


def _integer(
    regex: str, operation: str, activations: Mapping[str, Any] = _ACTIVATIONS
) -> dict[str, Any]:
    """Return the rule that computes on integers."""
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


_INPUTS = 32

_MOST_DIFFERING = 1 / 8
"""Share of the inputs that two kernel sets may answer differently, since their int8 kernels round
differently: six whole files of two networks did so on at most 1 in 250 of 500 to 2,000 images."""


def candidate_fault(pair: Pair, seeds: Seeds) -> str | None:
    """Return why a candidate does not count, in words; None where nothing is wrong with it.

    The bytes of its constants have to fit their types. On XNNPACK, the built-in kernels and the
    reference kernels of the host it has to load, to answer the first 32 seeds, and to decide as on
    the other ones, but for ties and an eighth of the seeds.

    Args:
        pair: pair whose compressed model is the candidate.
        seeds: inputs, as they are loaded for the pair.

    """
    try:
        graph = Graph(read_model_file(pair.compressed), pair.compressed.name)
    except UserError as unreadable:
        return str(unreadable)
    fault = _misfit(graph)
    first: Sequence[Answer] = ()
    for kernels in TFLITE_KERNEL_SETS:
        name = f"the {KERNEL_SETS[kernels].title}"
        if fault is not None:
            break
        try:
            answers = _answers(pair, seeds, kernels)
        except UserError as refused:
            return f"{name}: {refused}"
        first = first or answers
        fault = _failure(answers, name) or _disagreement(first, answers, name)
    return fault


def _misfit(graph: Graph) -> str | None:
    for tensor, raw in zip(graph.tensors, graph.model.subgraphs[0].tensors, strict=True):
        if not tensor.constant or not tensor.dtype or raw.sparsity is not None:
            continue
        held = len(graph.model.buffers[raw.buffer].data)
        if held != tensor.nbytes:
            return (
                f"tensor {tensor.index}, {tensor.name!r}, holds {held} bytes, but {tensor.dtype} "
                f"values of its shape take {tensor.nbytes}"
            )
    return None


def _answers(pair: Pair, seeds: Seeds, kernels: Kernels) -> tuple[Answer, ...]:
    name = str(pair.compressed)
    with closing(open_compressed(pair, kernels)) as model:
        inputs = ModelInputs(pair.interface, model.signature.inputs, name)
        arm = host_arm(pair, name, model, inputs, seeds)
        some = seeds.inputs[:_INPUTS]
        ids = seeds.seed_ids[: len(some)]
        batch = arm.submit(arm.given(some, ids)).result()
        return tuple(islice(arm.decoder.read(batch), len(some)))


def _failure(answers: Sequence[Answer], name: str) -> str | None:
    failures = [answer.failure for answer in answers if answer.failure is not None]
    if not failures:
        return None
    kinds = ", ".join(sorted(set(failures)))
    return f"{name}: no answer on {len(failures)} of {len(answers)} seeds ({kinds})"


def _disagreement(first: Sequence[Answer], answers: Sequence[Answer], name: str) -> str | None:
    pairs = list(zip(first, answers, strict=True))
    differing = sum(answer.differs_strictly(other) for answer, other in pairs)
    if differing <= _MOST_DIFFERING * len(pairs):
        return None
    return (
        f"{name}: other decisions than with the {KERNEL_SETS['xnnpack'].title} on {differing} of "
        f"{count_of(len(pairs), 'seed')}"
    )
