"""Commands on a real cluster of this host, beside the same without a fleet."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from called_commands import EXAMPLE, call_here, completed, document_of
from edgeflare.cli.command_on_fleet import words_without
from edgeflare.fleet.command_job import class_names
from laboratory import comparable
from run_content import content_differences
from summed_up_runs import summed_up_content

pytestmark = [pytest.mark.fleet, pytest.mark.slow]


Call = Callable[..., Any]

CLASSES = ("emulated-builtin", "emulated-xnnpack")

BOTH = ("--device", CLASSES[0], "--device", CLASSES[1])

FLEET = ("--fleet", "local", "--fleet-devices", "1")

CONFORM = ("conform", "--ops", "RELU", "--models", "4", "--device", CLASSES[1])


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("searched") / "run"
    options = ("--first", "4", "--max-queries", "60", "--shrink", "0", "--within", "none")
    completed("search", EXAMPLE, *options, "--fail-on", "none", "--out", run)
    return run


def figures_of(printed: str) -> list[list[str]]:
    """The figures that were printed; other lines may be wider, and so end elsewhere."""
    begin = ("deviating now", "unstable", "mended", "seeds that")
    return [line.split() for line in printed.splitlines() if line.startswith(begin)]


def test_a_replay_of_several_classes_is_that_of_each(
    searched: Path, start: Call, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    against = ("--baseline", searched)
    out = tmp_path / "fleet"
    together = start("replay", searched, *against, *FLEET, *BOTH, "--out", out)
    codes, printed = [], ""
    for class_ in CLASSES:
        alone = call_here(
            "replay", searched, *against, "--device", class_, "--out", tmp_path / class_
        )
        codes.append(alone.code)
        printed += alone.out
        assert str(out / class_) in together.out
        assert comparable(out / class_) == comparable(tmp_path / class_)
        assert (out / class_ / "run.db").is_file()
        assert class_ in together.err
    assert together.code == max(codes)
    assert figures_of(together.out) == figures_of(printed)
    status = completed("fleet", "status", out)
    assert "2 of 2 units done" in status.out


def test_one_class_makes_the_run_that_the_command_makes(start: Call, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    there = start(*CONFORM, *FLEET, "--quiet", "--out", tmp_path / "there")
    here = call_here(*CONFORM, "--out", tmp_path / "here")
    assert there.code == here.code
    assert there.out == f"{tmp_path / 'there'}\n"
    assert "1 of 1 units done" in call_here("fleet", "status", tmp_path / "there").out
    documents = []
    for name in ("there", "here"):
        assert (tmp_path / name / "conform.db").is_file()
        documents.append(document_of(tmp_path / name, "conform.json"))
    one, other = ({**document, "seconds": 0} for document in documents)
    assert one == other


def test_an_explanation_is_put_into_the_run(searched: Path, start: Call, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run = Path(shutil.copytree(searched, tmp_path / "run"))
    before = {path.name: path.read_bytes() for path in run.rglob("*.png")}
    seed_id = min(int(path.stem) for path in (run / "findings").iterdir())
    said = start("explain", run, str(seed_id), *FLEET, "--device", CLASSES[0])
    assert said.code == 0, said.err
    document = document_of(run, "explain.json")
    assert list(document["findings"]) == [str(seed_id)]
    assert document["findings"][str(seed_id)]["device"] == CLASSES[0]
    assert str(run / "explain.json") in said.out
    assert ".cache" not in said.out
    assert {path.name: path.read_bytes() for path in run.rglob("*.png")} == before
    assert (tmp_path / "run.explain.fleet" / "fleet.json").is_file()


def test_a_dry_run_says_what_each_host_would_do(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for words in (CONFORM, ("survey", EXAMPLE, "--first", "40")):
        said = completed(*words, *FLEET, "--device", "adb://one:5", "--dry-run", "--out", out)
        assert "devices of the class adb://one:5: 1, on local" in said.out
        assert f"edgeflare {words[0]} --device DEVICE --out RUN" in said.out
        assert not list(tmp_path.iterdir())


@given(st.lists(st.text(min_size=1), unique=True, max_size=6))
def test_each_class_has_a_plain_name_of_its_own(classes: list[str]) -> None:
    names = class_names(classes)
    assert list(names) == classes
    assert len(set(names.values())) == len(classes)
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name) for name in names.values())


def test_a_class_that_is_a_plain_name_keeps_it() -> None:
    classes = ["pixel8", "emulated-builtin", "adb://one:5", "adb-one-5"]
    assert list(class_names(classes).values()) == [*classes[:2], "adb-one-5", "adb-one-5-2"]


def test_the_run_is_left_out_of_the_words_once() -> None:
    assert words_without(("--trust", "runs/3/", "3"), Path("runs/3")) == ("--trust", "3")
    assert words_without(("3", "3"), Path("3")) == ("3",)


SHORT = ("--first", "3", "--max-queries", "40")


def question(command: str) -> list[str | Path]:
    """A bench of two strategies and two run seeds, or a ranking of two models."""
    asked: dict[str, list[str | Path]] = {
        "bench": ["--strategy", "random", "--strategy", "dflare", "--rng-seeds", "0,1"],
        "rank": ["--compressed", EXAMPLE / "original.tflite", "--shrink", "10"],
    }
    return [command, EXAMPLE, *asked[command], *SHORT]


@pytest.mark.parametrize(("command", "runs"), [("bench", 4), ("rank", 2)])
def test_a_fleet_makes_what_one_device_makes(
    command: str, runs: int, start: Call, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    words = question(command)
    alone, out = tmp_path / "alone", tmp_path / "out"
    on_fleet = start(*words, "--fleet", "local", "--fleet-devices", "2", "--out", out)
    assert on_fleet.code == 0, on_fleet.err
    completed(*words, "--out", alone)
    found = summed_up_content(out)
    assert len(found) == 1 + runs
    assert content_differences(found, summed_up_content(alone)) == []
    assert f"{command}.json" in found
    assert on_fleet.out.strip()
    assert f"{runs + 1} of {runs + 1} units done" in call_here("fleet", "status", out).out
