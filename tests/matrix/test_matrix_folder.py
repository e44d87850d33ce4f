"""The folder of a matrix is refused where something else is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.matrix.matrix_document import write_matrix
from edgeflare.matrix.matrix_folder import (
    MATRIX,
    a_begun_run,
    check_matrix_folder,
    claimed_matrix,
    is_begun,
    remove_other_runs,
    remove_tables,
)
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos.kernel_sets import Kernels
from kills import Kill, killed_at_each, put_notes, require_notes


def begun(run: Path) -> None:
    """Begin a run in a matrix."""
    os.close(RunDirectory.claim(run, overwrite=False)[1])
    (run / "run.db").touch()
    MATRIX.take(run.parent, lambda: None).close()
    list_as(run.parent, run.name, FOLDER)


def test_an_absent_and_an_empty_folder_are_taken(tmp_path: Path) -> None:
    check_matrix_folder(tmp_path, resume=False, overwrite=False)
    check_matrix_folder(tmp_path / "new", resume=False, overwrite=True)
    with pytest.raises(UserError, match=r"no run of a kernel set in .* to go on with"):
        check_matrix_folder(tmp_path / "new", resume=True, overwrite=False)


def test_runs_that_are_there_stay_unless_told_otherwise(tmp_path: Path) -> None:
    assert a_begun_run(tmp_path) == tmp_path
    begun(tmp_path / "gpu")
    assert is_begun(tmp_path / "gpu")
    assert not is_begun(tmp_path / "builtin")
    assert a_begun_run(tmp_path) == tmp_path / "gpu"
    with pytest.raises(UserError, match="go on with --resume, replace it with --overwrite"):
        check_matrix_folder(tmp_path, resume=False, overwrite=False)
    check_matrix_folder(tmp_path, resume=True, overwrite=False)
    check_matrix_folder(tmp_path, resume=False, overwrite=True)


def test_what_is_no_matrix_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="neither empty nor a matrix of kernel sets"):
        check_matrix_folder(tmp_path, resume=False, overwrite=True)
    with pytest.raises(UserError, match="is a file"):
        check_matrix_folder(tmp_path / "notes.txt", resume=False, overwrite=True)
    begun(tmp_path / "other" / "micro")
    write_atomically(tmp_path / "other" / "gpu" / "shaders.txt", b"mine")
    with pytest.raises(UserError, match="gpu is neither empty nor a run"):
        check_matrix_folder(tmp_path / "other", resume=False, overwrite=True)


def test_what_is_replaced_goes_as_a_whole_and_what_is_of_others_stays(tmp_path: Path) -> None:
    for kernels in ("gpu", "micro"):
        begun(tmp_path / kernels)
    (tmp_path / "micro" / "notes.txt").write_text("mine")
    write_atomically(tmp_path / "matrix.json", b"{}")
    (tmp_path / "matrix.md").write_text("mine")
    remove_tables(tmp_path)
    assert not (tmp_path / "matrix.json").exists()
    assert (tmp_path / "matrix.md").read_text() == "mine"
    assert is_begun(tmp_path / "gpu")
    remove_other_runs(tmp_path, {"gpu", "micro"})
    assert is_begun(tmp_path / "gpu")
    remove_other_runs(tmp_path, set())
    assert not (tmp_path / "gpu").exists()
    left = {file.name for file in (tmp_path / "micro").iterdir()}
    assert left == {"notes.txt", "contents.jsonl"}
    check_matrix_folder(tmp_path, resume=False, overwrite=True)


def make_matrix(out: Path, *kernel_sets: Kernels, overwrite: bool) -> None:
    """Do what a command on kernel sets does that comes to its end."""
    with claimed_matrix(out, resume=False, overwrite=overwrite):
        for kernels in kernel_sets:
            directory, lock = RunDirectory.claim(out / kernels, overwrite=overwrite)
            write_atomically(directory.path / "findings" / "000001.png", b"png")
            write_atomically(directory.document, kernels.encode())
            os.close(lock)
        remove_tables(out)
        remove_other_runs(out, set(kernel_sets))
        write_matrix({"of": list(kernel_sets)}, "# table", out)


@pytest.mark.slow
def test_a_matrix_that_is_killed_costs_nothing_of_the_users_and_is_made_again(
    tmp_path: Path,
) -> None:
    def prepare(folder: Path) -> Callable[[], None]:
        make_matrix(folder / "out", "gpu", "micro", overwrite=False)
        put_notes(folder / "out", folder / "out" / "gpu", folder / "out" / "micro")
        return lambda: make_matrix(folder / "out", "builtin", "micro", overwrite=True)

    def next_command(folder: Path, _: Kill) -> None:
        out = folder / "out"
        require_notes(out, out / "gpu", out / "micro")
        make_matrix(out, "builtin", "micro", overwrite=True)
        require_notes(out, out / "gpu", out / "micro")
        assert (out / "micro" / "run.json").read_text() == "micro"
        assert not (out / "gpu" / "run.json").exists()

    assert killed_at_each(tmp_path, prepare, next_command, every=2) > 15
