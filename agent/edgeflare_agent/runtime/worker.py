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

import dataclasses
import hashlib
import os
import resource
import select
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare_agent.runtime.answers import ModelChanged, ModelRejected, TensorSpec
from edgeflare_agent.runtime.channel import Channel
from edgeflare_agent.runtime.clip import Clip
from edgeflare_agent.runtime.model_runtime import ModelRuntime, OpenedModel, RuntimeMissing
from edgeflare_agent.runtime.runtime_choice import runtime_with
from edgeflare_agent.runtime.session_options import Acceleration, Delegate, Invocation, Options
from edgeflare_agent.runtime.shared_memory import SharedBatch
from edgeflare_agent.runtime.warm_up import Called, warm_up


def main(shared_fd: int) -> None:
    """Serve one model until the parent closes the pipe."""
    # A crash is an answer here, no reason to leave a core file in the user's folder.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = _claim_pipes()
    order = channel.receive() or {}
    try:
        options = _options(order["options"])
        runtime = runtime_with(options.kernels)
        channel.send({"runtime": str(runtime.load())})
        model = _open(order, options, runtime)
        called: Called = Clip(model, options.invocation) if options.invocation.frames else model
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
    inputs, outputs = _record(called.inputs), _record(called.outputs)
    batch = SharedBatch(shared_fd, inputs.itemsize, outputs.itemsize)
    channel.send({"ready": _describe(model, called, inputs.itemsize, outputs.itemsize)})
    while command := channel.receive():
        batch.reserve(command["capacity"])
        _run(called, batch, range(command["first"], command["stop"]), channel)


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


def _options(fields: dict[str, Any]) -> Options:
    """Return the options that `dataclasses.asdict` and JSON have brought here."""
    delegate, invocation = fields["delegate"], dict(fields["invocation"])
    shapes = invocation.pop("shapes").items()
    return Options(
        **{
            **fields,
            "acceleration": Acceleration(**fields["acceleration"]),
            "delegate": None if delegate is None else Delegate(**delegate),
            "invocation": Invocation(
                shapes={name: tuple(shape) for name, shape in shapes}, **invocation
            ),
        }
    )


def _open(order: dict[str, Any], options: Options, runtime: ModelRuntime) -> OpenedModel:
    try:
        content = Path(order["model"]).read_bytes()
    except OSError as error:
        raise ModelRejected(f"cannot read the model: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != order["sha256"]:
        raise ModelChanged("the model file changed while it was in use")
    return runtime.open(content, options)


def _record(specs: tuple[TensorSpec, ...]) -> np.dtype[np.void]:
    """Return the dtype of one input or output: its tensors one behind the other, unpadded."""
    return np.dtype([(str(n), spec.dtype, spec.shape) for n, spec in enumerate(specs)])


def _describe(
    model: OpenedModel, called: Called, input_bytes: int, output_bytes: int
) -> dict[str, Any]:
    return {
        "inputs": [dataclasses.asdict(spec) for spec in called.inputs],
        "outputs": [dataclasses.asdict(spec) for spec in called.outputs],
        "input_bytes": input_bytes,
        "output_bytes": output_bytes,
        "operators": model.operators,
        "delegated_nodes": model.delegated_nodes,
        "external_nodes": model.external_nodes,
        "adapter": model.adapter,
        "arena_bytes": model.arena_bytes,
    }


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


if __name__ == "__main__":
    main(int(sys.argv[1]))
