"""A model as the interpreter reads it from the file, for runtimes that tell less of it."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare_agent.runtime.answers import ModelRejected, TensorSpec
from edgeflare_agent.runtime.session_options import Invocation
from edgeflare_agent.runtime.tflite.model_tensors import (
    graph_nodes,
    model_tensors,
    resize_inputs,
    tensor_spec,
)
from edgeflare_agent.runtime.tflite.packages import interpreter_module, runtime_info


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
        graph_inputs=tuple(int(one["index"]) for one in interpreter.get_input_details()),
        graph_outputs=tuple(int(one["index"]) for one in interpreter.get_output_details()),
    )
