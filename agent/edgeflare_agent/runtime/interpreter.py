"""One model under the runtime, in this very process: the adapter over the two packages.

Only a worker process should use it, for a broken model or kernel takes the process along.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from edgeflare_agent.runtime.answers import ModelRejected, TensorSpec
from edgeflare_agent.runtime.capture import readable_tensors
from edgeflare_agent.runtime.runtime_packages import interpreter_module, runtime_info
from edgeflare_agent.runtime.session_options import Kernels, Options

# BUILTIN_REF applies no default delegate either.
_RESOLVERS: dict[Kernels, str] = {
    "xnnpack": "AUTO",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}


class LoadedModel:
    """A model that is ready to be invoked at its own input shape.

    Attributes:
        interpreter: the runtime's `Interpreter`, its tensors allocated.
        inputs: in the order in which an input's bytes are laid out.
        outputs: likewise; with capture every tensor that an operator of the graph puts out.
        operators: names in execution order, delegates apart.
        delegated_nodes: nodes of the graph that a delegate took.
        external_nodes: those of them that the external delegate took.

    """

    def __init__(self, content: bytes, options: Options) -> None:
        self.interpreter, self.external_nodes = _load(content, options)
        nodes = self.interpreter._get_ops_details()
        self._input_details = self.interpreter.get_input_details()
        if options.capture:
            self._output_details = readable_tensors(self.interpreter, nodes)
        else:
            self._output_details = self.interpreter.get_output_details()
        self.inputs = tuple(_spec(details) for details in self._input_details)
        self.outputs = tuple(_spec(details) for details in self._output_details)
        self.operators = tuple(node["op_name"] for node in nodes if node["op_name"] != "DELEGATE")
        self.delegated_nodes = _count_delegated(nodes)

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once.

        Args:
            inputs: one array for each input tensor, in its shape and dtype.
            outputs: one array for each output tensor, which is filled.

        Raises:
            RuntimeError: a kernel refused, or an output has another shape than the model declares.
            ValueError: likewise, as some kernels say it.

        """
        interpreter = self.interpreter
        for details, array in zip(self._input_details, inputs, strict=True):
            interpreter.set_tensor(details["index"], array)
        interpreter.invoke()
        for details, array in zip(self._output_details, outputs, strict=True):
            answer = interpreter.get_tensor(details["index"])
            if answer.shape != array.shape:
                raise RuntimeError(
                    f"output {details['name']} has shape {answer.shape}, declared {array.shape}"
                )
            array[...] = answer


def _load(content: bytes, options: Options) -> tuple[Any, int]:
    """Return the runtime's interpreter, ready, and how many nodes the external delegate took.

    Raises:
        ModelRejected: the runtime refuses the model or the delegate.

    """
    module = interpreter_module()
    try:
        delegates = []
        if options.delegate is not None:
            delegate = options.delegate
            delegates.append(module.load_delegate(delegate.library, dict(delegate.options)))
        interpreter = module.Interpreter(
            model_content=content,
            num_threads=options.threads,
            experimental_op_resolver_type=module.OpResolverType[_RESOLVERS[options.kernels]],
            experimental_delegates=delegates,
            # Else what is not delegated shares its memory, and stale values are read from it.
            experimental_preserve_all_tensors=options.capture,
        )
        # The external delegate has taken its part by now, XNNPACK does so on allocating.
        external_nodes = _count_delegated(interpreter._get_ops_details()) if delegates else 0
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelRejected(_plain(str(error))) from error
    return interpreter, external_nodes


def _plain(message: str) -> str:
    """Return the runtime's complaint in one line that names operator, version and runtime."""
    runtime = runtime_info()
    if found := re.search(r"builtin opcode '(\w+)' version '(\d+)'", message):
        operator, version = found.groups()
        return (
            f"{runtime} has no operator {operator} version {version}: "
            "convert the model for an older runtime, or install a newer one on the device"
        )
    if found := re.search(r"unresolved custom op: ([\w:.-]+?)\.?(?:\s|$)", message):
        return f"{runtime} has no custom operator {found.group(1)}"
    words = " ".join(message.split()) or "no reason given"
    return f"{runtime} refuses it: {words}"


def _spec(details: dict[str, Any]) -> TensorSpec:
    import numpy as np  # noqa: PLC0415

    dtype = np.dtype(details["dtype"])
    if dtype.hasobject or dtype.itemsize == 0 or dtype.kind in "SU":
        raise ModelRejected(f"tensor {details['name']} holds strings, which are not supported")
    scale, zero_point = details["quantization"]
    return TensorSpec(
        name=details["name"],
        shape=tuple(int(size) for size in details["shape"]),
        dtype=dtype.name,
        scale=float(scale),
        zero_point=int(zero_point),
        index=int(details["index"]),
    )


def _count_delegated(nodes: Sequence[dict[str, Any]]) -> int:
    """Count the graph's nodes that a delegate took.

    The runtimes keep a delegated node in their list and append a DELEGATE node that stands for a
    part of the graph. Its members are found by walking back from what it puts out to what it
    takes in.
    """
    makers = {
        int(tensor): number
        for number, node in enumerate(nodes)
        if node["op_name"] != "DELEGATE"
        for tensor in node["outputs"]
    }
    taken: set[int] = set()
    for part in nodes:
        if part["op_name"] != "DELEGATE":
            continue
        given = {int(tensor) for tensor in part["inputs"]}
        open_tensors = [int(tensor) for tensor in part["outputs"]]
        while open_tensors:
            tensor = open_tensors.pop()
            maker = makers.get(tensor)
            if tensor in given or maker is None or maker in taken:
                continue
            taken.add(maker)
            open_tensors.extend(int(source) for source in nodes[maker]["inputs"])
    return len(taken)
