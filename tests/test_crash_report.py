"""Errors that nobody foresaw: one line, exit code 3, and the traceback in a file."""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.cli import main
from edgeflare.crash_report import keep_traceback


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "edgeflare"


def fail(*_: object, **__: object) -> None:
    raise KeyError("no such\n tensor")


def fail_in_a_thread() -> list[object]:
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    return []


@pytest.mark.parametrize(("broken", "code"), [(fail, 3), (fail_in_a_thread, None)])
def test_an_unexpected_error_ends_in_3_with_its_traceback_in_a_file(
    broken: Callable[..., object],
    code: int | None,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """One of a thread is said likewise."""
    monkeypatch.setattr("edgeflare.cli.doctor.check_installation", broken)
    monkeypatch.setattr("sys.argv", ["edgeflare", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capfd.readouterr()
    assert code in (None, ended.value.code)
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.out + said.err
    (file,) = state.iterdir()
    assert said.err.startswith("edgeflare: unexpected KeyError: ")
    assert str(file) in said.err
    assert re.search(r"Traceback .*\n.*KeyError", file.read_text(), re.DOTALL)
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "shortage",
    [
        MemoryError("Unable to allocate 2.00 TiB for an array"),
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("cv2.abi3.so: failed to map segment from shared object"),
    ],
)
def test_a_shortage_of_memory_is_no_mistake(
    shortage: Exception,
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def short(*_: object, **__: object) -> None:
        raise shortage

    monkeypatch.setattr("edgeflare.cli.devices.list_profiles", short)
    monkeypatch.setattr("sys.argv", ["edgeflare", "devices"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    said = capfd.readouterr().err
    assert said.startswith("edgeflare: there is not enough memory (")
    assert said.count("\n") == 1
    assert not state.exists()


def test_the_newest_files_stay_and_those_of_others_that_have_such_names(state: Path) -> None:
    state.mkdir(parents=True)
    others = [state / f"traceback-{n}.txt" for n in range(3)]
    for path in others:
        path.write_text("of another program")
    (state / "traceback-of-runs.txt").mkdir()
    places = [keep_traceback(KeyError(n)) for n in range(22)]
    assert len(list(state.iterdir())) == 4 + 20
    assert Path(places[-1]).exists()
    assert all(path.exists() for path in others)


def test_where_no_state_folder_can_be_made_it_is_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert Path(keep_traceback(KeyError("x"))).parent == tmp_path


def test_where_nothing_can_be_written_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file" / "temporary"))
    assert keep_traceback(KeyError("x")).startswith("no file, since none can be written")


def test_a_full_disk_leaves_no_empty_file(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> list[str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("traceback.format_exception", full)
    said = keep_traceback(KeyError("x"))
    assert said == "no file, since none can be written (No space left on device)"
    assert [*state.iterdir(), *(tmp_path / "temporary").iterdir()] == []


def test_empty_files_of_whole_names_count_as_old_ones(state: Path) -> None:
    state.mkdir(parents=True)
    old = state / "traceback-20200101-000000-abcdef_1.txt"
    users = state / "traceback-20200101-000000-mine.txt"
    for path in (old, users):
        path.touch()
    for n in range(20):
        keep_traceback(KeyError(n))
    assert not old.exists()
    assert users.exists()
