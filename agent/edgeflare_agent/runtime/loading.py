"""Start a worker and let it load a model, as seen from its parent process."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path
from typing import Any

from edgeflare_agent.runtime.model_runtime import (
    ModelChanged,
    ModelRejected,
    ModelRuntime,
    Options,
    WorkerLost,
    runtime_with,
)
from edgeflare_agent.runtime.worker_messages import LoadingOrder, ReadyModel
from edgeflare_agent.runtime.worker_process import Death, WorkerProcess

# Loading a large model under QEMU takes tens of seconds; a runtime that hangs takes for ever.
# What is run to warm up comes on top.
_LOAD_SECONDS = 180.0


class DiedLoading(Exception):  # noqa: N818
    """The worker died before it was ready.

    Attributes:
        runtime: the runtime that it had imported by then, or None.

    """

    def __init__(self, runtime: str | None) -> None:
        super().__init__(runtime)
        self.runtime = runtime

    def blame(self, death: Death) -> ModelRejected | WorkerLost:
        """Return the error that names the cause: the model, or the installation."""
        if self.runtime is None:
            return WorkerLost(f"the worker process does not start: {death}")
        return ModelRejected(f"{self.runtime} crashed on loading it: {death}")


def loading_order(path: Path, options: Options, sha256: str | None = None) -> LoadingOrder:
    """Return the order by which a worker loads a model; the same bytes each time, or none.

    Args:
        path: the file.
        options: how to run it.
        sha256: what the file must hash to; None for what it hashes to now.

    Raises:
        ModelRejected: the file cannot be read, or cannot be a model.

    """
    digest = _sha256(path, sha256, runtime_with(options.kernels))
    return LoadingOrder(os.fspath(path.absolute()), digest, options)


def load(worker: WorkerProcess, order: LoadingOrder) -> ReadyModel:
    """Have a new worker load a model, and return what it says of it.

    Raises:
        ModelRejected: the runtime refuses it.
        ModelChanged: the file no longer hashes to what was ordered.
        WorkerLost: there is no runtime, or it does not get ready in time.
        DiedLoading: see there.

    """
    runtime = None
    try:
        worker.send(dataclasses.asdict(order))
        runtime = _expect(worker, "runtime", _LOAD_SECONDS)
        warming = order.options.warmup * order.options.input_timeout_seconds
        return ReadyModel.read(_expect(worker, "ready", _LOAD_SECONDS + warming))
    except (OSError, EOFError):
        raise DiedLoading(runtime) from None


def _expect(worker: WorkerProcess, key: str, seconds: float) -> Any:
    answer = worker.receive(seconds)
    if answer is None:
        raise WorkerLost(f"the worker process did not get ready within {seconds:.0f} s")
    if "no_runtime" in answer:
        raise WorkerLost(answer["no_runtime"])
    if "changed" in answer:
        raise ModelChanged(answer["changed"])
    if "rejected" in answer:
        raise ModelRejected(answer["rejected"])
    return answer[key]


def _sha256(path: Path, known: str | None, runtime: ModelRuntime) -> str:
    """Look at the head of a file, and return its hash, computed unless it is known."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            head = file.read(8)
            file.seek(0)
            while known is None and (block := file.read(1 << 20)):
                digest.update(block)
    except OSError as error:
        raise ModelRejected(f"cannot read {path}: {error.strerror}") from error
    if not head:
        raise ModelRejected("the file is empty")
    if (misfit := runtime.misfit(head)) is not None:
        raise ModelRejected(misfit)
    return known or digest.hexdigest()
