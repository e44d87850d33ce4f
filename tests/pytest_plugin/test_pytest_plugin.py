"""The pytest plugin, as a user's own pytest loads it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATE = """
from edgeflare.pytest_plugin import assert_decides_alike

PAIR = {pair!r}

def test_gate(edgeflare):
    result = edgeflare.search(PAIR, limit=6, total_queries=900)
    assert_decides_alike(result{allowed})

def test_kernels(edgeflare):
    result = edgeflare.search(PAIR, limit=2, total_queries=20, find="kernel")
    assert_decides_alike(result, fail_on="kernel", allow=1.0)
    assert edgeflare.search(PAIR, limit=2, total_queries=20).path != result.path
"""


def run_pytest(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "edgeflare.pytest_plugin"]
    return subprocess.run(
        [*command, "--rootdir", folder, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def write_gate(folder: Path, allowed: str = "") -> None:
    pair = str(ROOT / "examples" / "fashion_lenet4")
    (folder / "test_gate.py").write_text(GATE.format(pair=pair, allowed=allowed))


def test_a_failure_shows_the_worst_finding(tmp_path: Path) -> None:
    write_gate(tmp_path)

    said = run_pytest(tmp_path, "--edgeflare-device", "emulated-xnnpack", "--edgeflare-out", "runs")

    assert said.returncode == 1
    assert "1 failed, 1 passed" in said.stdout
    document = json.loads((tmp_path / "runs" / "test_gate" / "run.json").read_bytes())
    worst = max(document["findings"], key=lambda entry: entry["strength"])
    assert [device["name"] for device in document["devices"]] == ["emulated-xnnpack"]
    assert "fashion_lenet4 decides differently on emulated-xnnpack: 100.0% of 6" in said.stdout
    assert f"the worst: seed {worst['seed_id']} after {worst['queries']} queries" in said.stdout
    for arm, label in worst["labels"].items():
        share = worst["probabilities"][arm][label]
        assert f"{arm:<9} {document['classes'][label]} ({share:.1%})" in said.stdout
    assert f"strength {worst['strength']:.3f}" in said.stdout
    assert str(Path("runs") / "test_gate" / worst["image"]) in said.stdout
    assert "pytest_plugin.py" not in said.stdout  # the user's test failed, not the plugin


def test_what_is_allowed_passes(tmp_path: Path) -> None:
    write_gate(tmp_path, ", allow=1.0")

    said = run_pytest(tmp_path)

    assert said.returncode == 0, said.stdout
    assert "2 passed" in said.stdout


def test_a_wrong_pair_is_the_plugins_own_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text(
        "def test_wrong(edgeflare):\n    edgeflare.search('nowhere')\n"
    )

    said = run_pytest(tmp_path, "--tb=line")

    assert said.returncode == 1
    assert "there is no pair folder nowhere" in said.stdout


def test_it_is_light_where_it_is_not_used() -> None:
    code = (
        "import sys, edgeflare.pytest_plugin;"
        "print([name for name in ('numpy', 'grpc', 'cv2', 'typer') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


@pytest.mark.slow
def test_the_example_passes_on_a_device_whose_kernels_are_the_twins(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, ROOT / "examples" / "pytest", "--edgeflare-device=emulated-xnnpack")

    assert said.returncode == 0, said.stdout
    assert "2 passed" in said.stdout
