"""The folder of a matrix is refused where something else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.matrix.matrix_folder import (
    a_begun_run,
    check_matrix_folder,
    is_begun,
    remove_other_runs,
    remove_tables,
)


def test_an_absent_and_an_empty_folder_are_taken(tmp_path: Path) -> None:
    check_matrix_folder(tmp_path, resume=False, overwrite=False)
    check_matrix_folder(tmp_path / "new", resume=False, overwrite=True)
    with pytest.raises(UserError, match=r"no run of a kernel set in .* to go on with"):
        check_matrix_folder(tmp_path / "new", resume=True, overwrite=False)


def test_runs_that_are_there_stay_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "run.db").touch()
    with pytest.raises(UserError, match="go on with --resume, replace them with --overwrite"):
        check_matrix_folder(tmp_path, resume=False, overwrite=False)
    check_matrix_folder(tmp_path, resume=True, overwrite=False)
    check_matrix_folder(tmp_path, resume=False, overwrite=True)


def test_what_is_no_matrix_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="neither empty nor of the runs of kernel sets"):
        check_matrix_folder(tmp_path, resume=False, overwrite=True)
    with pytest.raises(UserError, match="is a file"):
        check_matrix_folder(tmp_path / "notes.txt", resume=False, overwrite=True)


def test_what_is_replaced_goes_as_a_whole_and_what_is_of_others_stays(tmp_path: Path) -> None:
    for kernels in ("gpu", "micro"):
        (tmp_path / kernels).mkdir()
        (tmp_path / kernels / "run.db").touch()
    (tmp_path / "micro" / "notes.txt").write_text("mine")
    (tmp_path / "matrix.json").write_text("{}")
    remove_tables(tmp_path)
    assert not (tmp_path / "matrix.json").exists()
    assert is_begun(tmp_path / "gpu")
    remove_other_runs(tmp_path, {"gpu", "micro"})
    assert is_begun(tmp_path / "gpu")
    remove_other_runs(tmp_path, set())
    assert not (tmp_path / "gpu").exists()
    assert [file.name for file in (tmp_path / "micro").iterdir()] == ["notes.txt"]


def test_a_folder_that_has_the_name_of_a_kernel_set_and_is_no_run_is_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "shaders.txt").write_text("mine")
    with pytest.raises(UserError, match="gpu is neither empty nor a run"):
        check_matrix_folder(tmp_path, resume=False, overwrite=True)


def test_a_run_that_has_begun_is_found(tmp_path: Path) -> None:
    assert a_begun_run(tmp_path) == tmp_path
    (tmp_path / "builtin").mkdir()
    assert not is_begun(tmp_path / "builtin")
    (tmp_path / "builtin" / "conform.db").touch()
    assert is_begun(tmp_path / "builtin")
    assert a_begun_run(tmp_path) == tmp_path / "builtin"
