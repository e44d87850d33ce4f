"""What follows a search, for models with a state and several inputs, and tasks without classes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from called_commands import EXAMPLE, call_here, completed, document_of, refused
from graph_writer import write_logistic_models
from reproductions import reproduce, unpacked
from state_pairs import REGRESSION, THRESHOLD, write_state_pair

pytestmark = pytest.mark.slow

Document = dict[str, Any]


@dataclass(frozen=True)
class Searched:
    """A run, and the pair that it searched."""

    task: str
    pair: Path
    run: Path


@pytest.fixture(scope="module", params=["regression", "threshold"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("state")
    values = request.param == "regression"
    task = REGRESSION if values else THRESHOLD
    pair = write_state_pair(folder / "pair", task, 3 if values else 1)
    options = (
        *("--first", "4", "--max-queries", "100", "--device", "emulated-builtin"),
        *("--shrink", "20"),
    )
    strategy = ("--strategy", "climb" if values else "boundary")
    completed(*("search", pair, "--out", folder / "run", "--fail-on", "none"), *options, *strategy)
    return Searched(request.param, pair, folder / "run")


@pytest.fixture
def searched(whole: Searched, tmp_path: Path) -> Searched:
    """A run of which the test may write into the folder."""
    return Searched(whole.task, whole.pair, shutil.copytree(whole.run, tmp_path / "run"))


def deviations(run: Path) -> dict[int, Document]:
    read = document_of(run)
    return {entry["seed_id"]: entry for entry in (*read["findings"], *read["deviating_seeds"])}


def test_explain_compares_answers_as_the_task_does(searched: Searched) -> None:
    completed("explain", searched.run)
    written = document_of(searched.run, "explain.json")
    found = deviations(searched.run)
    assert found
    for seed_id, one in written["findings"].items():
        assert one["verdict"]["name"] == "compression"
        votes = one["evidence"]["votes"]
        original = next(vote for vote in votes if vote["arm"] == "original")
        device = next(vote for vote in votes if vote["arm"] == "device")
        if searched.task == "threshold":
            names = ("below", "above")
            labels = found[int(seed_id)]["labels"]
            assert original["described"].startswith(f"{names[labels['original']]} (0.")
            assert device["described"].startswith(f"{names[labels['device']]} (0.")
            assert "twin and device agree" in one["verdict"]["why"]
        else:
            (said,) = re.findall(r"the original's is ([\d.e-]+),", one["verdict"]["why"])
            apart = float(said)
            assert apart / 0.03 - 1 == pytest.approx(found[int(seed_id)]["strength"], abs=1e-2)
            assert device["described"].endswith(f"; distance to the original: {apart:.4g}")


def test_a_finding_is_shown_in_values_or_sides(searched: Searched) -> None:
    seed_id = min(deviations(searched.run))
    said = completed("explain", searched.run, seed_id, "--model-explorer")
    why = "an input is a clip, whose frames are an inference each"
    nothing = f"nothing to show of seed {seed_id}: layers are not seen: {why}"
    assert f"Model Explorer has {nothing}" in said.out
    assert not (searched.run / "explain").exists()
    wanted = "values)" if searched.task == "regression" else "above (0."
    assert wanted in said.out


def test_a_replay_can_be_replayed(searched: Searched, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for of, to in ((searched.run, first), (first, second)):
        completed("replay", of, "--out", to, code=1)  # all of it still deviates
    assert document_of(second)["replay"]["mended"] == []
    for seed_id, entry in deviations(second).items():
        assert entry["strength"] == deviations(searched.run)[seed_id]["strength"]
        name = f"seeds/{seed_id:06d}.fixed.npz"
        before, now = (np.load(run / name)["input offset"] for run in (searched.run, second))
        assert np.array_equal(before, now)


def test_an_export_feeds_all_inputs_and_the_state(searched: Searched, tmp_path: Path) -> None:
    for seed_id, entry in deviations(searched.run).items():
        archive = tmp_path / f"{seed_id}.zip"
        completed("export", searched.run, seed_id, "--out", archive)
        shown = reproduce(unpacked(archive, archive.with_suffix("")))
        assert shown.returncode == 0, shown.stderr
        if searched.task == "threshold":
            for arm, label in entry["labels"].items():
                assert f"{arm}: [{label}] here, [{label}] when it was found" in shown.stdout
        else:
            here = re.search(r"^(\S+) apart here, (\S+) when", shown.stdout, re.MULTILINE)
            assert here
            for apart in map(float, here.groups()):
                assert apart / 0.03 - 1 == pytest.approx(entry["strength"], abs=1e-4)


@pytest.mark.old_board
def test_an_export_runs_on_the_other_runtime(
    searched: Searched, tmp_path: Path, old_board_python: Path
) -> None:
    seed_id = min(deviations(searched.run))
    completed("export", searched.run, seed_id, "--out", tmp_path / "one.zip")
    shown = reproduce(unpacked(tmp_path / "one.zip", tmp_path / "one"), old_board_python)
    assert shown.returncode in (0, 1), shown.stderr
    assert ("It deviates here too." in shown.stdout) == (shown.returncode == 0)


@pytest.mark.parametrize("whole", ["threshold"], indirect=True)
def test_a_new_model_is_replayed_on_as_little_as_one_finding(
    searched: Searched, tmp_path: Path
) -> None:
    path = searched.run / "run.json"
    read = document_of(searched.run)
    read["findings"] = read["findings"][:1]
    path.write_text(json.dumps(read))
    mended = ("--compressed", searched.pair / "original.tflite")
    completed("replay", searched.run, *mended, "--out", tmp_path / "replay")
    assert len(document_of(tmp_path / "replay")["replay"]["mended"]) == 1


def test_a_lost_fixed_input_is_one_line(searched: Searched, tmp_path: Path) -> None:
    seed_id = min(deviations(searched.run))
    (searched.run / f"seeds/{seed_id:06d}.fixed.npz").unlink()
    for command in ("explain", "replay"):
        options = ("--out", tmp_path / "out") if command == "replay" else (seed_id,)
        said = call_here(command, searched.run, *options)
        assert said.code == 2
        assert said.err.splitlines()[-1].endswith("it held offset of that seed")


@pytest.mark.parametrize("whole", ["threshold"], indirect=True)
def test_pairs_of_other_domains_or_tasks_are_no_bench_and_no_rank(
    whole: Searched, tmp_path: Path
) -> None:
    values = write_state_pair(tmp_path / "values")
    (values / "pair.toml").write_text(
        (values / "pair.toml").read_text().replace('name = "state"', 'name = "values"')
    )
    for other, what in ((EXAMPLE, "different domains"), (values, "different tasks")):
        assert what in refused("bench", whole.pair, other, "--out", tmp_path / "out")
        assert "different originals" in refused(
            "rank", whole.pair, other, "--out", tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


UNREFINED = (
    *("--first", "4", "--max-queries", "200", "--device", "emulated-xnnpack"),
    *("--shrink", "0", "--fail-on", "none"),
)
"""Options of a search whose findings only have to be there."""

RECONSTRUCTION = """\
original = "original.tflite"
compressed = "compressed.tflite"
seeds = "seeds.npz"

[task]
name = "threshold"
threshold = 0.35
score = "reconstruction"

[inputs.x]
domain = "array"
lowest = -2.0
highest = 2.0
"""


def write_reconstruction_pair(folder: Path) -> Path:
    """Write a pair whose score is how far an output is from its input: y = logistic(x)."""
    folder.mkdir()
    write_logistic_models(folder, 3, (0.02, 7))
    rows = np.random.default_rng(7).uniform(-1.0, 1.0, (6, 3)).astype(np.float32)
    np.savez(folder / "seeds.npz", x=rows)
    (folder / "pair.toml").write_text(RECONSTRUCTION)
    return folder


ANY_FRAME = 'name = "classification"\noutput = "score"\nframes = "any"\noutputs = "probabilities"'


@pytest.mark.parametrize(
    "write",
    [write_reconstruction_pair, partial(write_state_pair, task=ANY_FRAME, values=12)],
    ids=["reconstruction", "any frame"],
)
def test_explain_asks_the_arms_as_the_search_did(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    """The second has 12^4 joint decisions, which the document numbers anew."""
    pair, run = write(tmp_path / "pair"), tmp_path / "run"
    completed("search", pair, *UNREFINED, "--out", run)
    assert deviations(run)

    completed("explain", run)

    written = document_of(run, "explain.json")["findings"]
    assert written
    assert {one["verdict"]["name"] for one in written.values()} == {"compression"}


@pytest.mark.slow
def test_the_script_of_a_reconstruction_has_what_the_input_was_before_it_was_quantized(
    tmp_path: Path,
) -> None:
    pair, run = write_reconstruction_pair(tmp_path / "pair"), tmp_path / "run"
    completed("search", pair, *UNREFINED, "--out", run)
    seed_id, *_ = found = deviations(run)
    call_here("replay", run, "--out", tmp_path / "again")
    assert deviations(tmp_path / "again").keys() == found.keys()
    completed("export", run, seed_id, "--out", tmp_path / "one.zip")
    folder = unpacked(tmp_path / "one.zip", tmp_path / "one")
    shown = reproduce(folder)
    assert shown.returncode == 0, shown.stderr
    with np.load(folder / "compressed_input.npz") as arrays:
        assert np.abs(arrays["feature_0"] - (arrays["input_0"] - 7.0) * 0.02).max() > 0.001
