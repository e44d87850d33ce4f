"""Whether this machine has what LiteRT needs for the NPU of a vendor."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from edgeflare.devices.program_check import Check, is_installed
from edgeflare_protos.npu_vendors import VENDOR_SDKS, equipped_vendors

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
        installed = {package for package in VENDOR_SDKS.values() if is_installed(package)}
        vendors = equipped_vendors(Path(found.origin).parent, installed)
    return Check('NPU libraries, for kernels = "npu"', ", ".join(vendors), False, _INSTALL)
