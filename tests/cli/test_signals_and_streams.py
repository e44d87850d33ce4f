"""Signals, a watched process, and streams that nobody reads or that a console cannot show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from edgeflare.cli.interruptible import as_ctrl_c, stopped_by
from forked_commands import forked_edgeflare
from processes import alive

SIGNALS = [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]


@pytest.mark.parametrize(("how", "word"), SIGNALS)
def test_it_ends_what_runs(how: signal.Signals, word: str) -> None:
    with pytest.raises(KeyboardInterrupt) as ended, as_ctrl_c():
        signal.raise_signal(how)
    assert stopped_by(ended.value) == word


@pytest.mark.parametrize(("how", "word"), SIGNALS)
def test_it_is_not_lost_in_a_callback_out_of_which_nothing_can_be_raised(
    how: signal.Signals, word: str
) -> None:
    def interrupted(_gone: object) -> None:
        signal.raise_signal(how)
        time.sleep(0)  # where Python heeds it

    def work() -> None:
        thing = {1}
        reference = weakref.ref(thing, interrupted)
        del thing
        assert reference() is None
        time.sleep(10)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as ended, as_ctrl_c():
        work()
    assert stopped_by(ended.value) == word
    assert time.monotonic() - begun < 5


def test_what_else_cannot_be_raised_is_told_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError("a mistake")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
        with as_ctrl_c():
            broken = Broken()
            del broken
        assert sys.unraisablehook is sys.__unraisablehook__
    assert "a mistake" in capsys.readouterr().err


BEGIN = "import os, sys, time, signal; from edgeflare.parent_process import *;"

WATCHED = f"{BEGIN} says = watch_this_process();"

DEADLINE_SECONDS = 60.0


def started(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WATCHED + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("code", [0, 130])
def test_an_end_that_was_said_keeps_its_exit_code(code: int) -> None:
    process = started(f"print('done'); says(); sys.exit({code})")
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, out, err) == (code, "done\n", "")


@pytest.mark.parametrize("code", [0, 1])
def test_an_end_without_a_word_is_exit_code_3(code: int) -> None:
    process = started(f"os._exit({code})")
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 3
    (line,) = err.splitlines()
    assert "--resume goes on" in line


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_child(number: int) -> None:
    heard = f"signal.signal({int(number)}, lambda *_: (says(), sys.exit(7)));"
    # A signal just before a sleep is heeded behind it, so that one is short.
    process = started(f"{heard} print('up', flush=True); [time.sleep(.05) for _ in range(12000)]")
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    assert process.wait(DEADLINE_SECONDS) == 7


def test_a_killed_child_is_told_as_it_was() -> None:
    process = started("os.kill(os.getpid(), signal.SIGKILL)")
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == -signal.SIGKILL


def test_the_child_ends_with_its_parent() -> None:
    process = started("print(os.getpid(), flush=True); time.sleep(600)")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_SECONDS)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"

SMALL = ("--first", "3", "--max-queries", "60", "--shrink", "0", "--within", "none")

NOT_UTF8 = {
    "latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


def run(
    arguments: Sequence[str | Path], shell: str = '"$@"', **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as a shell starts it, which says what becomes of its streams.

    A fork has Python's streams, and its names of files, as the process has that it is forked from;
    that one begins with the same environment, but with none of its streams closed.
    """
    command: list[str | Path] = [forked_edgeflare(**environment)]
    if ">&-" in shell:
        command = [sys.executable, "-m", "edgeflare"]
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}", "bash", *command, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the lines on stderr that are of no use to anybody."""
    words = ("Traceback", "Exception ignored", "Broken pipe", "Errno", "mistake in edgeflare")
    return [line for line in done.stderr.splitlines() if any(word in line for word in words)]


@pytest.mark.slow
@pytest.mark.parametrize("command", [(), ("search",), ("devices", "list")], ids=" ".join)
def test_a_command_whose_reader_is_gone_ends_with_its_own_code(command: tuple[str, ...]) -> None:
    """The other end of the pipe is closed before the command writes anything."""
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [forked_edgeflare(**NOT_UTF8["latin-1"]), *command, "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writer)
        _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize(
    "shell", ['"$@" | head -n 1', '"$@" 2>&1 | true', '"$@" >&- 2>&- <&-', '"$@" 2>/dev/full']
)
def test_a_search_that_nobody_reads_is_written_all_the_same(shell: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    search = ("search", EXAMPLE, *SMALL, "--fail-on", "none", "--out", out)
    done = run(search, f"{shell}; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, complaints(done)) == (0, [])
    assert (out / "run.json").is_file()
    refused = run(("report", tmp_path / "none"), f"{shell}; exit ${{PIPESTATUS[0]}}")
    assert (refused.returncode, complaints(refused)) == (2, [])


@pytest.mark.slow
def test_a_disk_that_takes_no_output_is_told() -> None:
    for command in (("--version",), ("devices", "list"), ("search", "--help")):
        done = run(command, '"$@" >/dev/full')
        assert done.returncode == 3
        assert "No space left on device" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("environment", NOT_UTF8.values(), ids=NOT_UTF8)
def test_consoles_replace_what_they_cannot_show(
    environment: dict[str, str], tmp_path: Path, finished: Any
) -> None:
    out = tmp_path / os.fsdecode(b"r\xc3\xb6n \xe6\xbc\xa2\xff")
    search = ("search", EXAMPLE, *SMALL, "--fail-on", "none", "--out", out)
    done = run(search, **environment)
    assert (done.returncode, complaints(done)) == (0, [])
    assert (out / "run.json").is_file()
    commands: list[tuple[str | Path, ...]] = [
        ("report", out, "--html", "--csv", "--junit", "--summary"),
        ("compare", out, finished.folder),
        ("conditions",),
    ]
    for command in commands:
        done = run(command, **environment)
        assert (done.returncode, complaints(done)) == (0, []), command
    done = run(("report", tmp_path / os.fsdecode(b"\xff none \xe6\xbc\xa2")), **environment)
    assert (done.returncode, done.stderr.count("\n"), complaints(done)) == (2, 1, [])


@pytest.mark.slow
def test_the_path_of_a_result_is_printed_as_the_bytes_that_it_is(tmp_path: Path) -> None:
    out = os.fsencode(tmp_path) + b"/r\xff"
    done = run(
        ("search", EXAMPLE, *SMALL, "--fail-on", "none", "--quiet", "--out", os.fsdecode(out))
    )
    assert (done.returncode, os.fsencode(done.stdout)) == (0, out + b"\n")


@pytest.mark.slow
def test_what_is_printed_unbuffered_is_there_at_once() -> None:
    script = (
        "import os; from edgeflare.cli.standard_streams import harden_streams; harden_streams();"
    )
    words = [sys.executable, "-u", "-c", f"{script} print('made'); os._exit(0)"]
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"made\n"
