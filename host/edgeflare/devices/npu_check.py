"""What LiteRT needs for the NPU of each vendor, and whether this machine has it."""

from __future__ import annotations

import importlib.util
from collections.abc import Container
from pathlib import Path
from typing import Final

from edgeflare.devices.program_check import Check, is_installed

_SDKS: Final = {
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
package has the first of all vendors, and the second of Intel alone, both on x86-64 only."""

_INSTALL: Final = (
    "Intel: pip install ai-edge-litert-sdk-intel, and Intel's NPU driver;"
    " Qualcomm, MediaTek, Google Tensor: ai-edge-litert-sdk-qualcomm, -mediatek, -google-tensor,"
    " and the vendor's libLiteRtDispatch_*.so"
)


def check_npu() -> Check:
    """Look for a vendor's libraries; whether there is an NPU shows when a model is opened."""
    found = importlib.util.find_spec("ai_edge_litert")
    vendors: tuple[str, ...] = ()
    if found is not None and found.origin is not None:
        installed = {package for package in _SDKS.values() if is_installed(package)}
        vendors = equipped_vendors(Path(found.origin).parent, installed)
    return Check('NPU libraries, for kernels = "npu"', ", ".join(vendors), False, _INSTALL)


def equipped_vendors(litert: Path, installed: Container[str]) -> tuple[str, ...]:
    """Return the vendors all of whose libraries are there, by their folders' names.

    Args:
        litert: the folder of LiteRT's package.
        installed: the packages that are installed.

    """
    return tuple(
        vendor
        for vendor, package in _SDKS.items()
        if package in installed
        and all(
            any((litert / "vendors" / vendor / part).glob(pattern))
            for part, pattern in _NEEDED.items()
        )
    )
