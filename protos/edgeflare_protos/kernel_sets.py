"""The kernel sets: what people call them, what the wire does, and what the runtime does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeGuard

Kernels = Literal["xnnpack", "builtin", "reference"]
"""The name of a kernel set, as profiles, ensembles, runs and reports have it."""


@dataclass(frozen=True)
class KernelSet:
    """The kernels that run the operators of a model.

    Attributes:
        number: in `OpenSessionRequest.kernels`.
        runtime: the runtime that has it, by the name of its package in the agent.
        title: for sentences, behind "the".
        op_resolver: of the TFLite runtimes, a member of `OpResolverType`.

    """

    number: int
    runtime: str
    title: str
    op_resolver: str


KERNEL_SETS: Final[Mapping[Kernels, KernelSet]] = {
    # The delegate where it takes the operator, optimized built-in kernels elsewhere.
    "xnnpack": KernelSet(1, "tflite", "XNNPACK delegate", "AUTO"),
    "builtin": KernelSet(2, "tflite", "built-in kernels", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    # BUILTIN_REF applies no default delegate either.
    "reference": KernelSet(3, "tflite", "reference kernels", "BUILTIN_REF"),
}
"""All of them by name, that which a runtime takes by itself first."""


def is_kernel_set(name: str) -> TypeGuard[Kernels]:
    """Tell whether there is a kernel set of this name."""
    return name in KERNEL_SETS
