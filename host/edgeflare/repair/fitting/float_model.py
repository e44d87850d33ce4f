"""The original's file as litert-quantizer rewrites it, with ranges and weights of ours.

The library takes the range of a tensor, least and largest value, by the tensor's name. That holds
for weights too: handed 127 times their scales, it keeps weights that lie on that grid as they are,
in every operator that has weights. So whatever was fitted before is kept: ranges of activations,
and weights that were not rounded to the nearest. (Its `dequantized_weight_recovery` has to guess
the scales from differences of weights, and refuses channels in which no two are one step apart.)
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import ArrayLike, NDArray

from edgeflare.errors import UserError
from edgeflare.models.associated_files import with_associated_files
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from edgeflare.outside_text import json_value
from edgeflare.python_callable import reason
from edgeflare.repair.fitting.gptq import MOST_STEPS
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import each_captured
from edgeflare.repair.fitting.weight_rounding import RoundedLayer
from edgeflare.repair.shift_details import NOTE

Recipe = tuple[Mapping[str, Any], ...]
"""What litert-quantizer takes as JSON: one object for each rule; of those that fit, the last one
holds."""

_CHANNELS = {"DEPTHWISE_CONV_2D": 3}
"""The dimension of the weights along which the library has a scale each, where it is not 0."""


class RewritingFailed(UserError):  # noqa: N818 - a fact about a candidate, which is set aside
    """The library does not rewrite this model so; the message is one line."""


class FloatModel:
    """A copy of the original that is to be rewritten.

    It has the metadata of the compressed model, and the files that this carries. Its inputs and
    outputs have the order and the names of the compressed model's, and its signature, where all of
    these have a counterpart in the original.
    """

    def __init__(self, network: QuantizedNetwork, like: bytes | None = None) -> None:
        """Read the original.

        Args:
            network: network whose original is copied.
            like: the compressed model's file; None for that of the network.

        Raises:
            RewritingFailed: the original stores weights in fewer bits than float32.

        """
        self._library = _library()
        original = network.original_graph
        for tensor in original.tensors:
            if tensor.constant and (tensor.scales or tensor.dtype == "float16"):
                raise RewritingFailed(
                    f"{original.source} stores {tensor.name!r} as {tensor.dtype}, but"
                    " litert-quantizer rewrites float32 models alone: name the model before that"
                    " compression"
                )
        self._network = network
        self._like = network.content if like is None else like
        self._model = self._library.read_model(bytearray(network.original))
        # The library reads a field that converters before 2020 did not write. Without it each
        # operator of such a file is rewritten as an ADD, its weights as activations.
        for code in self._model.operatorCodes:
            code.builtinCode = max(code.builtinCode, code.deprecatedBuiltinCode)
        self._main = self._model.subgraphs[0]
        self._ranges: dict[str, dict[str, NDArray[np.float64]]] = {}
        _take_metadata(self._model, Graph(self._like).model)
        _take_interface(self._model, network)
        _name_each_tensor(self._main)

    def scope(self, operator: int) -> str:
        """Return the regular expression by which a recipe names one operator of the original."""
        outputs = self._main.operators[operator].outputs
        return "^" + "".join(re.escape(f"{self._name(tensor)};") for tensor in outputs) + "$"

    def keep_ranges(self) -> None:
        """Give each activation the range that its counterpart in the compressed model has.

        Tensors without a counterpart get the range of the original on the inputs to fit with.
        """
        graph = self._network.graph
        for layer in self._network.layers:
            pairs = zip(layer.inputs, layer.original_inputs, strict=True)
            for tensor, original in (*pairs, (layer.output, layer.original_output)):
                known = graph.tensors[tensor]
                if known.scales and known.dtype in ("int8", "uint8", "int16"):
                    limits = np.iinfo(known.dtype)
                    # Those of 16 bits are symmetric, and the library takes the greater end.
                    least = -limits.max if known.dtype == "int16" else limits.min
                    low, high = known.real(np.asarray([least, limits.max])).ravel()
                    self._set_range(original, low, high)
        self.observe_ranges()

    def observe_ranges(self) -> None:
        """Give activations without a range that of the original on the inputs to fit with."""
        wanted = [at for at in self._activations() if self._name(at) not in self._ranges]
        if not wanted:
            return
        ends = dict.fromkeys(wanted, (np.inf, -np.inf))
        network = self._network
        for row in each_captured(network.original, network.original_rows, wanted):
            for tensor, values in row.items():
                low, high = ends[tensor]
                ends[tensor] = min(low, float(values.min())), max(high, float(values.max()))
        for tensor, (low, high) in ends.items():
            self._set_range(tensor, low, high)

    def keep_values(self, layer: MatchedLayer) -> None:
        """Give a layer the weights and the bias that it has in the compressed model.

        A layer whose weights are not int8 with the zero point 0 stays as the original has it.

        Raises:
            RewritingFailed: the original's layer has no weights in the same place.

        """
        graph = self._network.graph
        if layer.weights is None:
            return
        weights = graph.tensors[layer.weights]
        if not weights.holds_int8_steps:
            return
        tensor = self._constant(layer, layer.weights)
        if tensor is None:
            raise RewritingFailed(
                f"operator {layer.original} of the original, {layer.name}, reads no float32 "
                "constant where that of the compressed model has its weights"
            )
        raw = np.asarray(graph.values(layer.weights), np.int8)
        self._set_weights(layer.original, tensor, raw, weights.scales)
        bias = None if layer.bias is None else self._constant(layer, layer.bias)
        if layer.bias is not None and bias is not None:
            self._set_values(bias, graph.tensors[layer.bias].real(graph.values(layer.bias)))

    def set_rounded(self, layer: RoundedLayer) -> None:
        """Give a layer weights that are rounded already, and the bias that goes with them."""
        self._set_weights(layer.operator, layer.weights, layer.steps, layer.scales)
        if layer.bias is not None and layer.float_bias is not None:
            self._set_values(layer.bias, layer.float_bias)

    def quantized(self, recipe: Recipe) -> bytes:
        """Return the file that the library makes, with all its buffers inside of the flatbuffer."""
        manager = self._library.RecipeManager()
        try:
            manager.load_quantization_recipe(json_value(json.dumps(recipe)))
            parameters = self._library.ParamsGenerator(
                self._model
            ).generate_quantization_parameters(manager, self._ranges, enable_progress_bar=False)
            content = self._library.ModelModifier(self._model).modify_model(
                parameters, enable_progress_bar=False
            )
        except (ValueError, RuntimeError, KeyError, IndexError, TypeError) as error:
            raise RewritingFailed(
                f"litert-quantizer does not rewrite the model: {reason(error)}"
            ) from error
        made = read_model(bytes(content))
        main = made.subgraphs[0]
        # Outputs are named as they were, where the library put an operator behind them, too.
        for old, new in zip(self._main.outputs, main.outputs, strict=True):
            name = self._main.tensors[old].name
            for tensor in main.tensors:
                tensor.name = name + b"/inner" if tensor.name == name else tensor.name
            main.tensors[new].name = name
        return with_associated_files(written(made), self._like)

    def _name(self, tensor: int) -> str:
        return str(self._main.tensors[tensor].name.decode(errors="replace"))

    def _activations(self) -> Sequence[int]:
        """Return the float tensors that depend on the input."""
        graph = self._network.original_graph
        found = dict.fromkeys(graph.inputs)
        for layer in graph.layers:
            found.update(dict.fromkeys((*graph.fed(layer), *layer.outputs)))
        return [tensor for tensor in found if graph.tensors[tensor].dtype == "float32"]

    def _constant(self, layer: MatchedLayer, tensor: int) -> int | None:
        """Return the original's float32 constant in the place of one of the compressed model."""
        given = self._network.graph.operators[layer.operator].inputs
        there = self._network.original_graph.operators[layer.original].inputs
        place = given.index(tensor) if tensor in given else len(there)
        found = self._network.original_graph.tensors[there[place]] if place < len(there) else None
        fits = found is not None and found.constant and found.dtype == "float32"
        return found.index if found is not None and fits else None

    def _set_weights(
        self, operator: int, tensor: int, raw: NDArray[np.int8], scales: ArrayLike
    ) -> None:
        """Give an operator of the original weights that are kept to the step.

        Args:
            operator: position of the layer's operator.
            tensor: the constant with its weights.
            raw: -127 to 127, in the constant's shape but for dimensions of 1.
            scales: one, or one for each channel.

        """
        original = self._network.original_graph
        shape = original.tensors[tensor].shape
        axis = _CHANNELS.get(original.operators[operator].name, 0)
        along = [1] * len(shape)
        along[axis] = shape[axis]
        steps = np.broadcast_to(np.asarray(scales, np.float64), shape[axis]).reshape(along)
        self._set_values(tensor, raw.reshape(shape) * steps)
        self._set_range(tensor, -MOST_STEPS * steps, MOST_STEPS * steps)

    def _set_range(self, tensor: int, low: Any, high: Any) -> None:
        self._ranges[self._name(tensor)] = {
            "min": np.asarray(low, np.float64),
            "max": np.asarray(high, np.float64),
        }

    def _set_values(self, tensor: int, values: NDArray[np.floating[Any]]) -> None:
        """Give a constant values of its own; others that shared its buffer keep theirs."""
        shape = self._network.original_graph.tensors[tensor].shape
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(values.reshape(shape).astype(np.float32).tobytes(), np.uint8)
        old = self._main.tensors[tensor].buffer
        self._main.tensors[tensor].buffer = len(self._model.buffers)
        self._model.buffers.append(buffer)
        if not any(other.buffer == old for other in self._main.tensors):
            self._model.buffers[old].data = None


def _library() -> SimpleNamespace:
    """Import the parts of litert-quantizer that are called.

    `Quantizer.quantize` calls the same ones; beforehand it loads the model in this process, and a
    model that makes a runtime crash would end it.
    """
    try:
        from litert_quantizer import (  # noqa: PLC0415 - an extra, and slow to import
            model_modifier,
            params_generator,
            recipe_manager,
        )
        from litert_quantizer.utils import tfl_flatbuffer_utils  # noqa: PLC0415
    except ImportError:
        raise UserError(
            "litert-quantizer is not installed, which rewrites models: "
            "pip install 'edgeflare[repair]'"
        ) from None
    return SimpleNamespace(
        ModelModifier=model_modifier.ModelModifier,
        ParamsGenerator=params_generator.ParamsGenerator,
        RecipeManager=recipe_manager.RecipeManager,
        read_model=tfl_flatbuffer_utils.read_model,
    )


def _take_interface(model: Any, network: QuantizedNetwork) -> None:
    """Give a copy of the original the inputs, outputs and signature of the compressed model."""
    graph, original = network.graph, network.original_graph
    counterpart = _counterparts(network)
    inputs = [counterpart.get(tensor, -1) for tensor in graph.inputs]
    outputs = [counterpart.get(tensor, -1) for tensor in graph.outputs]
    if sorted(inputs) != sorted(original.inputs) or sorted(outputs) != sorted(original.outputs):
        return
    signatures = _main_signatures(graph.model, counterpart)
    if signatures is None:
        return
    main = model.subgraphs[0]
    main.inputs, main.outputs = inputs, outputs
    for tensor in (*graph.inputs, *graph.outputs):
        main.tensors[counterpart[tensor]].name = graph.tensors[tensor].name.encode()
    others = [known for known in model.signatureDefs or [] if known.subgraphIndex]
    model.signatureDefs = [*signatures, *others]


def _counterparts(network: QuantizedNetwork) -> dict[int, int]:
    """Return the original's tensor of each of the compressed model's that has one.

    Ends in float stand for what is quantized from them, and what they are dequantized from.
    """
    found: dict[int, int] = {}
    for layer in network.layers:
        found.update(zip(layer.inputs, layer.original_inputs, strict=True))
        found[layer.output] = layer.original_output
    graph = network.graph
    for op in graph.operators:
        if op.name == "QUANTIZE" and op.inputs[0] in graph.inputs and op.outputs[0] in found:
            found.setdefault(op.inputs[0], found[op.outputs[0]])
        elif op.name == "DEQUANTIZE" and op.outputs[0] in graph.outputs and op.inputs[0] in found:
            found.setdefault(op.outputs[0], found[op.inputs[0]])
    return found


def _main_signatures(model: Any, counterpart: Mapping[int, int]) -> list[Any] | None:
    """Return the signatures of a model's main graph, with counterparts in place of its tensors.

    None where one names a tensor that has none.
    """
    found = copy.deepcopy([known for known in model.signatureDefs or [] if not known.subgraphIndex])
    for entry in (entry for known in found for entry in (*known.inputs, *known.outputs)):
        if (there := counterpart.get(int(entry.tensorIndex))) is None:
            return None
        entry.tensorIndex = there
    return found


def _take_metadata(model: Any, source: Any) -> None:
    """Give a model the metadata of another one in place of its own.

    It has no shifts, so that it does not say that it was repaired by some.
    """
    model.metadata = []
    for known in source.metadata or []:
        if known.name == NOTE.encode():
            continue
        entry = copy.copy(known)
        entry.buffer = len(model.buffers)
        model.buffers.append(copy.copy(source.buffers[known.buffer]))
        model.metadata.append(entry)


def _name_each_tensor(main: Any) -> None:
    """Give tensors without a name, or with that of another one, a name of their own."""
    ends = [*main.inputs, *main.outputs]
    taken: set[bytes] = set()
    for index in dict.fromkeys((*ends, *range(len(main.tensors)))):
        tensor = main.tensors[index]
        if not tensor.name or tensor.name in taken:
            tensor.name = (tensor.name or b"tensor") + f"#{index}".encode()
        taken.add(tensor.name)
