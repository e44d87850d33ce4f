"""A bench: its grid of campaigns, each a run directory of its own, and the command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from called_commands import Said, call_here
from documents import Document, as_json
from edgeflare.bench.bench_document import Bench
from edgeflare.bench.grid import Grid, check_folder, check_pairs
from edgeflare.core.goal import Find, Goal
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from example_bench import EXAMPLE, PLAN, Bencher
from laboratory import untimed

GRID_PLAN = Plan("dflare-r", Goal(Find.KERNEL), ("board",), rng_seed=9, max_queries=50)
GRID = Grid(("dflare", "random"), (3, 0), "dflare", GRID_PLAN)


def pair(name: str) -> Pair:
    return Pair(name, None, Path("q.tflite"), Path("seeds.npz"))


def test_a_grid_has_a_campaign_for_each_strategy_and_run_seed() -> None:
    cells = list(GRID.cells(pair("lenet")))
    names = [f"lenet/{name}" for name in ("dflare-3", "dflare-0", "random-3", "random-0")]
    assert [cell.run.as_posix() for cell in cells] == names
    for cell in cells:
        assert replace(cell.plan, strategy="dflare-r", rng_seed=9) == GRID_PLAN
    assert GRID.device == "board"


def test_one_campaign_alone_is_the_very_one_of_the_whole_grid(refusal: Callable[..., str]) -> None:
    pairs = [pair("lenet"), pair("resnet")]
    alone = GRID.with_only("resnet/random-3", pairs)
    assert [list(alone.cells(one)) for one in pairs] == [[], [list(GRID.cells(pairs[1]))[2]]]
    said = refusal(GRID.with_only, "resnet/randon-3", pairs)
    assert "did you mean 'resnet/random-3'" in said
    assert "one of the 8, such as lenet/dflare-3" in said


def test_each_campaign_has_the_parameters_of_its_strategy() -> None:
    grid = replace(GRID, parameters={"dflare": {"novelty_threshold": 0.25}})
    parameters = {cell.run.name: dict(cell.plan.parameters) for cell in grid.cells(pair("lenet"))}
    assert parameters["dflare-3"] == parameters["dflare-0"] == {"novelty_threshold": 0.25}
    assert parameters["random-3"] == {}
    assert grid.to_json()["plan"]["parameters"] == {"dflare": {"novelty_threshold": 0.25}}
    assert GRID.to_json()["plan"]["parameters"] == {}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"strategies": ("dflare", "rando")}, "did you mean 'random'"),
        ({"strategies": ("dflare", "dflare")}, "--strategy dflare: named 2 times"),
        ({"strategies": ()}, "--strategy: there is none"),
        ({"rng_seeds": (1, 1)}, "--rng-seeds 1: named 2 times"),
        ({"baseline": "dflare-r"}, "--baseline dflare-r is none of"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        replace(GRID, **changes)


def test_two_pairs_of_one_name_are_refused() -> None:
    check_pairs([pair("a"), pair("b")])
    with pytest.raises(UserError, match="named 2 times"):
        check_pairs([pair("a b"), pair("a/b")])


@pytest.mark.parametrize("name", ["lenet5", "../../etc", "a/b", "..", "Modèle 8 bits", ""])
def test_the_runs_of_a_pair_stay_in_the_folder_of_the_bench(name: str) -> None:
    folder = pair(name).folder_name
    assert Path(folder).name == folder
    assert folder not in ("", ".", "..")


pytestmark = pytest.mark.slow

CELLS = ["random-0", "random-1", "dflare-0", "dflare-1"]


def untimed_runs(bench: Bench) -> list[tuple[str, Document]]:
    return [(cell.run.name, untimed(as_json(document))) for cell, document in bench.runs]


def test_every_cell_is_a_run_directory_of_its_own(whole: tuple[Path, Bench]) -> None:
    out, bench = whole
    assert [cell.run.as_posix() for cell, _ in bench.runs] == [
        f"fashion_lenet4/{name}" for name in CELLS
    ]
    for cell, document in bench.runs:
        assert load_document(RunDirectory(out / cell.run)) == document
        assert (document.strategy, document.rng_seed) == (cell.plan.strategy, cell.plan.rng_seed)
        assert document.totals.seeds == PLAN.first
        assert document.stopped_by is None
    assert any(document.findings for _, document in bench.runs)


def test_what_has_ended_is_not_run_again(
    bencher: Bencher, whole: tuple[Path, Bench], tmp_path: Path
) -> None:
    before, bench = whole
    out = tmp_path / "copy"
    shutil.copytree(before, out)
    shutil.rmtree(out / "fashion_lenet4" / "random-1")
    again = bencher.run(out)
    assert bencher.watched == ["random-1"]
    assert untimed_runs(again) == untimed_runs(bench)
    # The others are the very documents that were there, their times too.
    assert [again.runs[i] for i in (0, 2, 3)] == [bench.runs[i] for i in (0, 2, 3)]


def test_an_edited_document_is_refused(
    bencher: Bencher, whole: tuple[Path, Bench], tmp_path: Path
) -> None:
    out = tmp_path / "bench"
    shutil.copytree(whole[0], out)
    cell = next(cell for cell, document in whole[1].runs if document.findings)
    edited = out / cell.run / "run.json"
    document = json.loads(edited.read_bytes())
    document["findings"][0]["seed_id"] = 77
    edited.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(UserError, match=r"findings\[0\]\.seed_id is 77, .*; remove it"):
        bencher.run(out)


def test_stopped_and_resumed_is_as_if_never_stopped(
    bencher: Bencher, whole: tuple[Path, Bench], tmp_path: Path
) -> None:
    _, bench = whole
    out = tmp_path / "parts"
    part = bencher.run(out, stop_in=1)
    assert bencher.watched == ["random-0", "random-1"]
    assert [cell.run.name for cell, _ in part.runs] == ["random-0"]
    stopped = load_document(RunDirectory(out / "fashion_lenet4/random-1"))
    assert stopped.stopped_by == "interrupt"
    rest = bencher.run(out)
    assert bencher.watched == ["random-1", "dflare-0", "dflare-1"]
    assert untimed_runs(rest) == untimed_runs(bench)


def test_runs_of_another_device_count_if_it_is_alike_and_of_another_plan_do_not(
    bencher: Bencher, whole: tuple[Path, Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "copy"
    shutil.copytree(whole[0], out)
    profiles = tmp_path / "device_profiles"
    profiles.mkdir()
    for name, kernels in (("alike", "builtin"), ("unlike", "xnnpack")):
        text = f'transport = "emulated"\nkernels = "{kernels}"\n'
        (profiles / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    again = bencher.run(out, devices=("alike",))
    assert bencher.watched == []
    assert [document for _, document in again.runs] == [one for _, one in whole[1].runs]
    with pytest.raises(UserError, match="on a device with kernels builtin"):
        bencher.run(out, devices=("unlike",))
    with pytest.raises(UserError, match="--max-queries 50, not 51"):
        bencher.run(out, max_queries=51)


def test_a_bench_leaves_its_folder_by_no_link(
    bencher: Bencher, whole: tuple[Path, Bench], tmp_path: Path
) -> None:
    shutil.copytree(whole[0] / "fashion_lenet4", tmp_path / "elsewhere")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "fashion_lenet4").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="outside of it"):
        bencher.run(tmp_path / "out")
    assert not bencher.watched


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    check_folder(tmp_path / "absent", resume=False)
    check_folder(tmp_path, resume=False)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UserError, match="is a file"):
        check_folder(file, resume=True)
    with pytest.raises(UserError, match=r"not empty: go on with the bench in it with --resume"):
        check_folder(tmp_path, resume=False)
    with pytest.raises(UserError, match="go on with the ranking in it"):
        check_folder(tmp_path, resume=False, holds="ranking")
    check_folder(tmp_path, resume=True)
    (tmp_path / "bench.json").touch()
    check_folder(tmp_path, resume=True)
    with pytest.raises(UserError, match="holds a bench, and no ranking"):
        check_folder(tmp_path, resume=True, holds="ranking")
    (tmp_path / "run.db").touch()
    with pytest.raises(UserError, match=r"holds a run of a search, .* and no bench"):
        check_folder(tmp_path, resume=True)


def bench(*options: str) -> Said:
    return call_here("bench", EXAMPLE, *options)


def test_one_command_runs_compares_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "bench"
    options = [
        *("--strategy", "random", "--strategy", "dflare", "--baseline", "dflare"),
        *("--rng-seeds", "0,1"),
        *("--first", "3", "--max-queries", "30", "--out", str(out)),
    ]
    dry = bench(*options, "--dry-run")
    assert dry.code == 0, dry.err
    assert "4 runs" in dry.out
    assert not out.exists()
    older = bench("--strategies", "random,dflare", *options[4:], "--dry-run")
    assert older.out == dry.out

    first = bench(*options)
    assert first.code == 0, first.err
    assert "run 4 of 4: fashion_lenet4/dflare-1" in first.err
    for word in ("random", "dflare", "success", "mean", "baseline"):
        assert word in first.out
    document = json.loads((out / "bench.json").read_text())
    assert len(document["runs"]) == 4

    refused = bench(*options)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "--resume" in refused.err

    planned = bench(*options, "--max-queries", "31", "--resume", "--dry-run")
    assert "was begun with --max-queries 30, not 31" in planned.err
    again = bench(*options, "--resume")
    assert again.code == 0, again.err
    assert "run 1 of 4" not in again.err
    assert again.out == first.out
    assert json.loads((out / "bench.json").read_text()) == document


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--strategies", "random,"), "--strategies 'random,'"),
        (("--strategy", "rando"), "did you mean 'random'"),
        (("--rng-seeds", "0,x"), "--rng-seeds 'x'"),
        ((str(EXAMPLE),), "fashion_lenet4: named 2 times"),
        (("--min-strength", "0.1"), "No such option: --min-strength"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    out = tmp_path / "bench"
    said = bench(*options, "--out", str(out))
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert complaint in said.err
    assert not out.exists()
