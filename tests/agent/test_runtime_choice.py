"""The runtime of each kernel set: found by name, imported only when a model is opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare_agent.runtime.answers import ModelRejected
from edgeflare_agent.runtime.model_runtime import RuntimeInfo, RuntimeMissing
from edgeflare_agent.runtime.runtime_choice import offered_kernel_sets, runtime_with
from edgeflare_agent.runtime.session_options import Options
from edgeflare_agent.runtime.tflite.rehearsal import MODEL
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels

CHOOSE = """
import sys
from edgeflare_agent.runtime.runtime_choice import runtime_with
said = runtime_with("builtin").misfit(b"PK\\3\\4\\0\\0\\0\\0")
assert said and "TFL3" in said, said
print(*sorted({"numpy", "ai_edge_litert", "tflite_runtime"} & set(sys.modules)))
"""


@pytest.mark.parametrize("kernels", [*TFLITE_KERNEL_SETS, "compiled-cpu", "micro"])
def test_the_runtime_of_each_kernel_set_says_which_it_is_and_opens_a_model(
    kernels: Kernels,
) -> None:
    runtime = runtime_with(kernels)
    assert runtime.misfit(MODEL[:8]) is None
    assert isinstance(runtime.load(), RuntimeInfo)
    model = runtime.open(MODEL, Options(kernels))
    assert model.operators == ("ABS",)


def test_a_device_offers_what_is_installed_on_it() -> None:
    offered = offered_kernel_sets()
    assert offered == tuple(name for name in KERNEL_SETS if name in offered)
    assert {*TFLITE_KERNEL_SETS, "compiled-cpu", "gpu", "micro"} <= set(offered)
    # No vendor's libraries are installed, and nothing stands in for an NPU.
    assert "npu" not in offered
    with pytest.raises(ModelRejected, match="finds no NPU: install its vendor's"):
        runtime_with("npu").open(MODEL, Options("npu"))


@pytest.mark.parametrize(
    ("version", "offered"), [("2.1.0", False), ("2.3.0.dev20261001", True), ("10.0", True)]
)
def test_compiled_models_are_offered_from_the_first_version_with_all_their_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str, offered: bool
) -> None:
    install(tmp_path, "ai-edge-litert", version)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ({"compiled-cpu", "gpu"} <= set(offered_kernel_sets())) == offered
    if not offered:
        assert set(offered_kernel_sets()).isdisjoint({"compiled-cpu", "gpu", "npu"})
        with pytest.raises(RuntimeMissing, match=r"pip install 'ai-edge-litert>=2\.3'"):
            runtime_with("gpu").load()


@pytest.mark.parametrize(
    ("vendor", "offered"), [("intel", True), ("qualcomm", False), ("mediatek", False)]
)
def test_an_npu_is_offered_where_all_that_it_needs_is_of_one_vendor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vendor: str, offered: bool
) -> None:
    """The runtime's package has compiler plugins of all vendors, and Intel's dispatch library."""
    install(tmp_path, f"ai-edge-litert-sdk-{vendor}", "0.1.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert ("npu" in offered_kernel_sets()) == offered


def install(folder: Path, distribution: str, version: str) -> None:
    """Write what is known of a package that is installed; nothing else of it is there."""
    name = distribution.replace("-", "_")
    about = folder / f"{name}-{version}.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


def test_whether_a_file_fits_is_known_without_the_runtime() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHOOSE], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"
