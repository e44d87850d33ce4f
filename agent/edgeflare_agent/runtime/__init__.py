"""Models under a TFLite runtime, each in a worker process of its own.

This is the one door between the host and the agent: the device's arm and the host's twin run
through it alike, so that a broken model or kernel kills a worker and nothing else. Importing it
loads neither numpy nor a runtime; only the worker does.
"""

from __future__ import annotations

from edgeflare_agent.runtime.answers import (
    Batch,
    Failure,
    FailureKind,
    ModelChanged,
    ModelRejected,
    TensorSpec,
    WorkerLost,
)
from edgeflare_agent.runtime.isolated import IsolatedModel
from edgeflare_agent.runtime.options import Delegate, Kernels, Options
from edgeflare_agent.runtime.packages import RuntimeInfo, RuntimeMissing, runtime_info
from edgeflare_agent.runtime.process import end_all_workers

__all__ = [
    "Batch",
    "Delegate",
    "Failure",
    "FailureKind",
    "IsolatedModel",
    "Kernels",
    "ModelChanged",
    "ModelRejected",
    "Options",
    "RuntimeInfo",
    "RuntimeMissing",
    "TensorSpec",
    "WorkerLost",
    "end_all_workers",
    "runtime_info",
]
