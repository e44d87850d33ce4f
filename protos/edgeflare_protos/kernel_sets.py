"""The kernel sets and their runtimes: all that host, wire and agent have to know of each.

A row says what a kernel set is called and what it has; nothing else names one for its own sake.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeGuard, get_args

TFLiteKernels = Literal["xnnpack", "builtin", "reference"]
"""The name of a kernel set of TFLite's interpreter, which every host has."""

Kernels = Literal[TFLiteKernels, "compiled-cpu", "gpu", "npu", "micro"]
"""The name of a kernel set, as profiles, ensembles, runs and reports have it."""


@dataclass(frozen=True)
class KernelSet:
    """The kernels that run the operators of a model.

    Attributes:
        number: the value of `OpenSessionRequest.kernels`, which no other kernel set ever gets.
        runtime: the runtime that has it, by the name of its package in the agent.
        title: the words for it in a sentence, behind "the".
        own_name: what that runtime calls it: of `tflite` a member of `OpResolverType`, of
            `compiled` one of `HardwareAccelerator`; empty for the only one of a runtime.
        accelerator: whether it is of an accelerator beside the CPU, which may not take all nodes,
            and computes in a precision of its own.
        threads: whether it computes on as many threads as it is told.
        steps: whether an open model takes other shapes, and is run by another signature, between
            two invocations.

    """

    number: int
    runtime: str
    title: str
    own_name: str = ""
    accelerator: bool = False
    threads: bool = True
    steps: bool = False


@dataclass(frozen=True)
class RuntimePackage:
    """A package without which a runtime is not there, beside that of TFLite's interpreter.

    Attributes:
        distribution: the name of the package on the package index.
        module: the name by which Python imports it.
        extra: the extra of EdgeFlare that brings it.
        remark: where it can be installed, in brackets; empty for everywhere.

    """

    distribution: str
    module: str
    extra: str
    remark: str = ""

    @property
    def mend(self) -> str:
        """The command that installs it."""
        return f"pip install 'edgeflare[{self.extra}]'"


RUNTIME_PACKAGES: Final[Mapping[str, RuntimePackage]] = {
    "micro": RuntimePackage("tflite-micro", "tflite_micro", "micro", "(x86-64 only)"),
}
"""The package of each runtime that takes one of its own, by the runtime's name."""

KERNEL_SETS: Final[Mapping[Kernels, KernelSet]] = {
    # The delegate where it takes the operator, optimized built-in kernels elsewhere.
    "xnnpack": KernelSet(1, "tflite", "XNNPACK delegate", "AUTO", steps=True),
    "builtin": KernelSet(
        2, "tflite", "built-in kernels", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", steps=True
    ),
    # BUILTIN_REF applies no default delegate either.
    "reference": KernelSet(3, "tflite", "reference kernels", "BUILTIN_REF", steps=True),
    "compiled-cpu": KernelSet(4, "compiled", "compiled model's CPU kernels", "CPU", steps=True),
    "gpu": KernelSet(
        5, "compiled", "GPU accelerator", "GPU", accelerator=True, threads=False, steps=True
    ),
    "npu": KernelSet(6, "compiled", "NPU accelerator", "NPU", accelerator=True, threads=False),
    "micro": KernelSet(7, "micro", "TFLite Micro kernels", threads=False),
}
"""All of them by name, that which a runtime takes by itself first."""

FIRST_COMPILED: Final = (2, 1, 5)
"""First version of ai-edge-litert whose compiled models are told of threads and precision."""

TFLITE_KERNEL_SETS: Final[tuple[TFLiteKernels, ...]] = get_args(TFLiteKernels)
"""Those of TFLite's interpreter, which every host has."""


def is_kernel_set(name: str) -> TypeGuard[Kernels]:
    """Tell whether there is a kernel set of this name."""
    return name in KERNEL_SETS


def accelerated(kernels: Kernels) -> bool:
    """Tell whether a kernel set is of an accelerator beside the CPU; it may not take all nodes."""
    return KERNEL_SETS[kernels].accelerator


def runtime_package(kernels: Kernels) -> RuntimePackage | None:
    """Return the package that a kernel set needs; None where it is that of TFLite's interpreter."""
    return RUNTIME_PACKAGES.get(KERNEL_SETS[kernels].runtime)


def is_tflite_kernel_set(name: str) -> TypeGuard[TFLiteKernels]:
    """Tell whether TFLite's interpreter has a kernel set of this name."""
    return name in TFLITE_KERNEL_SETS


VENDOR_SDKS: Final[Mapping[str, str]] = {
    "intel_openvino": "ai-edge-litert-sdk-intel",
    "qualcomm": "ai-edge-litert-sdk-qualcomm",
    "mediatek": "ai-edge-litert-sdk-mediatek",
    "google_tensor": "ai-edge-litert-sdk-google-tensor",
}
"""The package with each vendor's own libraries, by the vendor's folder in LiteRT's package."""

_NEEDED: Final = {
    "compiler": "libLiteRtCompilerPlugin_*.so",
    "dispatch": "libLiteRtDispatch_*.so",
}
"""What LiteRT looks for in that folder: what compiles a model, and what hands it to the NPU. The
package has the first of all vendors, and the second of Intel alone, both on x86-64 only; so neither
says anything of an NPU without the vendor's own libraries."""


def equipped_vendors(litert: Path, installed: Container[str]) -> tuple[str, ...]:
    """Return the vendors all of whose libraries are there, by their folders' names.

    Args:
        litert: the folder of LiteRT's package.
        installed: the packages that are installed.

    """
    return tuple(
        vendor
        for vendor, package in VENDOR_SDKS.items()
        if package in installed
        and all(
            any((litert / "vendors" / vendor / part).glob(pattern))
            for part, pattern in _NEEDED.items()
        )
    )
