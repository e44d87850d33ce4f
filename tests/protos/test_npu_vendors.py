"""What an NPU needs: a vendor's own libraries, and both of LiteRT's for that vendor."""

from __future__ import annotations

from pathlib import Path

from edgeflare_protos.npu_vendors import equipped_vendors

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
