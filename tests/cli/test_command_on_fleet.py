"""Commands on a fleet, a unit for each class of devices, beside the same without a fleet."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import Document
from edgeflare.cli.command_on_fleet import class_names, words_without
from laboratory import untimed

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

Call = Callable[..., Any]

CLASSES = ("emulated-builtin", "emulated-xnnpack")
BOTH = ("--device", CLASSES[0], "--device", CLASSES[1])
FLEET = ("--fleet", "local", "--fleet-devices", "1")
CONFORM = ("conform", "--ops", "RELU", "--models", "4", "--device", CLASSES[1])


@pytest.fixture(scope="module")
def searched(example: Path, call: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("searched") / "run"
    options = ("--first", "4", "--max-queries", "60", "--shrink", "0", "--within", "none")
    assert call("search", example, *options, "--fail-on", "none", "--out", run).code == 0
    return run


def figures_of(printed: str) -> list[list[str]]:
    """The figures that were printed; other lines may be wider, and so end elsewhere."""
    begin = ("deviating now", "unstable", "mended", "seeds that")
    return [line.split() for line in printed.splitlines() if line.startswith(begin)]


def comparable(run: Path) -> Document:
    """A run without its times and what is said of its host."""
    document = untimed(json.loads((run / "run.json").read_bytes()))
    del document["warnings"]
    return document


def test_a_replay_of_several_classes_is_that_of_each(
    searched: Path, call: Call, start: Call, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    against = ("--baseline", searched)
    out = tmp_path / "fleet"
    together = start("replay", searched, *against, *FLEET, *BOTH, "--out", out)
    codes, printed = [], ""
    for one in CLASSES:
        alone = call("replay", searched, *against, "--device", one, "--out", tmp_path / one)
        codes.append(alone.code)
        printed += alone.out
        assert str(out / one) in together.out
        assert comparable(out / one) == comparable(tmp_path / one)
        assert (out / one / "run.db").is_file()
        assert one in together.err
    assert together.code == max(codes)
    assert figures_of(together.out) == figures_of(printed)
    status = call("fleet", "status", out)
    assert status.code == 0
    assert "2 of 2 units done" in status.out


def test_one_class_makes_the_run_that_the_command_makes(
    start: Call, call: Call, tmp_path: Path
) -> None:
    pytest.importorskip("ray")
    there = start(*CONFORM, *FLEET, "--quiet", "--out", tmp_path / "there")
    here = call(*CONFORM, "--out", tmp_path / "here")
    assert there.code == here.code
    assert there.out == f"{tmp_path / 'there'}\n"
    assert "1 of 1 units done" in call("fleet", "status", tmp_path / "there").out
    documents = []
    for name in ("there", "here"):
        assert (tmp_path / name / "conform.db").is_file()
        documents.append(json.loads((tmp_path / name / "conform.json").read_bytes()))
    one, other = ({**document, "seconds": 0} for document in documents)
    assert one == other


def test_an_explanation_is_put_into_the_run(searched: Path, start: Call, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    run = Path(shutil.copytree(searched, tmp_path / "run"))
    before = {path.name: path.read_bytes() for path in run.rglob("*.png")}
    seed_id = min(int(path.stem) for path in (run / "findings").iterdir())
    said = start("explain", run, str(seed_id), *FLEET, "--device", CLASSES[0])
    assert said.code == 0, said.err
    document = json.loads((run / "explain.json").read_bytes())
    assert list(document["findings"]) == [str(seed_id)]
    assert document["findings"][str(seed_id)]["device"] == CLASSES[0]
    assert str(run / "explain.json") in said.out
    assert ".cache" not in said.out
    assert {path.name: path.read_bytes() for path in run.rglob("*.png")} == before
    assert (tmp_path / "run.explain.fleet" / "fleet.json").is_file()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("replay", "RUN"), "name it with --device CLASS"),
        (("replay", "RUN", "--device", "a", "--device", "a"), "given twice"),
        (("replay", "RUN", "--device", "pixel/all"), "takes classes of devices"),
        (("replay", "RUN", *BOTH, "--out", "OVER"), "neither empty nor of the runs"),
        (("replay", "RUN", "--device", "a", "--out", "RUN", "--overwrite"), "is what is replayed"),
        (("replay", "RUN", *BOTH, "--resume"), "add --out RUN"),
        (("replay", "RUN", *BOTH, "--out", "NEW", "--resume"), "leave out --resume"),
        (("replay", "RUN", *BOTH, "--baseline", "NEW"), "NEW"),
        (("explain", "RUN", *BOTH), "name one class"),
        (("explain", "RUN", "99", "--device", "a"), "99 is no finding"),
        (("conform", "--ops", "NONE"), "NONE"),
        (("survey", "EXAMPLE", "--baseline", "RUN"), "no survey"),
        (("survey", "EXAMPLE", "--show", "NEW"), "leave out --fleet"),
        (("conform", "--device", "pixel", "--fleet-file", "NEW"), "cluster of this host alone"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_refused_before_any_host_is_asked(
    words: tuple[str, ...],
    expected: str,
    searched: Path,
    example: Path,
    call: Call,
    tmp_path: Path,
) -> None:
    over = tmp_path / "over"
    over.mkdir()
    (over / "thesis").touch()
    before = sorted(path for path in searched.parent.rglob("*") if "run.db-" not in path.name)
    places = {"RUN": searched, "OVER": over, "NEW": tmp_path / "NEW", "EXAMPLE": example}
    said = call(*(places.get(word, word) for word in words), "--fleet", "local")
    assert said.code == 2
    assert expected in said.complaint()
    after = sorted(path for path in searched.parent.rglob("*") if "run.db-" not in path.name)
    assert after == before
    assert sorted(tmp_path.rglob("*")) == [over, over / "thesis"]


def test_a_dry_run_says_what_each_host_would_do(call: Call, example: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for words in (CONFORM, ("survey", example, "--first", "40")):
        said = call(*words, *FLEET, "--device", "adb://one:5", "--dry-run", "--out", out)
        assert said.code == 0, said.err
        assert "devices of the class adb://one:5: 1, on local" in said.out
        assert f"edgeflare {words[0]} --device DEVICE --out RUN" in said.out
        assert not list(tmp_path.iterdir())


def test_conform_and_inspect_take_one_device_without_a_fleet(searched: Path, call: Call) -> None:
    assert "--fleet" in call("conform", *BOTH).complaint()
    said = call("inspect", searched, *BOTH)
    assert said.code == 2


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
