"""The command line as a whole: what it imports for a question, and what it says of Ctrl-C."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_group

from edgeflare.cli import doctor, main
from edgeflare.cli.app import LazyCommand, app

EDGEFLARE = {
    "edgeflare",
    "edgeflare.cli",
    "edgeflare.cli.app",
    "edgeflare.cli.quiet",
    "edgeflare.cli.typer_messages",
    "edgeflare.crash_report",
    "edgeflare.errors",
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
    assert capsys.readouterr().err == "edgeflare: stopped\n"
