from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from documents import Document, as_json
from edgeflare.bench.bench_document import Bench
from edgeflare.bench.bench_runs import check_folder
from edgeflare.errors import UserError
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from example_bench import Bencher
from laboratory import untimed

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
        assert (document.strategy, document.rng_seed) == (
            cell.plan.strategy,
            cell.plan.rng_seed,
        )
        assert document.totals.seeds == 8
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


def test_a_bench_is_resumed_by_the_command_that_began_it(
    bencher: Bencher, whole: tuple[Path, Bench], tmp_path: Path
) -> None:
    out = tmp_path / "copy"
    shutil.copytree(whole[0], out)
    with pytest.raises(UserError, match="--max-queries 80, not 81"):
        bencher.run(out, max_queries=81)


def test_runs_of_another_device_count_if_it_is_alike(
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
