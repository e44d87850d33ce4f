"""What an NPU needs: a vendor's own libraries, and both of LiteRT's for that vendor."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from edgeflare.devices.npu_check import check_npu, equipped_vendors

QUALCOMM = "ai-edge-litert-sdk-qualcomm"


def installed_files(package: Path, *names: str) -> None:
    for name in names:
        path = package / "vendors" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_vendor_needs_its_package_and_what_compiles_and_what_dispatches(tmp_path: Path) -> None:
    assert equipped_vendors(tmp_path, {QUALCOMM}) == ()
    installed_files(tmp_path, "qualcomm/compiler/libLiteRtCompilerPlugin_Qualcomm.so")
    assert equipped_vendors(tmp_path, {QUALCOMM}) == ()
    installed_files(tmp_path, "qualcomm/dispatch/libLiteRtDispatch_Qualcomm.so")
    assert equipped_vendors(tmp_path, {QUALCOMM}) == ("qualcomm",)
    # What is installed for one vendor is of no use for another.
    assert equipped_vendors(tmp_path, {"ai-edge-litert-sdk-intel"}) == ()


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_nothing_here_passes_for_an_npu() -> None:
    """The runtime's own package has Intel's dispatch library, which alone is none."""
    assert metadata.version("ai-edge-litert")
    check = check_npu()
    assert (check.found, check.needed) == ("", False)
    assert "\n" not in check.mend
    for vendor in ("intel", "qualcomm", "mediatek", "google-tensor"):
        assert vendor in check.mend
