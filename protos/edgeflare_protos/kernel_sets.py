"""The kernel sets: what people, the wire and the runtime call them, and what an NPU's need."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeGuard

Kernels = Literal["xnnpack", "builtin", "reference", "compiled-cpu", "gpu", "npu", "micro"]
"""The name of a kernel set, as profiles, ensembles, runs and reports have it."""


@dataclass(frozen=True)
class KernelSet:
    """The kernels that run the operators of a model.

    Attributes:
        number: in `OpenSessionRequest.kernels`.
        runtime: the runtime that has it, by the name of its package in the agent.
        title: for sentences, behind "the".
        own_name: what that runtime calls it: of `tflite` a member of `OpResolverType`, of
            `compiled` one of `HardwareAccelerator`; `micro` has no name for its only one.

    """

    number: int
    runtime: str
    title: str
    own_name: str


KERNEL_SETS: Final[Mapping[Kernels, KernelSet]] = {
    # The delegate where it takes the operator, optimized built-in kernels elsewhere.
    "xnnpack": KernelSet(1, "tflite", "XNNPACK delegate", "AUTO"),
    "builtin": KernelSet(2, "tflite", "built-in kernels", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"),
    # BUILTIN_REF applies no default delegate either.
    "reference": KernelSet(3, "tflite", "reference kernels", "BUILTIN_REF"),
    "compiled-cpu": KernelSet(4, "compiled", "compiled model's CPU kernels", "CPU"),
    "gpu": KernelSet(5, "compiled", "GPU accelerator", "GPU"),
    "npu": KernelSet(6, "compiled", "NPU accelerator", "NPU"),
    "micro": KernelSet(7, "micro", "TFLite Micro kernels", ""),
}
"""All of them by name, that which a runtime takes by itself first."""

TFLITE_KERNEL_SETS: Final[tuple[Kernels, ...]] = tuple(
    name for name, known in KERNEL_SETS.items() if known.runtime == "tflite"
)
"""Those of TFLite's interpreter, which every host has."""


def is_kernel_set(name: str) -> TypeGuard[Kernels]:
    """Tell whether there is a kernel set of this name."""
    return name in KERNEL_SETS


def accelerated(kernels: Kernels) -> bool:
    """Tell whether a kernel set is of an accelerator beside the CPU; it may not take all nodes."""
    return kernels in ("gpu", "npu")


def is_tflite_kernel_set(name: str) -> TypeGuard[Kernels]:
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
