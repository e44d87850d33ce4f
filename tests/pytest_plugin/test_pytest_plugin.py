"""The pytest plugin, as a user's own pytest loads it."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from documents import run_document
from edgeflare.api.search import SearchResult
from edgeflare.errors import UserError
from edgeflare.pytest_plugin import EdgeFlare, assert_decides_alike
from edgeflare.report.entry_words import worst_first
from edgeflare.run.run_document import from_json, to_json
from small_pairs import write_score_pair

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
Gate = tuple[Path, subprocess.CompletedProcess[str]]

EXAMPLE = str(ROOT / "examples" / "fashion_lenet4")
GATE = """
from edgeflare.pytest_plugin import assert_decides_alike

PAIR = {pair!r}

def test_gate(edgeflare):
    result = edgeflare.search(PAIR, first=2, total_queries=60, within=None, shrink=0)
    assert_decides_alike(result, allow=1.0)
    assert_decides_alike(result)

def test_kernels(edgeflare):
    result = edgeflare.search(PAIR, first=2, total_queries=20, find="kernel", shrink=0)
    assert_decides_alike(result, fail_on="kernel", allow=1.0)
    assert edgeflare.search(PAIR, first=2, total_queries=20, shrink=0).path != result.path

def test_hurry(edgeflare):
    result = edgeflare.search(PAIR, first=2, time_limit=0.001)
    assert_decides_alike(result, allow_unfinished=True)
    assert_decides_alike(result)

def test_pair(edgeflare):
    edgeflare.search("nowhere")

def test_device(edgeflare):
    edgeflare.open_device("emulated-nothing")
"""


NO_HYPOTHESIS = ("-p", "no:hypothesispytest")
"""For tests that have none of its: its plugin takes longer to end than pytest to start."""


def run_pytest(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "edgeflare.pytest_plugin"]
    return subprocess.run(
        [*command, *NO_HYPOTHESIS, "--rootdir", folder, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    """A folder in which pytest ran tests with gates, and what it said."""
    folder = tmp_path_factory.mktemp("gate")
    (folder / "test_gate.py").write_text(GATE.format(pair=EXAMPLE))
    (folder / "test_others.py").write_text(gate_of_others(folder))
    for name, parts in (("a-b", ["x/y", "x-y"]), ("a_b", ["x-y"])):
        (folder / f"test_{name}.py").write_text(
            f"import pytest\n@pytest.mark.parametrize('part', {parts})\n"
            "def test_gate(edgeflare, part):\n"
            f"    edgeflare.search({EXAMPLE!r}, first=1, total_queries=1)\n"
        )
    device = ("--edgeflare-device", "emulated-xnnpack")
    return folder, run_pytest(folder, *device, "--edgeflare-out", "runs")


def test_a_failure_shows_the_worst_finding(gate: Gate) -> None:
    folder, said = gate
    assert said.returncode == 1
    assert "7 failed, 4 passed" in said.stdout
    (run,) = (folder / "runs").glob("test_gate.py--test_gate-????????")
    document = json.loads((run / "run.json").read_bytes())
    worst = to_json(worst_first(from_json(document).findings)[0])
    assert f", {worst['harm'].replace('-', ' ')}, strength" in said.stdout
    assert [device["name"] for device in document["devices"]] == ["emulated-xnnpack"]
    assert "fashion_lenet4 decides differently on emulated-xnnpack: 100.0% of 2" in said.stdout
    assert f"the worst: seed {worst['seed_id']} after {worst['queries']} queries" in said.stdout
    for arm, label in worst["labels"].items():
        share = worst["probabilities"][arm][label]
        assert f"{arm:<9} {document['classes'][label]} ({share:.1%})" in said.stdout
    assert f"strength {worst['strength']:.3f}" in said.stdout
    assert str(Path("runs") / run.name / worst["file"]) in said.stdout


def test_a_search_that_was_cut_short_fails_unless_it_is_allowed(gate: Gate) -> None:
    words = "the search was stopped before its end (time-limit), with 0 of 2 seeds done"
    assert words in gate[1].stdout


def test_what_is_wrong_is_shown_where_the_user_wrote_it_not_in_our_files(gate: Gate) -> None:
    said = gate[1].stdout
    assert "E       edgeflare.errors.UserError: there is no pair folder nowhere" in said
    assert len(re.findall(r"^test_gate\.py:\d+: UserError$", said, re.MULTILINE)) == 2
    for ours in ("pytest_plugin.py", "models/pair.py", "devices/profile"):
        assert ours not in said


def test_tests_of_one_name_keep_their_own_runs(gate: Gate) -> None:
    runs = [run.parent.name for run in (gate[0] / "runs").glob("test_a*/run.json")]
    assert len(runs) == 3, gate[1].stdout


ENTRY: dict[str, Any] = {
    "seed_id": 1,
    "kind": "deviation",
    "cause": "compression",
    "strength": 0.5,
    "queries": 9,
    "labels": {"original": 0, "device": 1},
    "probabilities": {"original": [0.9, 0.1], "device": [0.3, 0.7]},
    "distortion": {"l2": 1.0},
    "file": "findings/1.png",
}
CRASH = {
    **ENTRY,
    "seed_id": 2,
    "kind": "crash",
    "cause": "mixed",
    "strength": None,
    "labels": {"original": 0, "device": None},
}


@pytest.mark.parametrize("stopped_by", [None, "time-limit"])
def test_no_name_reaches_the_terminal_with_its_commands(
    tmp_path: Path, stopped_by: str | None
) -> None:
    document = run_document(
        pair={"name": "pair\x1b[2J"},
        devices=[{"name": "board\x1b[2J"}],
        classes=["one\x1b[2J", "two"],
        totals={"seeds": 4, "searched": 1},
        findings=[] if stopped_by else [ENTRY],
        stopped_by=stopped_by,
    )
    with pytest.raises(pytest.fail.Exception) as failed:
        assert_decides_alike(SearchResult(document, tmp_path))
    assert "pair" in str(failed.value)
    assert "\x1b" not in str(failed.value)


@pytest.mark.parametrize("fail_on", ["any", "kernel"])
def test_a_crash_is_the_worst_and_counts_for_the_kernels(
    tmp_path: Path, fail_on: Literal["any", "kernel"]
) -> None:
    document = run_document(totals={"seeds": 4}, findings=[ENTRY, CRASH])
    result = SearchResult(document, tmp_path)
    assert [entry.seed_id for entry in result.deviations] == [2, 1]
    with pytest.raises(pytest.fail.Exception, match="the worst: seed 2 after 9 queries") as failed:
        assert_decides_alike(result, fail_on=fail_on)
    assert "no answer (crash)" in str(failed.value)
    assert "cause: crash;" in str(failed.value)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"limit": 0}, "limit=0: expected a whole number of 1 or more"),
        ({"limit": 1.5}, "limit=1.5: expected a whole number of 1 or more"),
        ({"total_queries": 1, "limit": 2}, "total_queries=1 is less than one for each of 2 seeds"),
        ({"time_limit": math.nan}, "time_limit=nan: expected a number of 0.001 or more"),
        ({"time_limit": "1 h"}, "time_limit='1 h': expected a number of 0.001 or more"),
        ({"time_limit": True}, "time_limit=True: expected a number of 0.001 or more"),
        ({"min_strength": 2}, "min_strength=2: expected a number from 0 to 1"),
        ({"within": -1}, "within=-1: expected a number of 0 or more"),
        ({"rng_seed": -1}, "rng_seed=-1: expected a whole number of 0 or more"),
        ({"find": "kernels"}, "find='kernels': expected one of any, compression, kernel"),
    ],
)
def test_an_argument_out_of_its_range_is_named(
    tmp_path: Path, argument: dict[str, Any], words: str
) -> None:
    gate = EdgeFlare(["emulated-xnnpack"], tmp_path / "run")
    with pytest.raises(UserError) as refused:
        gate.search(ROOT / "examples" / "fashion_lenet4", **argument)
    assert str(refused.value).startswith(words)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"allow": 5}, "allow=5: expected a number from 0 to 1"),
        ({"fail_on": "none"}, "fail_on='none': expected one of any, harmful, kernel"),
    ],
)
def test_a_gate_that_could_not_fail_is_refused(
    tmp_path: Path, argument: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        assert_decides_alike(SearchResult(run_document(), tmp_path), **argument)


def test_a_device_that_there_is_not_is_refused_once_before_any_test(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, "--edgeflare-device", "emulated-xnnpak")
    assert said.returncode == pytest.ExitCode.USAGE_ERROR
    assert said.stdout == ""
    (line,) = said.stderr.strip().splitlines()
    assert line.startswith("ERROR: ")
    assert "emulated-xnnpak" in line


def test_a_device_can_be_opened(tmp_path: Path) -> None:
    gate = EdgeFlare(["emulated-reference", "emulated-builtin"], tmp_path / "run")
    model = ROOT / "examples" / "fashion_lenet4" / "compressed.tflite"
    for name, kernels in ((None, "reference"), ("emulated-builtin", "builtin")):
        with gate.open_device(name) as device:
            assert device.provenance.kernels == kernels
            session = device.open(model)
            shape = session.signature.input.shape
            inputs = np.zeros(shape, session.signature.input.dtype)
            batch = session.submit(inputs).result()
            assert batch.outputs.shape[-1] == 10


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


def test_what_is_harmless_by_its_labels_passes(tmp_path: Path) -> None:
    entry: dict[str, Any] = {"kind": "deviation", "cause": "compression", "harm": "device-right"}
    entry |= {"distortion": {"l2": 5.0}}
    harm = {"deviating_seeds": {}, "findings": {"device-right": 1}}
    document = run_document(findings=[entry], totals={"seeds": 4, "harm": harm})
    assert_decides_alike(SearchResult(document, tmp_path), fail_on="harmful")
    unlabelled = run_document(findings=[entry], totals={"seeds": 4})
    with pytest.raises(UserError, match='fail_on="harmful": the seeds have no labels'):
        assert_decides_alike(SearchResult(unlabelled, tmp_path), fail_on="harmful")


def test_code_of_a_pair_and_profiles_of_the_folder_take_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "net.py").write_text(
        "import numpy as np\nopen('executed', 'w').close()\n"
        "def predict(image):\n    return np.ones((1, 10), np.float32)\n"
    )
    example = ROOT / "examples" / "fashion_lenet4"
    (tmp_path / "pair.toml").write_text(
        f'original = "net.py:predict"\ncompressed = "{example}/compressed.tflite"\n'
        f'seeds = "{example}/seeds.npz"\npreprocess = {{ preset = "unit" }}\n'
    )
    (tmp_path / "device_profiles").mkdir()
    profile = f'extends = "emulated-builtin"\npython = "{sys.executable}"\n'
    (tmp_path / "device_profiles" / "mine.toml").write_text(profile)

    untrusted = EdgeFlare(["mine"], tmp_path / "run")
    with pytest.raises(UserError, match=r"net\.py:predict, which needs your trust"):
        untrusted.search(tmp_path, first=1, total_queries=1)
    with pytest.raises(UserError, match="sets python, which needs your trust"):
        untrusted.open_device()
    assert not (tmp_path / "executed").exists()
    # The session's option is about the devices that it names, not about code of a pair.
    session = EdgeFlare(["mine"], tmp_path / "run", trust=True)
    with pytest.raises(UserError, match=r"net\.py:predict, which needs your trust"):
        session.search(tmp_path, first=1, total_queries=1)
    assert untrusted.search(tmp_path, first=1, total_queries=1, trust=True).document.pair
    assert (tmp_path / "executed").exists()
    with session.open_device() as device:
        assert device.profile.name == "mine"
    with pytest.raises(UserError, match="needs your trust"):  # nothing of it was kept
        untrusted.open_device()


def test_a_search_draws_from_the_operators_that_are_named(tmp_path: Path) -> None:
    edgeflare = EdgeFlare(["emulated-builtin"], tmp_path / "run")
    pair = ROOT / "examples" / "fashion_lenet4"
    budget: dict[str, Any] = {"first": 1, "total_queries": 30, "shrink": 0}
    document = edgeflare.search(pair, operators=["median-blur", "pixel-change"], **budget).document
    assert document.plan.operators == ("median-blur", "pixel-change")
    with pytest.raises(UserError, match="'median-blurr'; did you mean median-blur"):
        edgeflare.search(pair, operators=["median-blurr"], **budget)


GATE_OF_OTHERS = """
from edgeflare.pytest_plugin import assert_decides_alike

def test_words(edgeflare):
    result = edgeflare.search({words!r}, first=1, total_queries=40, within=None, shrink=0)
    assert_decides_alike(result)

def test_values(edgeflare):
    result = edgeflare.search(
        {values!r}, first=2, total_queries=60, within=None, shrink=0
    )
    assert_decides_alike(result)

def test_values_have_no_boundary(edgeflare):
    edgeflare.search({values!r}, strategy="boundary")
"""


def gate_of_others(folder: Path) -> str:
    words = str(ROOT / "examples" / "spoken_words")
    described = '[inputs.values]\ndomain = "array"\narray = "inputs"\nlowest = -4.0\n'
    task = 'highest = 4.0\n[task]\nname = "regression"\ntolerance = 0.3\n'
    values = str(write_score_pair(folder / "values", described + task))
    return GATE_OF_OTHERS.format(words=words, values=values)


def test_sounds_and_values_are_gated_as_images_are(gate: Gate) -> None:
    said = gate[1].stdout
    assert "spoken-words decides differently on emulated-xnnpack: 100.0% of 1" in said
    assert "  sound: " in said
    assert "values decides differently on emulated-xnnpack" in said
    assert "boundary follows decisions, and the task of this pair has none with" in said
    assert "absolute distance of original and device" in said
