"""The command line as a whole: what it imports for a question, and what it says of Ctrl-C."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
from typer.main import get_group

from edgeflare.cli import doctor, main
from edgeflare.cli.address_space import is_shortage
from edgeflare.cli.app import LazyCommand, app

EDGEFLARE = {
    "edgeflare",
    "edgeflare.cli",
    "edgeflare.cli.address_space",
    "edgeflare.cli.app",
    "edgeflare.cli.quiet",
    "edgeflare.cli.typer_messages",
    "edgeflare.crash_report",
    "edgeflare.errors",
    "edgeflare.regular_file",
    "edgeflare.untrusted_text",
}
TYPER = {"annotated_doc", "click", "shellingham", "typer", "typing_extensions"}
RICH = {"attr", "markdown_it", "mdurl", "pygments", "rich"}

LIST_MODULES = """
import sys
before = set(sys.modules)
from edgeflare.cli import main
try:
    main()
finally:
    sys.stderr.write(" ".join(set(sys.modules) - before))
"""
"""Run the command line, and print the modules that were imported by that on stderr."""


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("option", "libraries"),
    [("--version", TYPER), ("--help", TYPER | RICH)],
    ids=["version", "help"],
)
def test_a_question_about_the_whole_imports_no_command(option: str, libraries: set[str]) -> None:
    modules = imported_by(option)
    packages = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert packages - {"edgeflare"} <= libraries
    assert {name for name in modules if name.partition(".")[0] == "edgeflare"} == EDGEFLARE


@pytest.mark.slow
def test_a_command_imports_no_other_command() -> None:
    modules = imported_by("doctor", "--help")
    assert "edgeflare.cli.doctor" in modules
    others = {f"edgeflare.cli.{name}" for name in get_group(app).commands} - {
        "edgeflare.cli.doctor"
    }
    assert others.isdisjoint(modules)


@pytest.mark.parametrize("name", get_group(app).commands)
def test_the_sentence_of_a_command_is_the_first_of_its_own_help(name: str) -> None:
    command = get_group(app).commands[name]
    assert isinstance(command, LazyCommand)
    loaded = command.load()
    assert loaded.name == name
    assert command.help == " ".join(loaded.help.partition("\n\n")[0].split())


def test_ctrl_c_is_told_where_a_command_does_not_heed_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "doctor", stopped)
    monkeypatch.setattr(sys, "argv", ["edgeflare", "doctor"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "edgeflare: stopped by Ctrl-C\n"


@pytest.mark.parametrize(
    ("arguments", "mebibytes", "needed"),
    [(["search", "pair"], 1000, "2,048"), (["report", "runs/x", "--html"], 500, "768")],
)
def test_too_small_an_address_space_is_told_before_a_library_dies_of_it(
    arguments: list[str], mebibytes: int, needed: str
) -> None:
    limited = (resource.RLIMIT_AS, (mebibytes << 20, resource.RLIM_INFINITY))
    command = [sys.executable, "-c", f"import resource; resource.setrlimit(*{limited!r}); {_MAIN}"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == (
        f"edgeflare: the address space is limited to {mebibytes:,} MiB, and `edgeflare"
        f" {arguments[0]}` needs {needed} MiB: type ulimit -v unlimited, and bound memory with a"
        " container instead\n"
    )


def test_help_needs_less_than_the_command() -> None:
    limited = (resource.RLIMIT_AS, (1000 << 20, resource.RLIM_INFINITY))
    command = [sys.executable, "-c", f"import resource; resource.setrlimit(*{limited!r}); {_MAIN}"]
    done = subprocess.run([*command, "search", "--help"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (ImportError("libx.so: cannot allocate memory"), True),
        # Which more memory does not mend.
        (ImportError("libgomp.so.1: cannot allocate memory in static TLS block"), False),
        (ImportError("no module named x"), False),
    ],
)
def test_a_shortage_of_memory_is_known(error: Exception, expected: bool) -> None:
    assert is_shortage(error) is expected


_MAIN = "from edgeflare.cli import main; main()"
