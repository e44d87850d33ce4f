"""A runtime, what it is asked for, the model that it opens, and what comes of running that."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels


@dataclass(frozen=True)
class Delegate:
    """A vendor's delegate.

    Attributes:
        library: file name or path of its shared library.
        options: handed to the delegate as they are.

    """

    library: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One of several invocations of which an input consists.

    Attributes:
        signature: name of the signature that is run, whose names its tensors then have; empty for
            the model's first graph.
        shapes: a shape for inputs with dynamic dimensions, by the input's name. An input that is
            not named keeps the shape that it has.
        outputs: shapes that outputs are expected to have, by the output's name. Where none is
            named, the step is run once on zeros to learn them, which kernels may refuse.

    """

    signature: str = ""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    outputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Invocation:
    """How a model is called on one input; by default its first graph, once, in its own shapes.

    Attributes:
        signature: name of the signature that is run, whose names its tensors then have; empty for
            the model's first graph.
        shapes: a fixed shape for each input with dynamic dimensions, by the input's name. A
            dimension that is left open has the size 1.
        state: the outputs that are handed to an input of the next frame, as pairs of the input's
            and the output's name.
        frames: steps of one clip, which is one input then. Its tensors have the shapes
            (frames, *shape), without the inputs that are fed by a state. 0 where an input is no
            clip: the model is run once on it.
        steps: the invocations of which one input consists, by an interpreter that is opened anew
            for it, each with all that those before have left; its tensors are those of all steps,
            one behind the other. Empty where an input is one invocation. Without all else.

    """

    signature: str = ""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    frames: int = 0
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Acceleration:
    """How an accelerator computes, and what becomes of nodes that it does not take.

    Attributes:
        float32: compute in float32 throughout; else it may take float16, as it does by itself.
        fallback: run nodes that it does not take on the CPU; else a model that has some is refused.

    """

    float32: bool = False
    fallback: bool = False


@dataclass(frozen=True)
class Options:
    """The options with which a model is run.

    Attributes:
        kernels: the kernel set.
        threads: interpreter threads, at least 1.
        delegate: a vendor's delegate, which comes before the kernel set, or None.
        warmup: inputs of zeros to run before the model counts as open.
        input_timeout_seconds: time that one input may take before it counts as a hang.
        capture: answer with every tensor that an operator of the graph puts out, in place of the
            model's outputs. Keeping them all can itself change results.
        invocation: how the model is called on one input.
        acceleration: options of the kernel sets of accelerators.
        arena_bytes: most bytes of the arena, for a runtime with one; 0 for any size.

    """

    kernels: Kernels
    threads: int = 1
    delegate: Delegate | None = None
    warmup: int = 0
    input_timeout_seconds: float = 10.0
    capture: bool = False
    invocation: Invocation = field(default_factory=Invocation)
    acceleration: Acceleration = field(default_factory=Acceleration)
    arena_bytes: int = 0


@dataclass(frozen=True)
class RuntimeInfo:
    """A runtime: the package's name and version."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class RuntimeMissing(Exception):  # noqa: N818
    """A runtime is not installed; the message is one line and says what to type."""


class ModelRejected(Exception):  # noqa: N818  (an answer about the model, not an accident)
    """The file is no model that this runtime can run; the message is one line."""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output of a model.

    Attributes:
        name: as the model calls it.
        shape: as the model declares it, the batch dimension included.
        dtype: numpy's name of the type, for example "int8".
        scale: real = (raw - zero_point) * scale; 0 where the tensor is not quantized.
        zero_point: see scale.
        index: position among the tensors of the graph.

    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float
    zero_point: int
    index: int = 0


class OpenedModel(Protocol):
    """A model that is ready to be invoked.

    Attributes:
        inputs: input tensors in the order in which an input's bytes are laid out.
        outputs: output tensors, likewise; with capture every tensor that an operator of the graph
            puts out.
        operators: names in execution order, delegates apart; none where the runtime tells of none.
        delegated_nodes: nodes of the graph that a delegate or an accelerator took; likewise.
        external_nodes: those of them that the external delegate took.
        adapter: what the accelerator computes on, as its driver says; empty where there is none.
        arena_bytes: size of the arena that it takes; 0 where the runtime has none.

    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: tuple[str, ...]
    delegated_nodes: int
    external_nodes: int
    adapter: str
    arena_bytes: int

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once on an input that nothing came before; see `step`."""
        ...

    def reset(self) -> None:
        """Set all variables to what they were at first, so that no answer depends on others."""
        ...

    def step(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model once, its variables as they are.

        Args:
            inputs: one array for each input tensor, in its shape and dtype.
            outputs: one array for each output tensor, which is filled.

        Raises:
            RuntimeError: a kernel refused, or an output has another shape than the model declares.
            ValueError: likewise, as some kernels say it.

        """
        ...


@dataclass(frozen=True)
class StepTensors:
    """The inputs and outputs of a step."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


class SteppedModel(OpenedModel, Protocol):
    """A model that takes other shapes, and is run by another signature, between invocations."""

    def take(self, step: Step) -> None:
        """Make ready for a step; what the steps before have left stays as it is.

        Raises:
            ModelRejected: there is no such signature or input, or a shape does not fit.
            RuntimeError: the runtime refuses the shapes.
            ValueError: likewise, as some kernels say it.

        """
        ...

    def described(self, steps: Sequence[Step]) -> list[StepTensors]:
        """Return what goes in and comes out in each step.

        Raises:
            ModelRejected: a step does not fit.

        """
        ...


class ModelRuntime(Protocol):
    """What opens models with the kernel sets that it has. Making one imports nothing of it."""

    def misfit(self, head: bytes) -> str | None:
        """Return why a file with these first 8 bytes is no model of this runtime, if it is none."""
        ...

    def offers(self, kernels: Kernels) -> bool:
        """Tell whether it is installed here with one of its kernel sets; imports nothing of it."""
        ...

    def load(self) -> RuntimeInfo:
        """Import the runtime, and say which it is.

        Raises:
            RuntimeMissing: it is not installed.

        """
        ...

    def open(self, content: bytes, options: Options) -> OpenedModel:
        """Open a model in this very process, which a broken one takes along.

        Raises:
            ModelRejected: the runtime refuses the model, or the options. Where it is for one
                operator, `conform` has to know of which: "… has no operator ADD", or without
                delegates "… refuses ADD, node 3: why".

        """
        ...


def offered_kernel_sets() -> tuple[Kernels, ...]:
    """Return the kernel sets of the runtimes that are installed here."""
    return tuple(name for name in KERNEL_SETS if runtime_with(name).offers(name))


def runtime_with(kernels: Kernels) -> ModelRuntime:
    """Return the runtime that has a kernel set; its package is imported when it is first asked for.

    A runtime is a package here, under the name that the table of kernel sets gives, with a module
    `NAME_runtime` that has it as `RUNTIME`.
    """
    name = KERNEL_SETS[kernels].runtime
    module = importlib.import_module(f"{__package__}.{name}.{name}_runtime")
    runtime: ModelRuntime = module.RUNTIME
    return runtime


FailureKind = Literal["crash", "hang", "error"]
"""The worker died on an input, did not end in time, or the runtime answered with an error."""


@dataclass(frozen=True)
class Failure:
    """An input on which the model gave no answer.

    Attributes:
        index: position within the batch, from 0.
        kind: what happened.
        detail: what is known, one line: a signal, an exit code, the runtime's message.
        quarantined: the input was not run, because it killed or hung the worker twice before.

    """

    index: int
    kind: FailureKind
    detail: str
    quarantined: bool = False


@dataclass(frozen=True)
class Batch:
    """A model's answers.

    Attributes:
        outputs: one output for each input, one behind the other, raw; failed ones are zeros.
        failures: failed inputs by ascending index.
        busy_seconds: time that the worker spent on the batch.

    """

    outputs: bytes
    failures: tuple[Failure, ...]
    busy_seconds: float


class WorkerLost(Exception):  # noqa: N818
    """No worker process can be started, or none stays alive; the message is one line."""


class ModelChanged(WorkerLost):
    """The file is not what it was, or should be: a worker read other bytes and loaded nothing."""
