"""One model under the runtime, in this very process: the adapter over the two packages.

Only a worker process should use it, for a broken model or kernel takes the process along.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from edgeflare_agent.runtime.model_runtime import ModelRejected, Options, Step, StepTensors
from edgeflare_agent.runtime.tflite.model_tensors import (
    ExecutedNode,
    ModelTensors,
    TensorDetails,
    graph_nodes,
    has_inner_resources,
    model_tensors,
    resize_inputs,
    run_on_zeros,
    tensor_spec,
)
from edgeflare_agent.runtime.tflite.packages import interpreter_module, runtime_info
from edgeflare_protos.kernel_sets import KERNEL_SETS


class LoadedModel:
    """A model that is ready to be invoked, at its own input shapes or those that were asked for.

    It is a `SteppedModel`, too.

    Attributes:
        interpreter: the runtime's `Interpreter`, its tensors allocated.
        inputs: input tensors in the order in which an input's bytes are laid out.
        outputs: output tensors, likewise; with capture every tensor that an operator of the graph
            puts out.
        operators: names in execution order, delegates apart; none where a signature is not of the
            model's first graph, since the runtime tells of no other.
        delegated_nodes: nodes of the graph that a delegate took; likewise.
        external_nodes: those of them that the external delegate took.
        adapter: empty, since nothing here has an accelerator.
        arena_bytes: 0, since there is no arena.

    """

    adapter = ""
    arena_bytes = 0

    def __init__(self, content: bytes, options: Options) -> None:
        self._content, self._options = content, options
        self.interpreter, tensors, self.external_nodes = _load(content, options)
        nodes = [] if tensors.runner is not None else graph_nodes(self.interpreter)
        if options.capture:
            kept = _readable_tensors(self.interpreter, nodes)
            tensors = replace(tensors, outputs=[(details["name"], details) for details in kept])
        self._adopt(tensors)
        self.operators = tuple(node["op_name"] for node in nodes if node["op_name"] != "DELEGATE")
        self.delegated_nodes = _count_delegated(nodes)
        resources = "VAR_HANDLE" in self.operators or has_inner_resources(self.interpreter, nodes)
        stepped = bool(options.invocation.steps)
        self._reloads = stepped or resources or not self._resets_variables()

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once on an input that nothing came before; see `step`."""
        self.reset()
        self.step(inputs, outputs)

    def reset(self) -> None:
        """Set all variables to what they were at first, so that no answer depends on others.

        That is 1 µs for variable tensors. Variables that are resources stay as they are for as
        long as their interpreter does, so such a model is loaded anew.
        """
        if not self._reloads:
            self.interpreter.reset_all_variables()
            return
        # It does not run on the way, for that would write its variables.
        self.interpreter, tensors, _ = _allocated(self._content, self._options)
        self._runner = tensors.runner

    def described(self, steps: Sequence[Step]) -> list[StepTensors]:
        """Return what goes in and comes out in each step; see `SteppedModel`."""
        return described_steps(self._content, self._options, steps)

    def take(self, step: Step) -> None:
        """Make ready for a step; see `SteppedModel`."""
        self._runner = None  # while it is held, the interpreter does not allocate
        self._adopt(_taken(self.interpreter, step))

    def _adopt(self, tensors: ModelTensors) -> None:
        self._runner = tensors.runner
        self._input_details = [details for _, details in tensors.inputs]
        self._output_details = [details for _, details in tensors.outputs]
        self.inputs = tuple(tensor_spec(*named) for named in tensors.inputs)
        self.outputs = tuple(tensor_spec(*named) for named in tensors.outputs)

    def step(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once, its variables as they are.

        Args:
            inputs: one array for each input tensor, in its shape and dtype.
            outputs: one array for each output tensor, which is filled.

        Raises:
            RuntimeError: a kernel refused, or an output has another shape than the model declares.
            ValueError: likewise, as some kernels say it.

        """
        if self._runner is not None:
            given = {spec.name: array for spec, array in zip(self.inputs, inputs, strict=True)}
            answers = self._runner(**given)
            for spec, array in zip(self.outputs, outputs, strict=True):
                _keep(spec.name, answers[spec.name], array)
            return
        interpreter = self.interpreter
        for details, array in zip(self._input_details, inputs, strict=True):
            interpreter.set_tensor(details["index"], array)
        interpreter.invoke()
        for details, array in zip(self._output_details, outputs, strict=True):
            _keep(details["name"], interpreter.get_tensor(details["index"]), array)

    def _resets_variables(self) -> bool:
        """Whether variable tensors can be reset; not where a graph beside the first has some."""
        if self._runner is not None:
            return False
        try:
            self.interpreter.reset_all_variables()
        except RuntimeError:
            return False
        return True


def _keep(name: str, answer: Any, array: Any) -> None:
    if answer.shape != array.shape:
        raise RuntimeError(f"output {name} has shape {answer.shape}, declared {array.shape}")
    array[...] = answer


def described_steps(content: bytes, options: Options, steps: Sequence[Step]) -> list[StepTensors]:
    """Return the tensors of each step, in which a new interpreter is called one after the other.

    Shapes that are not told may be known only once it ran.

    Args:
        content: the file.
        options: how it is opened, on kernels of the interpreter.
        steps: the steps.

    Raises:
        ModelRejected: a step does not fit.

    """
    interpreter, tensors, _ = _allocated(content, options)
    found = []
    for number, step in enumerate(steps, 1):
        try:
            tensors = _taken(interpreter, step)
        except (RuntimeError, ValueError) as error:
            words = " ".join(str(error).split())
            raise ModelRejected(f"step {number} of {len(steps)}: {words}") from error
        if not step.outputs:
            with suppress(RuntimeError, ValueError):  # as of a division by zero
                run_on_zeros(interpreter, tensors, step.shapes)
        del tensors  # with its runner, beside which the interpreter does not allocate
        found.append(_step_tensors(model_tensors(interpreter, step), step))
    return found


def _step_tensors(tensors: ModelTensors, step: Step) -> StepTensors:
    made = tuple(tensor_spec(*named) for named in tensors.outputs)
    if unknown := step.outputs.keys() - {spec.name for spec in made}:
        names = ", ".join(spec.name for spec in made)
        raise ModelRejected(f"there is no output {min(unknown)!r}: its outputs are {names}")
    return StepTensors(
        tuple(tensor_spec(*named) for named in tensors.inputs),
        tuple(replace(spec, shape=step.outputs.get(spec.name, spec.shape)) for spec in made),
    )


def _taken(interpreter: Any, step: Step) -> ModelTensors:
    """Make an interpreter ready for a step, and return what it takes and gives in it."""
    tensors = model_tensors(interpreter, step)
    resize_inputs(interpreter, tensors, step.shapes)
    if tensors.runner is None:
        interpreter.allocate_tensors()
    return tensors


def _load(content: bytes, options: Options) -> tuple[Any, ModelTensors, int]:
    """Return the runtime's interpreter, ready; what it takes and gives; and a count.

    The count is of nodes that the external delegate took. The model may have run on the way, so
    its variables have to be reset.
    """
    interpreter, tensors, external_nodes = _allocated(content, options)
    invocation = options.invocation
    try:
        if invocation.shapes or tensors.runner is not None:
            # Shapes of outputs that are computed are known only once it has run.
            with suppress(RuntimeError, ValueError):  # as of a division by zero
                run_on_zeros(interpreter, tensors, invocation.shapes)
        # The shapes are now those of the allocated tensors.
        tensors = model_tensors(interpreter, invocation)
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelRejected(_plain(str(error), options)) from error
    if options.capture and tensors.runner is not None:
        raise ModelRejected("the tensors of a signature beside the first graph cannot be captured")
    return interpreter, tensors, external_nodes


def _allocated(content: bytes, options: Options) -> tuple[Any, ModelTensors, int]:
    """Return the same of a model that has not run: shapes are those of before it was allocated."""
    module = interpreter_module()
    invocation = options.invocation
    resolver = KERNEL_SETS[options.kernels].own_name
    try:
        delegates = []
        if options.delegate is not None:
            delegate = options.delegate
            delegates.append(module.load_delegate(delegate.library, dict(delegate.options)))
        interpreter = module.Interpreter(
            model_content=content,
            num_threads=options.threads,
            experimental_op_resolver_type=module.OpResolverType[resolver],
            experimental_delegates=delegates,
            # Else what is not delegated shares its memory, and stale values are read from it.
            experimental_preserve_all_tensors=options.capture,
        )
        # The external delegate has taken its part by now, XNNPACK does so on allocating.
        external_nodes = _count_delegated(graph_nodes(interpreter)) if delegates else 0
        tensors = model_tensors(interpreter, invocation)
        resize_inputs(interpreter, tensors, invocation.shapes)
        if tensors.runner is None:  # which allocates those of its own graph
            interpreter.allocate_tensors()
    except (ValueError, RuntimeError, OSError) as error:
        raise ModelRejected(_plain(str(error), options)) from error
    return interpreter, tensors, external_nodes


def _plain(message: str, options: Options) -> str:
    """Return the runtime's complaint in one line that names operator, version and runtime."""
    runtime = runtime_info()
    if found := re.search(r"builtin opcode '(\w+)' version '(\d+)'", message):
        operator, version = found.groups()
        return (
            f"{runtime} has no operator {operator} version {version}: "
            "convert the model for an older runtime, or install a newer one on the device"
        )
    if found := re.search(r"unresolved custom op: ([\w:.-]+?)\.?(?:\s|$)", message):
        # A delegate may bring some that the runtime itself has not.
        return (
            f"{runtime} has no custom operator {found.group(1)} with {options.kernels} kernels: "
            "convert the model without it, or take kernels that have it"
        )
    # What a delegate leaves to the CPU is no reason, and reasons come without a space between them.
    words = re.sub(r"failed to delegate \w+ node #\d+", " ", message)
    words = re.sub(r"(?<=[^\s/])(?=Node number \d|tflite/|tensorflow/lite/)", " ", words)
    return f"{runtime} refuses it: {' '.join(words.split()) or 'no reason given'}"


def _count_delegated(nodes: Sequence[ExecutedNode]) -> int:
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


def _readable_tensors(interpreter: Any, nodes: Sequence[ExecutedNode]) -> list[TensorDetails]:
    """Return the details of every tensor that an operator writes, in execution order.

    The model is run once on zeros, which shows what cannot be read: tensors that a delegate keeps
    to itself, and those whose shape is known only then, are left out; so are strings.

    Args:
        interpreter: the runtime's, with tensors allocated, opened to keep all tensors.
        nodes: the interpreter's list of nodes.

    """
    for details in interpreter.get_input_details():
        tensor = interpreter.tensor(details["index"])()
        tensor.fill(0)
        # A view that is alive forbids the interpreter to run.
        del tensor
    try:
        interpreter.invoke()
    except (RuntimeError, ValueError) as error:
        words = " ".join(str(error).split())
        raise ModelRejected(f"it does not run when all tensors are kept: {words}") from error
    made = dict.fromkeys(
        int(index) for node in nodes if node["op_name"] != "DELEGATE" for index in node["outputs"]
    )
    found = (_readable(interpreter, index) for index in made)
    return [details for details in found if details is not None]


def _readable(interpreter: Any, index: int) -> TensorDetails | None:
    """Return the details of a tensor; None where its values cannot be read."""
    try:
        details: TensorDetails = interpreter._get_tensor_details(index, 0)
        value = interpreter.get_tensor(index)
    except ValueError:  # also of a type that numpy lacks
        return None
    readable = value.dtype.kind in "biuf" and value.shape == tuple(details["shape"])
    return details if readable else None
