"""Faults before and behind the models of the examples, on the device's path: no kernel is blamed.

The functions are that of docs/detection.md with a fault each.
"""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from called_commands import call_here, completed, document_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "detection.md").read_text(encoding="utf-8")
DECODE = re.findall(r"^```python \S*decode\.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
DEVICE = ("--device", "emulated-xnnpack")

SCORE_STEP = 36 / 255
"""Of the scores of the compressed BlazeFace, which are logits from -30 to 6 in 8 bits."""


class Planted(NamedTuple):
    """A fault: the example, what its device has of its own, and the verdict that names the stage.

    Attributes:
        queries: that a search may spend on a seed; seeds deviate by gross faults.
        fault: what is replaced in the function, and by what; empty where there is no function.

    """

    example: str
    own: str
    verdict: str = "output-stage"
    queries: int = 1
    fault: tuple[str, str] = ("", "")


BY_FUNCTION = '[device.task]\ndecoding = "faulty.py:decode"\ncells = []\n'

PLANTED = {
    "anchors swapped": Planted("face_detection", "[device.task]\ncells = [[8, 6], [16, 2]]\n"),
    "threshold off by one step": Planted(
        "face_detection",
        f"[device.task]\nthreshold = {1 / (1 + math.exp(-SCORE_STEP)):.4f}\n",
        queries=150,
    ),
    "classes shifted by one": Planted(
        "face_detection", BY_FUNCTION, fault=("scores[i], 0)", "scores[i], 1)")
    ),
    "coordinates in another order": Planted(
        "face_detection",
        BY_FUNCTION,
        fault=(
            "*corners[i], *(corners + sides)[i]",
            "*corners[i, ::-1], *(corners + sides)[i, ::-1]",
        ),
    ),
    "front end with another window": Planted(
        "spoken_words",
        "[device.inputs.sound]\nfront_end.frame_length = 200\n",
        "input-stage",
        queries=60,
    ),
}


def pair_in(folder: Path, example: str) -> Path:
    return Path(shutil.copytree(ROOT / "examples" / example, folder / example))


@pytest.fixture(scope="module", params=PLANTED)
def planted(request: pytest.FixtureRequest) -> Planted:
    return PLANTED[request.param]


@pytest.fixture(scope="module")
def pair(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pair, without an original for a detector: to compare its layers takes long."""
    folder = pair_in(tmp_path_factory.mktemp("pair"), planted.example)
    text = (folder / "pair.toml").read_text()
    if planted.example == "face_detection":
        text = re.sub("^original = .*$", "", text, flags=re.MULTILINE)
    (folder / "pair.toml").write_text(f"{text}\n{planted.own}")
    sound, faulty = planted.fault
    assert sound in DECODE
    (folder / "faulty.py").write_text(DECODE.replace(sound, faulty) if sound else DECODE)
    return folder


@pytest.fixture(scope="module")
def explained(pair: Path, planted: Planted) -> list[dict[str, Any]]:
    run = pair.parent / "run"
    bounds = ("--first", "2", "--max-queries", str(planted.queries), "--shrink", "0")
    # Between two neighbouring thresholds lies one value of a score in 8 bits, which is a tie.
    find = ("--find", "kernel", "--ties", "include", "--fail-on", "none")
    completed("search", pair, "--trust", *DEVICE, *find, *bounds, "--out", run)
    function = ("--function", pair / "faulty.py:decode") if planted.fault[0] else ()
    document = document_of(run)
    found = [*document["deviating_seeds"], *document["findings"]]
    completed("explain", run, found[0]["seed_id"], *function)
    return list(document_of(run, "explain.json")["findings"].values())


def test_explain_names_the_stage_and_never_kernels(
    explained: list[dict[str, Any]], planted: Planted
) -> None:
    assert explained
    assert {one["verdict"]["name"] for one in explained} == {planted.verdict}
    assert all(one["verdict"]["which"] is None for one in explained)


def test_the_dry_run_names_the_stage(pair: Path, planted: Planted) -> None:
    options = (*DEVICE, "--find", "kernel", "--first", "2")
    dry_run = call_here("search", pair, "--trust", *options, "--dry-run")
    said = " ".join(dry_run.out.split())
    _, _, inputs = said.partition("input stage: the model's inputs on the device ")
    if planted.verdict == "input-stage":
        assert float(inputs.split("differ from the pair's by at most ")[1].split()[0]) > 0
    else:
        assert inputs.startswith("are those of the pair")
    gross = planted.verdict == "output-stage" and planted.queries == 1
    assert (" changes the decision on 0 of " in said) == (not gross)


def test_a_sound_function_gives_the_findings_of_the_named_decoding(tmp_path: Path) -> None:
    folder = pair_in(tmp_path, "face_detection")
    (folder / "decode.py").write_text(DECODE)
    text = (folder / "pair.toml").read_text()
    text, _, _ = text.partition("[task]")
    keys = 'name = "detection"\ndecoding = "decode.py:decode"\nthreshold = 0.5\noverlap = 0.5\n'
    (folder / "pair.toml").write_text(f"{text}[task]\n{keys}")
    # A search at random depends on decisions alone, and not on margins of what is no object; ties
    # with suppressed boxes are known to the named decoding alone.
    bounds = ["--strategy", "random", "--first", "3", "--max-queries", "60", "--shrink", "0"]
    bounds += ["--ties", "include"]
    findings: list[list[tuple[str, str]]] = []
    for pair in (ROOT / "examples" / "face_detection", folder):
        out = tmp_path / f"run-{len(findings)}"
        completed("search", pair, "--trust", *bounds, "--fail-on", "none", "--out", out)
        found = document_of(out)["findings"]
        findings.append([(one["sha256"], one["kind"]) for one in found])
    assert findings[0] == findings[1]
    assert findings[0]
