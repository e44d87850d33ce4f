"""The runtime that has a kernel set, and the kernel sets that are here."""

from __future__ import annotations

import importlib

from edgeflare_agent.runtime.model_runtime import ModelRuntime
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels


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
