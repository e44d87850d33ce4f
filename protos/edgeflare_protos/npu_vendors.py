"""What LiteRT needs for the NPU of each vendor: host and agent have to agree on it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import Final

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
