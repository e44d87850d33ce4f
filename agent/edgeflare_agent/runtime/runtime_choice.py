"""The runtime that has a kernel set."""

from __future__ import annotations

import importlib

from edgeflare_agent.runtime.model_runtime import ModelRuntime
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels


def runtime_with(kernels: Kernels) -> ModelRuntime:
    """Return the runtime that has a kernel set; its package is imported when it is first asked for.

    A runtime is a package here, under the name that the table of kernel sets gives, with a module
    `runtime` that has it as `RUNTIME`.
    """
    module = importlib.import_module(f"{__package__}.{KERNEL_SETS[kernels].runtime}.runtime")
    runtime: ModelRuntime = module.RUNTIME
    return runtime
