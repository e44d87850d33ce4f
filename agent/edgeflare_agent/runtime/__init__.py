"""Models under a TFLite runtime, each in a worker process of its own.

This is the one door between the host and the agent: the device's arm and the host's twin run
through it alike, so that a broken model or kernel kills a worker and nothing else. Importing it
loads neither numpy nor a runtime; only the worker does. A name is imported when it is first asked
for, since a worker is a module of this package and needs nothing of its parent's side: that would
be a third of the time in which it starts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeflare_agent.runtime.model_process import IsolatedModel
    from edgeflare_agent.runtime.model_runtime import (
        Acceleration,
        Batch,
        Delegate,
        Failure,
        FailureKind,
        Invocation,
        ModelChanged,
        ModelRejected,
        Options,
        RuntimeInfo,
        RuntimeMissing,
        Step,
        TensorSpec,
        WorkerLost,
        offered_kernel_sets,
    )
    from edgeflare_agent.runtime.tflite.packages import runtime_info
    from edgeflare_agent.runtime.worker_process import (
        end_all_workers,
        fork_server_socket,
        take_fork_server,
    )

__all__ = [
    "Acceleration",
    "Batch",
    "Delegate",
    "Failure",
    "FailureKind",
    "Invocation",
    "IsolatedModel",
    "ModelChanged",
    "ModelRejected",
    "Options",
    "RuntimeInfo",
    "RuntimeMissing",
    "Step",
    "TensorSpec",
    "WorkerLost",
    "end_all_workers",
    "fork_server_socket",
    "offered_kernel_sets",
    "runtime_info",
    "take_fork_server",
]

_MODULES = (
    "model_process",
    "model_runtime",
    "tflite.packages",
    "worker_process",
)


def __getattr__(name: str) -> Any:
    """Import what the package offers from the module that defines it."""
    if name in __all__:
        for module in _MODULES:
            found = importlib.import_module(f"{__name__}.{module}")
            if getattr(found, name, None) is not None:
                globals()[name] = getattr(found, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
