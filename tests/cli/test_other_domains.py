"""Tokens, clips, several inputs, and a package's own task and domain: from a search to a replay."""

from __future__ import annotations

import csv
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from called_commands import EXAMPLES, call_here, completed, document_of, refused
from plugin_package import install_plugin
from small_pairs import (
    VOCABULARY,
    write_clip_pair,
    write_score_pair,
    write_tokens_pair,
    write_two_inputs_pair,
)

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

TESTS = Path(__file__).parents[1]
ARRAY = '[inputs.values]\ndomain = "array"\narray = "inputs"\n'
LIMITS = (
    *("--first", "3", "--max-queries", "100"),
    *("--shrink", "5", "--strengthen", "5", "--within", "none"),
)


def searched(call: Call, pair: Path, run: Path, *options: str) -> dict[str, Any]:
    """Search a pair; return the run's document, all of whose findings are verified."""
    said = call("search", pair, *options, *LIMITS, "--out", run)
    assert said.code == 1, said.err
    document = document_of(run)
    assert document["findings"]
    assert all(one["verified"] for one in document["findings"])
    assert any(one["refined"] for one in document["findings"])
    return document


def require_the_same_again(call: Call, run: Path) -> None:
    """Check that all findings of a run deviate still when its stored files are tried again."""
    assert call("replay", run, "--out", f"{run}-again").code == 1
    before, after = document_of(run), document_of(Path(f"{run}-again"))
    for key in ("findings", "deviating_seeds"):
        assert [one["sha256"] for one in after[key]] == [one["sha256"] for one in before[key]]
    assert not after["replay"]["mended"]


def require_shown(call: Call, run: Path) -> None:
    assert call("explain", run).code == 0
    assert call("report", run, "--html", "--junit", "--csv").code == 0
    assert (run / "report.html").stat().st_size > 10_000


REFUSED: dict[tuple[str, str, str], str] = {
    # The pair, what is replaced in its pair.toml, and by what: what is said of it.
    ("words", 'name = "spoken-words"', 'task = {name = "threshold", threshold = 0.5}'): "the task"
    " threshold reads one score … (1, 10) … fits classification or regression",
    ("words", 'name = "spoken-words"', 'frames = 4\nstate = {mask = "Identity"}'): "there is no"
    " input 'mask' for a state … (1, 61, 32, 1)",
    ("words", "bands = 32", "bands = 31"): "1952 values … 61 x 31 … front end",
    ("clip", 'heard = "next"', 'heard = "nest"'): "no output 'nest' for a state … next (1, 3)",
    ("two", "[inputs.place]", "[inputs.plaice]"): "no input 'plaice' … 'place' (1, 4) … tensor =",
    ("two", "highest = 4.0", "highest = 0.5"): "values beyond the bounds -4 and 0.5 … widen",
    ("tokens", "vocabulary = 12", "vocabulary = 5"): "ids beyond the vocabulary, 0 to 4",
    ("values", "tolerance = 100", ""): "[task]: tolerance is missing",
    # The same of options.
    ("two", "", "--strategy dflare"): "domain array … boundary, boundary-mh, donor, climb, random",
    ("tokens", "", "--strategy dflare-published"): "dflare-published … domain tokens … random",
    ("tokens", "", "--max-linf 3"): "--max-linf 3 … names and no quantities … --within",
    ("values", "", "--strategy boundary"): "boundary follows decisions … --strategy climb",
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    shutil.copytree(EXAMPLES / "spoken_words", folder / "words")
    write_clip_pair(folder / "clip")
    write_two_inputs_pair(folder / "two")
    write_tokens_pair(folder / "tokens")
    task = '[task]\nname = "regression"\ntolerance = 100\n'
    write_score_pair(folder / "values", ARRAY + task)
    return folder


@pytest.mark.parametrize("name", REFUSED)
def test_a_pair_that_does_not_fit_is_one_line(
    name: tuple[str, str, str], pairs: Path, tmp_path: Path
) -> None:
    kind, old, new = name
    pair = Path(shutil.copytree(pairs / kind, tmp_path / "pair"))
    described = (pair / "pair.toml").read_text()
    assert old in described
    if old:
        (pair / "pair.toml").write_text(described.replace(old, new))
    options = () if old else new.split()
    complaint = refused("search", pair, *options, "--max-queries", "1", "--out", tmp_path / "run")
    for part in REFUSED[name].split("…"):
        assert part.strip() in complaint
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("motion", "words"),
    [
        (np.full((8, 6), np.inf), "seed 0 has values that are not finite"),
        (np.zeros((8, 7)), "one has shape (7,), but the model takes (6,)"),
    ],
)
def test_seeds_that_do_not_fit_are_one_line(
    motion: NDArray[np.float64], words: str, pairs: Path, tmp_path: Path
) -> None:
    pair = Path(shutil.copytree(pairs / "two", tmp_path / "pair"))
    place = dict(np.load(pair / "seeds.npz"))["place"]
    np.savez(pair / "seeds.npz", motion=motion.astype(np.float32), place=place)
    assert words in refused("search", pair, "--max-queries", "1", "--out", tmp_path / "run")


def test_an_extra_that_is_missing(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "audiomentations", None)
    said = refused("search", pairs / "words", "--out", tmp_path / "run")
    assert "pip install 'edgeflare[audio]'" in said
    noise = ("--operators", "white-noise,reverberation", "--first", "2", "--dry-run")
    completed("search", pairs / "words", *noise)


@pytest.mark.parametrize(
    "strategy", [("boundary", "--set", "step_length=0.5"), ("random",), ("climb",)]
)
def test_texts_of_ids_are_searched(strategy: tuple[str, ...], tmp_path: Path) -> None:
    pair = write_tokens_pair(tmp_path / "pair")
    document = searched(call_here, pair, tmp_path / "run", "--strategy", *strategy)
    for one in document["findings"]:
        ids = json.loads((tmp_path / "run" / one["file"]).read_text())
        seed = json.loads((tmp_path / "run" / one["seed_file"]).read_text())
        assert len(ids) == len(seed)
        assert ids != seed
        assert set(ids) <= set(range(VOCABULARY))
    require_the_same_again(call_here, tmp_path / "run")
    if strategy == ("random",):
        require_shown(call_here, tmp_path / "run")


@pytest.mark.parametrize("strategy", ["boundary", "dflare"])
def test_clips_are_searched(strategy: str, tmp_path: Path) -> None:
    pair = write_clip_pair(tmp_path / "pair")
    document = searched(call_here, pair, tmp_path / "run", "--strategy", strategy)
    with np.load(tmp_path / "run" / document["findings"][0]["file"]) as clip:
        assert clip["frames"].shape == (6, 4, 4, 1)
        assert clip["frames"].dtype == np.uint8
    require_the_same_again(call_here, tmp_path / "run")
    if strategy == "boundary":
        require_shown(call_here, tmp_path / "run")


def test_one_of_two_inputs_is_searched_beside_the_other(tmp_path: Path) -> None:
    pair = write_two_inputs_pair(tmp_path / "pair")
    options = ("--set", "step_length=0.05")
    document = searched(call_here, pair, tmp_path / "run", *options)
    assert [one["search"] for one in document["pair"]["inputs"]] == [True, False]
    require_the_same_again(call_here, tmp_path / "run")
    require_shown(call_here, tmp_path / "run")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return where a package with a task and one with a domain are installed."""
    task = install_plugin(
        tmp_path_factory.mktemp("task"),
        "night_light",
        (TESTS / "tasks" / "night_light.py").read_text(),
        {
            "edgeflare.tasks": {"night-light": "night_light:NightLight"},
            "edgeflare.answers": {"lamp": "night_light:LampView"},
        },
    )
    domain = install_plugin(
        tmp_path_factory.mktemp("domain"),
        "room_temperatures",
        (TESTS / "domains" / "room_temperatures.py").read_text(),
        {
            "edgeflare.domains": {"room-temperatures": "room_temperatures:RoomTemperatures"},
            "edgeflare.operators": {"room-temperatures": "room_temperatures"},
        },
    )
    return f"{task}:{domain}"


def test_a_task_of_another_package_is_searched_and_shown(
    packages: str, start: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", packages)
    task = '[task]\nname = "night-light"\ndusk = 0.5\n'
    pair = write_score_pair(tmp_path / "pair", f"{ARRAY}lowest = -4.0\nhighest = 4.0\n{task}")
    document = searched(start, pair, tmp_path / "run")
    assert document["pair"]["task"] == "night-light"
    for one in document["findings"]:
        assert {one["labels"]["original"], one["labels"]["device"]} == {0, 1}
    require_shown(start, tmp_path / "run")
    page = tmp_path / "run" / "report.html"
    assert "light beyond dusk" in page.read_text()
    with (tmp_path / "run" / "findings.csv").open(newline="") as table:
        assert all(float(row["device_light"]) for row in csv.DictReader(table))

    monkeypatch.setenv("PYTHONPATH", "")
    assert start("report", tmp_path / "run", "--html").code == 0
    assert "The package that offers the answers &#39;lamp&#39; shows more" in page.read_text()


def test_a_domain_of_another_package_is_searched_by_its_operators(
    packages: str, start: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", packages)
    rooms = '[inputs.values]\ndomain = "room-temperatures"\n'
    task = '[task]\nname = "threshold"\nthreshold = 0.25\n'
    pair = write_score_pair(tmp_path / "pair", rooms + task)
    with np.load(pair / "seeds.npz") as seeds:
        np.savez(pair / "seeds.npz", inputs=20.0 + 5.0 * seeds["inputs"])

    said = start("search", pair, "--out", tmp_path / "refused")
    assert said.code == 2
    assert "EdgeFlare has none for the domain room-temperatures: say --operators all" in said.err
    assert not (tmp_path / "refused").exists()

    document = searched(start, pair, tmp_path / "run", "--operators", "all")
    assert document["plan"]["operators"] == ["open-window"]
    for one in document["findings"]:
        rooms_of_finding = np.fromfile(tmp_path / "run" / one["file"], "<f4")
        assert rooms_of_finding.shape == (6,)
        assert (rooms_of_finding >= 0.0).all()
        assert (rooms_of_finding <= 40.0).all()
    require_the_same_again(start, tmp_path / "run")
