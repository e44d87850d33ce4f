"""Commands whose output nobody reads, or that a console cannot show: none of them fails for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from edgeflare.cli.app import LazyCommand, app

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
SMALL = ("--first", "3", "--max-queries", "60", "--shrink", "0", "--within", "none")

pytestmark = pytest.mark.slow

NOT_UTF8 = {
    "latin-1": {"PYTHONIOENCODING": "latin-1:strict"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


def all_commands() -> Iterator[tuple[str, ...]]:
    """Every command, and the commands of each group."""
    yield ()
    for name, command in get_group(app).commands.items():
        yield (name,)
        assert isinstance(command, LazyCommand)
        yield from ((name, inner) for inner in getattr(command.load(), "commands", ()))


def run(
    arguments: Sequence[str | Path], shell: str = '"$@"', **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command as a shell starts it, which says what becomes of its streams."""
    command = [sys.executable, "-m", "edgeflare", *map(str, arguments)]
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell}", "bash", *command],
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


@pytest.mark.parametrize("command", list(all_commands()), ids=" ".join)
def test_a_command_whose_reader_is_gone_ends_with_its_own_code(command: tuple[str, ...]) -> None:
    """The other end of the pipe is closed before the command writes anything."""
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "edgeflare", *command, "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    ) as process:
        os.close(writer)
        _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (0, b"")


@pytest.mark.parametrize(
    "shell", ['"$@" | head -n 1', '"$@" 2>&1 | true', '"$@" >&- 2>&- <&-', '"$@" 2>/dev/full']
)
def test_a_search_that_nobody_reads_is_written_all_the_same(shell: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    search = ("search", EXAMPLE, *SMALL, "--fail-on", "none", "--out", out)
    done = run(search, f"{shell}; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, complaints(done)) == (0, [])
    assert run(("report", out, "--html", "--summary"), shell).returncode == 0
    assert (out / "report.html").is_file()
    assert (out / "summary.md").is_file()
    refused = run(("report", tmp_path / "none"), f"{shell}; exit ${{PIPESTATUS[0]}}")
    assert (refused.returncode, complaints(refused)) == (2, [])


def test_a_disk_that_takes_no_output_is_told() -> None:
    for command in (("--version",), ("devices", "list"), ("search", "--help")):
        done = run(command, '"$@" >/dev/full')
        assert done.returncode == 3
        assert "No space left on device" in done.stderr
        assert done.stderr.count("\n") == 1


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


def test_the_path_of_a_result_is_printed_as_the_bytes_that_it_is(tmp_path: Path) -> None:
    out = os.fsencode(tmp_path) + b"/r\xff"
    done = run(
        ("search", EXAMPLE, *SMALL, "--fail-on", "none", "--quiet", "--out", os.fsdecode(out))
    )
    assert (done.returncode, os.fsencode(done.stdout)) == (0, out + b"\n")


def test_what_is_printed_unbuffered_is_there_at_once() -> None:
    script = (
        "import os; from edgeflare.cli.standard_streams import harden_streams; harden_streams();"
    )
    words = [sys.executable, "-u", "-c", f"{script} print('made'); os._exit(0)"]
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"made\n"
