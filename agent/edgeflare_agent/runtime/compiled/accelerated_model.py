"""One model on an accelerator, in this very process.

Only a worker process should use it, for a broken model or driver takes the process along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeflare_agent.runtime.answers import ModelRejected
from edgeflare_agent.runtime.compiled.accelerator_log import AcceleratorLog, recorded_log
from edgeflare_agent.runtime.session_options import Options
from edgeflare_agent.runtime.tflite.model_tensors import (
    ModelTensors,
    model_tensors,
    resize_inputs,
    tensor_spec,
)
from edgeflare_agent.runtime.tflite.packages import interpreter_module, runtime_info
from edgeflare_protos.kernel_sets import KERNEL_SETS

_KEEPING_STATE = frozenset(
    (
        *("VAR_HANDLE", "SVDF", "RNN", "LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"),
        "BIDIRECTIONAL_SEQUENCE_LSTM",
    )
)
"""Operators with variables, which a compiled model has no call to reset."""


class AcceleratorLost(Exception):  # noqa: N818 - a fact about the device, like WorkerLost
    """An accelerator failed on an input.

    No answer to the input as a kernel's error is, so that it ends the worker: if a new one cannot
    open the model, the accelerator is gone, and else the input is tried again.
    """


class AcceleratedModel:
    """A model that is ready to be invoked; see `OpenedModel`.

    The nodes, operators and quantizations of a model are those that the interpreter reads from the
    file, since a compiled model tells of none.
    """

    external_nodes = 0

    def __init__(self, content: bytes, options: Options) -> None:
        if options.capture:
            raise ModelRejected(
                f"the {KERNEL_SETS[options.kernels].title} does not keep the tensors between"
                " operators"
            )
        self._content, self._options = content, options
        tensors, self.operators = _described(content, options)
        with recorded_log() as log:
            self._compiled = _compiled(content, options, log)
            self._connect(tensors)
        self.inputs = tuple(tensor_spec(*named) for named in tensors.inputs)
        self.outputs = tuple(tensor_spec(*named) for named in tensors.outputs)
        self.adapter = log.adapter
        self.delegated_nodes = self._count_accelerated(log)
        self._reloads = not _KEEPING_STATE.isdisjoint(self.operators)

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once on an input that nothing came before; see `step`."""
        self.reset()
        self.step(inputs, outputs)

    def reset(self) -> None:
        """Set all variables to what they were at first: a model that has some is compiled anew."""
        if self._reloads:
            with recorded_log() as log:
                self._compiled = _compiled(self._content, self._options, log)
                self._connect(_described(self._content, self._options)[0])

    def step(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once, its variables as they are; see `OpenedModel`.

        Raises:
            AcceleratorLost: see there.

        """
        try:
            for buffer, array in zip(self._given, inputs, strict=True):
                buffer.write(array)
            self._compiled.run_by_index(self._signature, self._all_given, self._all_made)
            for buffer, array in zip(self._made, outputs, strict=True):
                array[...] = buffer.read(array.size, array.dtype).reshape(array.shape)
        except RuntimeError as error:
            raise AcceleratorLost(" ".join(str(error).split())) from error

    def _connect(self, tensors: ModelTensors) -> None:
        """Make the buffers, and find those of each input and output by the tensor's index."""
        key = self._options.invocation.signature
        self._signature = self._compiled.get_signature_index(key) if key else 0
        signature = self._compiled.get_signature_by_index(self._signature)
        key = key or signature["key"]
        self._all_given = self._compiled.create_input_buffers(self._signature)
        self._all_made = self._compiled.create_output_buffers(self._signature)
        given = self._compiled.get_input_tensor_details(key)
        made = self._compiled.get_output_tensor_details(key)
        self._given = _in_order(signature["inputs"], given, self._all_given, tensors.inputs)
        self._made = _in_order(signature["outputs"], made, self._all_made, tensors.outputs)

    def _count_accelerated(self, log: AcceleratorLog) -> int:
        return len(self.operators) if self._compiled.is_fully_accelerated() else log.accelerated


def _described(content: bytes, options: Options) -> tuple[ModelTensors, tuple[str, ...]]:
    """Return what the model takes and gives, and its operators.

    Raises:
        ModelRejected: it has no such signature, or is none that this runtime can shape.

    """
    module = interpreter_module()
    try:
        interpreter = module.Interpreter(
            model_content=content,
            experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        tensors = model_tensors(interpreter, options.invocation)
        resize_inputs(interpreter, tensors, options.invocation.shapes)
        if options.invocation.shapes:  # else the shapes are those of the file
            interpreter.allocate_tensors()
            tensors = model_tensors(interpreter, options.invocation)
    except (ValueError, RuntimeError) as error:
        words = " ".join(str(error).split())
        raise ModelRejected(f"{runtime_info()} refuses it: {words}") from error
    if tensors.runner is not None:
        raise ModelRejected("accelerators run the signature of the first graph only")
    return tensors, tuple(node["op_name"] for node in interpreter._get_ops_details())


def _compiled(content: bytes, options: Options, log: AcceleratorLog) -> Any:
    """Return LiteRT's `CompiledModel`.

    Raises:
        ModelRejected: there is no driver, or it refuses the model.

    """
    from ai_edge_litert import compiled_model as litert  # noqa: PLC0415 - an old runtime has none

    accelerators = litert.HardwareAccelerator[KERNEL_SETS[options.kernels].own_name]
    if options.acceleration.fallback:
        accelerators |= litert.HardwareAccelerator.CPU
    chosen = litert.Options(
        hardware_accelerators=accelerators,
        cpu_options=litert.CpuOptions(num_threads=options.threads),
        gpu_options=litert.GpuOptions(enforce_f32=options.acceleration.float32),
    )
    try:
        compiled = litert.CompiledModel.from_buffer(content, options=chosen)
        for index, shape in enumerate(_fixed_shapes(compiled, options)):
            if shape is not None:
                compiled.resize_input_tensor(index, shape)
    except RuntimeError as error:
        title = KERNEL_SETS[options.kernels].title
        raise ModelRejected(f"the {title} of {runtime_info()} {log.refusal(str(error))}") from error
    return compiled


def _fixed_shapes(compiled: Any, options: Options) -> list[tuple[int, ...] | None]:
    """Return the shape that each input of the signature is given, in the signature's order."""
    shapes = options.invocation.shapes
    if not shapes:
        return []
    key = options.invocation.signature
    index = compiled.get_signature_index(key) if key else 0
    signature = compiled.get_signature_by_index(index)
    details = compiled.get_input_tensor_details(key or signature["key"])
    return [shapes.get(name, shapes.get(details[name]["name"])) for name in signature["inputs"]]


def _in_order(
    names: Sequence[str],
    details: dict[str, dict[str, Any]],
    buffers: Sequence[Any],
    tensors: Sequence[tuple[str, dict[str, Any]]],
) -> list[Any]:
    """Return the buffers in the order of the tensors; a signature has an order of its own."""
    by_index = {details[name]["index"]: buffer for name, buffer in zip(names, buffers, strict=True)}
    return [by_index[int(tensor["index"])] for _, tensor in tensors]
