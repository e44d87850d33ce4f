"""The inputs and outputs of a model as the interpreter tells of them, for it and other runtimes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypedDict

from edgeflare_agent.runtime.model_runtime import Invocation, ModelRejected, Step, TensorSpec
from edgeflare_agent.runtime.tflite.packages import interpreter_module, runtime_info

_MOST_BYTES = 1 << 32
"""Most bytes of a tensor."""


@dataclass(frozen=True)
class ModelTensors:
    """The inputs and outputs that a model is called with.

    Attributes:
        inputs: the runtime's details of each input, by the name that it is called by.
        outputs: likewise of each output.
        runner: the runtime's `SignatureRunner`, where the signature is not of the first graph.

    """

    inputs: list[tuple[str, TensorDetails]]
    outputs: list[tuple[str, TensorDetails]]
    runner: Any | None = None


class TensorDetails(TypedDict):
    """What the runtime tells of a tensor, as far as it is read here."""

    name: str
    index: int
    shape: Sequence[int]
    shape_signature: Sequence[int]
    dtype: type
    quantization: tuple[float, int]


class ExecutedNode(TypedDict):
    """The name of a node's operator, and the tensors that it reads and writes."""

    op_name: str
    inputs: Sequence[int]
    outputs: Sequence[int]


def model_tensors(interpreter: Any, invocation: Invocation | Step) -> ModelTensors:
    """Return the inputs and outputs of the graph or signature that an invocation names.

    Args:
        interpreter: the runtime's; its tensors need not be allocated.
        invocation: how the model is called: its signature, if any.

    Raises:
        ModelRejected: the model has no such signature.

    """
    key = invocation.signature
    if not key:
        given, made = interpreter.get_input_details(), interpreter.get_output_details()
        return ModelTensors(
            [(details["name"], details) for details in given],
            [(details["name"], details) for details in made],
        )
    known = interpreter.get_signature_list()
    if key not in known:
        there = (
            f"its signatures are {', '.join(sorted(known))}" if known else "it has no signatures"
        )
        raise ModelRejected(f"there is no signature {key!r}: {there}")
    runner = interpreter.get_signature_runner(key)
    first = interpreter._interpreter.GetSubgraphIndexFromSignature(key) == 0
    return ModelTensors(
        list(runner.get_input_details().items()),
        list(runner.get_output_details().items()),
        None if first else runner,
    )


def graph_nodes(interpreter: Any) -> list[ExecutedNode]:
    """Return the nodes of the first graph.

    The runtime's own list has the types of these too, and fails where numpy lacks one of them.
    """
    native = interpreter._interpreter
    return [
        {
            "op_name": native.NodeName(index),
            "inputs": native.NodeInputs(index),
            "outputs": native.NodeOutputs(index),
        }
        for index in range(native.NumNodes())
    ]


def has_inner_resources(interpreter: Any, nodes: Iterable[ExecutedNode]) -> bool:
    """Whether a graph beside the first, such as the body of a loop, has a resource.

    Of a runtime that tells of no other graph, each model that may run one is taken for such.

    Args:
        interpreter: the runtime's.
        nodes: nodes of the first graph.

    """
    native = interpreter._interpreter
    if not hasattr(native, "NumSubgraphs"):
        return not _CALLERS.isdisjoint(node["op_name"] for node in nodes)
    return any(
        _is_resource(native, tensor, graph)
        for graph in range(1, native.NumSubgraphs())
        for tensor in range(native.NumTensors(graph))
    )


_CALLERS = frozenset({"IF", "WHILE", "STABLEHLO_WHILE"})
"""Operators that run another graph at each inference."""


def _is_resource(native: Any, tensor: int, graph: int) -> bool:
    try:
        dtype = native.TensorType(tensor, graph)
    except ValueError:  # of a type that numpy lacks
        return False
    return bool(dtype is not None and dtype.__name__ in ("object_", "void"))


def resize_inputs(
    interpreter: Any, tensors: ModelTensors, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Give dynamic dimensions of inputs a size, before tensors are allocated.

    The inputs of a signature's own graph take the shape of what they are called with.

    Raises:
        ModelRejected: there is no such input, or its other dimensions differ.

    """
    known = dict(tensors.inputs)
    for name, shape in shapes.items():
        if name not in known:
            raise ModelRejected(f"there is no input {name!r}: its inputs are {', '.join(known)}")
        declared = tuple(int(size) for size in known[name]["shape_signature"])
        pairs = zip(declared, shape, strict=False)
        if len(declared) != len(shape) or any(size not in (-1, asked) for size, asked in pairs):
            raise ModelRejected(
                f"input {name!r} has shape {declared}, which {tuple(shape)} does not fit: "
                "only dimensions of -1 can be given a size"
            )
        if tensors.runner is None:
            interpreter.resize_tensor_input(known[name]["index"], shape)


def run_on_zeros(
    interpreter: Any, tensors: ModelTensors, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Run the model once, after which the runtime knows the shapes of all outputs.

    Raises:
        ModelRejected: an input holds no numbers.
        RuntimeError, ValueError: a kernel refuses.

    """
    import numpy as np  # noqa: PLC0415 - the parent process needs none

    given = {}
    for name, details in tensors.inputs:
        spec = tensor_spec(name, details)
        given[name] = np.zeros(shapes.get(name, spec.shape), spec.dtype)
    if tensors.runner is not None:
        tensors.runner(**given)
        return
    for name, details in tensors.inputs:
        interpreter.set_tensor(details["index"], given[name])
    interpreter.invoke()


def tensor_spec(name: str, details: TensorDetails) -> TensorSpec:
    """Return the description of a tensor.

    Raises:
        ModelRejected: it holds no numbers: strings, or a resource or variant; or it has a shape
            that no tensor has, as where a kernel computed it from memory that nothing wrote.

    """
    import numpy as np  # noqa: PLC0415 - the parent process needs none

    dtype = np.dtype(details["dtype"])
    if dtype.kind in "SU":
        raise ModelRejected(f"tensor {name} holds strings, which are not supported")
    if dtype.kind in "OV":
        raise ModelRejected(f"tensor {name} holds a resource or variant, which are not supported")
    shape = tuple(int(size) for size in details["shape"])
    # numpy, too, refuses dimensions beside one of 0 that would be too many without it.
    size = prod(max(1, length) for length in shape) * dtype.itemsize
    if min(shape, default=0) < 0 or size > _MOST_BYTES:
        raise ModelRejected(f"tensor {name} has shape {shape}, which no memory holds")
    scale, zero_point = details["quantization"]
    return TensorSpec(
        name=name,
        shape=shape,
        dtype=dtype.name,
        scale=float(scale),
        zero_point=int(zero_point),
        index=int(details["index"]),
    )


@dataclass(frozen=True)
class ModelDescription:
    """The first graph of a model.

    Attributes:
        inputs: as the invocation names and orders them.
        outputs: likewise.
        operators: names in execution order.
        graph_inputs: indexes of the input tensors in the graph's own order.
        graph_outputs: likewise of the output tensors.

    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: tuple[str, ...]
    graph_inputs: tuple[int, ...]
    graph_outputs: tuple[int, ...]


def described_model(content: bytes, invocation: Invocation) -> ModelDescription:
    """Return what a model takes and gives, in the shapes that are asked for, and its operators.

    Raises:
        ModelRejected: it has no such signature, it is not of the first graph, or the interpreter
            refuses model or shapes.

    """
    module = interpreter_module()
    try:
        interpreter = module.Interpreter(
            model_content=content,
            experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        tensors = model_tensors(interpreter, invocation)
        resize_inputs(interpreter, tensors, invocation.shapes)
        if invocation.shapes:  # else the shapes are those of the file
            interpreter.allocate_tensors()
            tensors = model_tensors(interpreter, invocation)
    except (ValueError, RuntimeError) as error:
        words = " ".join(str(error).split())
        raise ModelRejected(f"{runtime_info()} refuses it: {words}") from error
    if tensors.runner is not None:
        raise ModelRejected("only the signature of the first graph can be run by this runtime")
    return ModelDescription(
        inputs=tuple(tensor_spec(*named) for named in tensors.inputs),
        outputs=tuple(tensor_spec(*named) for named in tensors.outputs),
        operators=tuple(node["op_name"] for node in graph_nodes(interpreter)),
        graph_inputs=tuple(
            int(input_detail["index"]) for input_detail in interpreter.get_input_details()
        ),
        graph_outputs=tuple(
            int(output_detail["index"]) for output_detail in interpreter.get_output_details()
        ),
    )
