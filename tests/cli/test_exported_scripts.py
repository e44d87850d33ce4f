"""The scripts of exports, of those tasks and outputs that no other test of the commands exports."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detector_pairs import write_detector_pair
from reproductions import reproduce, unpacked
from small_pairs import write_clip_pair, write_score_pair

Call = Callable[..., Any]

MOST_LINES = 120
"""Of each file: what somebody who gets a script from a stranger reads before running it."""

SMALL = ("--first", "6", "--max-queries", "200", "--shrink", "0", "--fail-on", "none")


def write_frames_pair(folder: Path) -> Path:
    """Write a classifier of clips, each frame of which is compared by itself."""
    pair = write_clip_pair(folder)
    (pair / "pair.toml").write_text(
        (pair / "pair.toml").read_text() + '[task]\nname = "classification"\nframes = "any"\n'
    )
    return pair


def write_threshold_pair(folder: Path) -> Path:
    """Write a model of one score, and its threshold."""
    array = '[inputs.inputs]\ndomain = "array"\nlowest = -4.0\nhighest = 4.0\n'
    return write_score_pair(folder, f'{array}[task]\nname = "threshold"\nthreshold = 0.1\n')


WRITERS: dict[str, Callable[[Path], Path]] = {
    "classes of a clip": write_clip_pair,
    "classes of each frame": write_frames_pair,
    "a threshold": write_threshold_pair,
    "objects": lambda folder: write_detector_pair(folder, "objects"),
    "postprocess": lambda folder: write_detector_pair(folder, "postprocess"),
}


@pytest.fixture(scope="module", params=WRITERS)
def exported(
    request: pytest.FixtureRequest, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The first finding of a search, exported and unpacked."""
    folder = tmp_path_factory.mktemp("exported")
    pair = WRITERS[request.param](folder / "pair")
    said = call("search", pair, *SMALL, "--out", folder / "run")
    assert said.code == 0, said.err
    seed_id = json.loads((folder / "run" / "run.json").read_bytes())["findings"][0]["seed_id"]
    said = call("export", folder / "run", seed_id, "--out", folder / "one.zip")
    assert said.code == 0, said.err
    return unpacked(folder / "one.zip", folder / "one")


@pytest.mark.slow
def test_a_finding_deviates_by_its_script_alone(exported: Path) -> None:
    shown = reproduce(exported)
    assert shown.returncode == 0, shown.stderr
    said = shown.stdout.splitlines()
    assert said[-1] == "It deviates here too."
    for line in said[:-1]:
        here, found = re.findall(r"(?:: |, )(\S.*?) (?:here|when it was found)", line)
        assert numbers(here) == pytest.approx(numbers(found), rel=1e-4)


@pytest.mark.slow
def test_equal_models_do_not_deviate(exported: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(exported, tmp_path / "one")
    (folder / "original.tflite").write_bytes((folder / "compressed.tflite").read_bytes())
    shown = reproduce(folder)
    assert shown.returncode == 1, shown.stderr
    assert "It does not deviate here." in shown.stdout


@pytest.mark.slow
def test_both_files_are_short_and_need_nothing_but_numpy_and_a_runtime(exported: Path) -> None:
    assert {path.name for path in exported.glob("*.py")} == {"reproduce.py", "outputs.py"}
    for path in exported.glob("*.py"):
        script = path.read_text()
        assert len(script.splitlines()) < MOST_LINES
        program = ast.parse(script)
        assert ast.get_docstring(program)
        imported = {
            name.split(".")[0]
            for node in ast.walk(program)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
        }
        ours = {"numpy", "ai_edge_litert", "tflite_runtime"}
        assert imported - sys.stdlib_module_names <= ours


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]
