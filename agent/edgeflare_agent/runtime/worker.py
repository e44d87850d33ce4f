"""The process that owns an interpreter: started by `worker_process.py`, with FD as its argument.

FD is the descriptor of the shared file. Commands come on stdin, answers go to stdout:

    → {"model": path, "sha256": ..., "options": {...}}
    ← {"runtime": name and version}           once the runtime is imported
    ← {"ready": {...}}, {"rejected": why}, or {"changed": why} for a file of another sha256
    → {"first": i, "stop": j, "capacity": n}   run the inputs i … j - 1 of the shared batch
    ← {"error": [index, message]}              at once, so that a later crash cannot swallow it
    ← {"busy_seconds": s}

A worker ends when its parent does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import resource
import select
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from edgeflare_agent.runtime.model_runtime import (
    Invocation,
    ModelChanged,
    ModelRejected,
    ModelRuntime,
    OpenedModel,
    Options,
    RuntimeMissing,
    Step,
    SteppedModel,
    TensorSpec,
    runtime_with,
)
from edgeflare_agent.runtime.shared_memory import SharedBatch
from edgeflare_agent.runtime.worker_messages import Channel, LoadingOrder, ReadyModel
from edgeflare_protos.kernel_sets import KERNEL_SETS


def main(shared_fd: int) -> None:
    """Serve one model until the parent closes the pipe."""
    # A crash is an answer here, no reason to leave a core file in the user's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = _claim_pipes()
    order = LoadingOrder.read(channel.receive() or {})
    options = order.options
    try:
        runtime = runtime_with(options.kernels)
        name = str(runtime.load())
        channel.send({"runtime": name})
        model = _open(order, runtime)
        called = _called(model, options.invocation)
        warm_up(called, options.warmup)
    except RuntimeMissing as error:
        channel.send({"no_runtime": str(error)})
        return
    except ModelRejected as error:
        channel.send({"rejected": str(error)})
        return
    except ModelChanged as error:
        channel.send({"changed": str(error)})
        return
    ready = _described(model, called, name)
    batch = SharedBatch(shared_fd, ready.input_bytes, ready.output_bytes)
    channel.send({"ready": dataclasses.asdict(ready)})
    while command := channel.receive():
        batch.reserve(command["capacity"])
        _run(called, batch, range(command["first"], command["stop"]), channel)


class Called(Protocol):
    """A model, or a clip of one, as it is called on an input.

    Attributes:
        inputs: what goes in.
        outputs: what comes out.

    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run it once; see `OpenedModel.step`."""
        ...


def warm_up(model: Called, inputs_of_zeros: int) -> None:
    """Run a model on some inputs of zeros, whatever it answers, and also if it refuses zeros."""
    inputs = [np.zeros(spec.shape, spec.dtype) for spec in model.inputs]
    outputs = [np.zeros(spec.shape, spec.dtype) for spec in model.outputs]
    for _ in range(inputs_of_zeros):
        with contextlib.suppress(RuntimeError, ValueError):  # as of a division by zero
            model.invoke(inputs, outputs)


def _claim_pipes() -> Channel:
    """Take stdin and stdout for the channel, since the runtimes print, and watch for their end."""
    commands, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, args=(commands,), daemon=True).start()
    return Channel(commands, answers)


def _end_with_parent(commands: int) -> None:
    """End this process when the parent has closed its end, even in the middle of a kernel.

    PR_SET_PDEATHSIG would not do: it fires when the *thread* that spawned us ends.
    """
    hang_up = select.poll()
    hang_up.register(commands, 0)
    hang_up.poll()
    os._exit(0)


def _open(order: LoadingOrder, runtime: ModelRuntime) -> OpenedModel:
    _check_steps(order.options)
    try:
        content = Path(order.model).read_bytes()
    except OSError as error:
        raise ModelRejected(f"cannot read the model: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != order.sha256:
        raise ModelChanged("the model file changed while it was in use")
    return runtime.open(content, order.options)


def _check_steps(options: Options) -> None:
    """Raise ModelRejected where steps are asked for that there are not."""
    if not options.invocation.steps:
        return
    kernels = KERNEL_SETS[options.kernels]
    if not kernels.steps:
        raise ModelRejected(
            f"the {kernels.title} keep a model in the shapes and by the signature in which it was"
            " opened: leave the steps out, or take kernels of TFLite's interpreter or a GPU"
        )
    if options.capture:
        raise ModelRejected("the tensors of several steps cannot be captured")


def _called(model: OpenedModel, invocation: Invocation) -> Called:
    if invocation.steps:
        return _Steps(cast("SteppedModel", model), invocation.steps)
    return _Clip(model, invocation) if invocation.frames else model


def _record(specs: tuple[TensorSpec, ...]) -> np.dtype[np.void]:
    """Return the dtype of one input or output: its tensors one behind the other, unpadded."""
    return np.dtype([(str(n), spec.dtype, spec.shape) for n, spec in enumerate(specs)])


def _described(model: OpenedModel, called: Called, runtime: str) -> ReadyModel:
    return ReadyModel(
        runtime=runtime,
        inputs=called.inputs,
        outputs=called.outputs,
        input_bytes=_record(called.inputs).itemsize,
        output_bytes=_record(called.outputs).itemsize,
        operators=model.operators,
        delegated_nodes=model.delegated_nodes,
        external_nodes=model.external_nodes,
        adapter=model.adapter,
        arena_bytes=model.arena_bytes,
    )


def _run(model: Called, batch: SharedBatch, indexes: range, channel: Channel) -> None:
    began = time.perf_counter()
    inputs = _tensors(batch, batch.inputs_offset, model.inputs)
    outputs = _tensors(batch, batch.outputs_offset, model.outputs)
    for index in indexes:
        batch.mark = index
        try:
            # With the ellipsis also a scalar is a view, which can be filled.
            model.invoke(
                [rows[index, ...] for rows in inputs], [rows[index, ...] for rows in outputs]
            )
        except (RuntimeError, ValueError) as error:
            channel.send({"error": [index, " ".join(str(error).split())]})
    channel.send({"busy_seconds": time.perf_counter() - began})


def _tensors(batch: SharedBatch, offset: int, specs: tuple[TensorSpec, ...]) -> list[Any]:
    """Return for each tensor its values in all places of the batch: (capacity, *shape)."""
    rows = np.frombuffer(batch.memory, _record(specs), batch.capacity, offset)
    return [rows[str(n)] for n in range(len(specs))]


class _Clip:
    """A model whose one input is a clip of frames.

    A state is zero before the first frame, and each next one is what an output of the frame before
    was: as real numbers, since an output may be quantized otherwise than the input that it feeds.

    Attributes:
        inputs: those that no state feeds, (frames, *shape) each.
        outputs: all outputs, (frames, *shape) each.

    """

    def __init__(self, model: OpenedModel, invocation: Invocation) -> None:
        self._model = model
        self._frames = invocation.frames
        self._links = _links(model.inputs, model.outputs, invocation.state)
        fed = {given for given, _ in self._links}
        self._free = [n for n in range(len(model.inputs)) if n not in fed]
        if not self._free:
            raise ModelRejected("each of its inputs is fed by a state: leave one for the frames")
        self.inputs = self._of_clip([model.inputs[n] for n in self._free])
        self.outputs = self._of_clip(model.outputs)

    def invoke(self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
        """Run the model on all frames of a clip.

        Args:
            inputs: one array for each of `inputs`, in its shape and dtype.
            outputs: one array for each of `outputs`, which is filled.

        Raises:
            RuntimeError, ValueError: see `OpenedModel.step`.

        """
        model = self._model
        model.reset()
        given: list[NDArray[Any]] = [
            np.full(spec.shape, spec.zero_point if _is_quantized(spec) else 0, spec.dtype)
            for spec in model.inputs
        ]
        for frame in range(self._frames):
            for n, rows in zip(self._free, inputs, strict=True):
                given[n] = rows[frame, ...]
            made = [rows[frame, ...] for rows in outputs]
            model.step(given, made)
            for fed, source in self._links:
                given[fed] = handed_over(made[source], model.outputs[source], model.inputs[fed])

    def _of_clip(self, specs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        return tuple(replace(spec, shape=(self._frames, *spec.shape)) for spec in specs)


class _Steps:
    """A model one input of which is several invocations, in shapes and by signatures of their own.

    Attributes:
        inputs: those of all steps, one step behind the other.
        outputs: likewise.

    """

    def __init__(self, model: SteppedModel, steps: Sequence[Step]) -> None:
        self._model, self._steps = model, steps
        self.inputs: tuple[TensorSpec, ...] = ()
        self.outputs: tuple[TensorSpec, ...] = ()
        self._places: list[tuple[slice, slice]] = []
        for tensors in model.described(steps):
            given, made = len(self.inputs), len(self.outputs)
            self.inputs += tensors.inputs
            self.outputs += tensors.outputs
            self._places.append((slice(given, len(self.inputs)), slice(made, len(self.outputs))))

    def invoke(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Run the model in all steps, opened anew; see `OpenedModel.step`.

        Raises:
            RuntimeError, ValueError: also where a step is refused that was taken at first.

        """
        self._model.reset()
        for step, (given, made) in zip(self._steps, self._places, strict=True):
            try:
                self._model.take(step)
            except ModelRejected as error:
                raise RuntimeError(str(error)) from error
            self._model.step(inputs[given], outputs[made])


def handed_over(raw: NDArray[Any], made: TensorSpec, given: TensorSpec) -> NDArray[Any]:
    """Return an output's values as an input takes them: dequantized, and quantized anew.

    Args:
        raw: the output's values, in its shape and dtype.
        made: the output.
        given: the input, of the same shape but for dimensions of 1.

    Returns:
        The values in the input's shape and dtype, rounded to the nearest and clipped to its range.
        Where both have the same quantization, they are the same values.

    """
    layout = (made.dtype, made.scale, made.zero_point)
    if layout == (given.dtype, given.scale, given.zero_point):
        return raw.reshape(given.shape)
    real = raw.astype(np.float32)
    if _is_quantized(made):
        real = (real - np.float32(made.zero_point)) * np.float32(made.scale)
    if _is_quantized(given):
        info = np.iinfo(given.dtype)
        real = np.round(real / np.float32(given.scale) + np.float32(given.zero_point))
        real = np.clip(real, info.min, info.max)
    return real.reshape(given.shape).astype(given.dtype)


def _links(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], state: Mapping[str, str]
) -> list[tuple[int, int]]:
    """Return the positions of each input that a state feeds, and of the output that it is.

    Raises:
        ModelRejected: there is no such input or output, or the two do not fit.

    """
    return [
        _checked(_position("input", inputs, given), _position("output", outputs, made))
        for given, made in state.items()
    ]


def _checked(given: tuple[int, TensorSpec], made: tuple[int, TensorSpec]) -> tuple[int, int]:
    (fed, takes), (source, gives) = given, made
    if [n for n in takes.shape if n != 1] != [n for n in gives.shape if n != 1]:
        raise ModelRejected(
            f"the state {gives.name!r} has shape {gives.shape}, which does not fit the input "
            f"{takes.name!r} of shape {takes.shape}"
        )
    plain = not (_is_quantized(takes) or _is_quantized(gives))
    if plain and takes.dtype != gives.dtype:
        raise ModelRejected(
            f"the state {gives.name!r} is {gives.dtype}, which does not fit the input "
            f"{takes.name!r} of {takes.dtype}"
        )
    return fed, source


def _position(role: str, specs: Sequence[TensorSpec], name: str) -> tuple[int, TensorSpec]:
    for position, spec in enumerate(specs):
        if spec.name == name:
            return position, spec
    known = ", ".join(f"{spec.name} {spec.shape}" for spec in specs)
    raise ModelRejected(f"there is no {role} {name!r} for a state: its {role}s are {known}")


def _is_quantized(spec: TensorSpec) -> bool:
    return bool(spec.scale) and np.dtype(spec.dtype).kind in "iu"


if __name__ == "__main__":
    main(int(sys.argv[1]))
