"""Models with a planted fault, and small graphs: real files for real runtimes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.diagnose.output_stage import ModelReader, OutputStage
from edgeflare.models.evaluator import Signature
from edgeflare.models.model_probe import Values
from edgeflare.models.pair_interface import PairInterface
from edgeflare.models.tflite_file import read_model
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import written
from edgeflare.tasks.classification import ClassDecoder, detect_outputs
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter
from interpreter_answers import RESOLVERS

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
COMPRESSED = EXAMPLE / "compressed.tflite"
ORIGINAL = EXAMPLE / "original.tflite"

Change = Callable[[NDArray[Any]], NDArray[Any]]


def edited(content: bytes, change: Callable[[Any], None]) -> bytes:
    """A model, changed as its object."""
    model = read_model(content)
    change(model)
    return written(model)


def with_constant(content: bytes, name: str, change: Change) -> bytes:
    """A model in which a constant is changed; as it was where it has no tensor of that name."""
    graph = Graph(content)
    found = [tensor for tensor in graph.tensors if tensor.name == name and tensor.constant]
    if not found:
        return content

    def apply(model: Any) -> None:
        tensor = model.subgraphs[0].tensors[found[0].index]
        values = change(np.array(graph.values(found[0].index)))
        raw = np.frombuffer(values.astype(found[0].dtype).tobytes(), np.uint8)
        model.buffers[tensor.buffer].data = raw

    return edited(content, apply)


def constant_of(content: bytes, operator: int, position: int = 1) -> str:
    """The name of the constant that an operator reads: 1 its weights, 2 its bias."""
    graph = Graph(content)
    return graph.tensors[graph.operators[operator].inputs[position]].name


def weighted(content: bytes) -> list[int]:
    """The operators that have weights."""
    names = ("CONV_2D", "FULLY_CONNECTED")
    return [one.index for one in Graph(content).layers if one.name in names]


class InterpreterProbe:
    """A probe on the runtime itself, in this process: no worker to wait for."""

    def __init__(
        self, content: bytes, kernels: Kernels = "xnnpack", *, capture: bool = False
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the runtime's, about memory
            self._interpreter = Interpreter(
                model_content=content,
                experimental_op_resolver_type=RESOLVERS[kernels],
                experimental_preserve_all_tensors=capture,
                num_threads=1,
            )
        self._interpreter.allocate_tensors()
        graph = Graph(content)
        layers = [tensor for one in graph.layers for tensor in one.outputs]
        self.given = tuple(one["index"] for one in self._interpreter.get_input_details())
        outputs = tuple(one["index"] for one in self._interpreter.get_output_details())
        self.made = tuple(layers) if capture else outputs

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        for tensor, values in zip(self.given, inputs, strict=True):
            self._interpreter.set_tensor(tensor, values)
        self._interpreter.invoke()
        return tuple(self._interpreter.get_tensor(tensor) for tensor in self.made)

    def close(self) -> None:
        pass


def run(
    content: bytes, inputs: Sequence[Values], kernels: Kernels = "xnnpack"
) -> tuple[Values, ...]:
    """A model's outputs."""
    return InterpreterProbe(content, kernels).run(inputs)


def whole(graph: Graph, values: Values, kernels: Kernels, content: bytes) -> dict[int, Values]:
    """All tensors of a model, captured."""
    probe = InterpreterProbe(content, kernels, capture=True)
    found = dict(zip(probe.made, probe.run([values]), strict=True))
    return {graph.inputs[0]: values, **found}


def example_input(seed: int = 0) -> Values:
    """An input of the example's compressed model."""
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        image = arrays["images"][seed].astype(np.int64)
    graph = Graph(COMPRESSED.read_bytes())
    tensor = graph.tensors[graph.inputs[0]]
    raw = np.round(image / 255.0 / tensor.scales[0]) + tensor.zero_points[0]
    return np.asarray(np.clip(raw, -128, 127).astype(np.int8).reshape(tensor.shape))


def original_input(seed: int = 0) -> Values:
    """The same for the original."""
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        image = arrays["images"][seed]
    return np.asarray((image / np.float32(255)).astype(np.float32).reshape(1, 28, 28, 1))


def with_rectifiers_apart(content: bytes) -> bytes:
    """A model whose fused rectifiers are operators of their own."""

    def change(model: Any) -> None:
        writer, operators = GraphWriter(model), []
        for one in writer.graph.operators:
            operators.append(one)
            options, kinds = one.builtinOptions, schema.ActivationFunctionType
            if getattr(options, "fusedActivationFunction", kinds.NONE) == kinds.RELU:
                options.fusedActivationFunction = kinds.NONE
                (end,) = one.outputs
                before = copy.copy(writer.graph.tensors[end])
                before.name = b"before " + before.name
                writer.graph.tensors.append(before)
                one.outputs = [len(writer.graph.tensors) - 1]
                operators.append(writer.detached("RELU", [*one.outputs], [end]))
        writer.graph.operators = operators

    return edited(content, change)


def residual_model() -> bytes:
    """A float graph with two connections that skip: a = -x, b = |a|, c = a + b, y = c + x."""
    graph = GraphWriter()
    x, a, b, c, y = (graph.tensor(name, (1, 4), "FLOAT32") for name in "xabcy")
    graph.operator("NEG", [x], [a])
    graph.operator("ABS", [a], [b])
    graph.operator("ADD", [a, b], [c], schema.AddOptionsT())
    graph.operator("ADD", [c, x], [y], schema.AddOptionsT())
    return graph.content([x], [y])


def signature_of(content: bytes) -> Signature:
    """What a model takes and gives."""
    graph = Graph(content)

    def described(tensors: Sequence[int]) -> tuple[Tensor, ...]:
        known = [graph.tensors[tensor] for tensor in tensors]
        return tuple(
            Tensor(one.name, one.shape, one.dtype, (*one.scales, 0.0)[0], (*one.zero_points, 0)[0])
            for one in known
        )

    return Signature(described(graph.inputs), described(graph.outputs))


def class_reader(content: bytes) -> ModelReader:
    """Reads classes from the outputs of a model."""
    signature = signature_of(content)
    operators = [one.name for one in Graph(content).operators]
    decoder = ClassDecoder((signature.output,), 0, detect_outputs(signature.output, operators))
    return ModelReader(OutputStage(PairInterface(), decoder), signature)
