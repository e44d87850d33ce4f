"""The command line as a whole, and the commands that ask no models."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

import edgeflare
from called_commands import EXAMPLE, SMALL, call_here, completed
from documents import as_json
from edgeflare.__main__ import start
from edgeflare.cli import doctor, main
from edgeflare.cli.address_space import is_shortage
from edgeflare.cli.agent import serve
from edgeflare.cli.app import LazyCommand, app
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from laboratory import untimed

EDGEFLARE = {
    "edgeflare",
    "edgeflare.cli",
    "edgeflare.cli.address_space",
    "edgeflare.cli.app",
    "edgeflare.cli.further_options",
    "edgeflare.cli.kept_numbers",
    "edgeflare.cli.quiet",
    "edgeflare.crash_report",
    "edgeflare.errors",
    "edgeflare.regular_file",
    "edgeflare.signal_errors",
    "edgeflare.untrusted_text",
}

TYPER = {"annotated_doc", "click", "shellingham", "typer", "typing_extensions"}

WIRE = {"edgeflare_protos"}
"""Has the version, which host and agent share."""

RICH = {"attr", "markdown_it", "mdurl", "pygments", "rich"}

LIST_MODULES = """
import contextlib, sys
before = set(sys.modules)
from edgeflare.cli import main
for words in " ".join(sys.argv[1:]).split(" , "):
    sys.argv[1:] = words.split()
    with contextlib.suppress(SystemExit):
        main()
sys.stderr.write(" ".join(set(sys.modules) - before))
"""
"""Run the command line, and print the modules that were imported by that on stderr."""


def imported_by(*arguments: str) -> set[str]:
    """Return the modules that commands import, of which commas part one from the next."""
    done = subprocess.run(
        [sys.executable, "-c", LIST_MODULES, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("option", "libraries"),
    [("--version", TYPER | WIRE), ("--help", TYPER | WIRE | RICH)],
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


@pytest.mark.slow
def test_what_reads_folders_of_all_kinds_loads_the_room_of_one_alone() -> None:
    commands = " --help , ".join(("search", "replay", "report", "export"))
    modules = {one for one in imported_by(commands, "--help") if "edgeflare.conform." in one}
    assert modules <= {
        "edgeflare.conform.presentation",
        "edgeflare.conform.presentation.conform_words",
    }


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_version(start: Callable[..., Any]) -> None:
    for said in (start("--version", command=("-m", "edgeflare")), call_here("--version")):
        assert said.code == 0
        assert said.out == f"edgeflare {edgeflare.__version__}\n"
        assert said.err == ""


def test_without_a_command_the_help_is_shown() -> None:
    said = call_here()
    assert said.code == 2
    assert "search" in said.out
    assert said.err == ""


def test_a_device_is_shown() -> None:
    said = completed("devices", "show", "emulated-reference")
    shown = json.loads(said.out)
    assert shown["profile"]["kernels"] == "reference"
    assert shown["device"]["runtime"] == "ai-edge-litert"
    assert shown["device"]["cores"] >= 1


def test_the_doctor_finds_what_the_tests_need() -> None:
    said = completed("doctor")
    assert "ai-edge-litert" in said.out
    assert "agent, emulated" in said.out
    assert "MISSING" not in said.out


def test_the_doctor_writes_the_example_into_a_new_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "the example"
    said = call_here("doctor", "--example", folder)
    assert said.out.splitlines()[-1].strip() == (
        f"edgeflare check '{folder}' --device emulated-builtin"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in EXAMPLE.iterdir()
    }
    for there in (folder, folder / "pair.toml" / "example"):
        refused = call_here("doctor", "--example", there)
        assert refused.code == 2
        (line,) = refused.err.splitlines()
        assert str(there) in line


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("platform", "darwin", "the host has to be Linux, also in a container, and this is darwin"),
        ("version_info", (3, 9, 2, "final", 0), "Python 3.10 or newer runs EdgeFlare"),
    ],
    ids=["system", "python"],
)
def test_a_host_that_is_none_is_told_in_one_line(
    name: str,
    value: object,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, name, value)
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"edgeflare: {line}")


def test_a_finished_run_is_reported_as_it_was_at_its_end(finished: Any) -> None:
    said = completed("report", finished.folder)
    assert said.err == ""
    told, verdict, _ = finished.said.out.partition("exit code 1: ")
    assert verdict
    assert said.out == told


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "edgeflare", "agent", "serve", "--store", str(tmp_path / "m")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        process.kill()


@pytest.mark.slow
def test_a_served_agent_does_a_whole_search_and_stops_on_ctrl_c(
    agent: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert agent.stdout is not None
    ready = json.loads(agent.stdout.readline())
    assert ready["pid"] == agent.pid

    search = (
        *("search", EXAMPLE, "--first", "6", "--strategy", "random", "--max-queries", "250"),
        *("--shrink", "0", "--within", "none"),
    )
    device = f"grpc://127.0.0.1:{ready['port']}"
    completed(*search, "--out", tmp_path / "run", "--device", device, code=1)

    here = load_document(RunDirectory(tmp_path / "run"))
    assert here.devices[0].name == device
    assert here.devices[0].provenance.transport == "address"
    # A profile on the spot runs XNNPACK, as the shipped one of that name does.
    call_here(*search, "--out", tmp_path / "same", "--device", "emulated-xnnpack")
    there = load_document(RunDirectory(tmp_path / "same"))
    shas = [
        [entry["sha256"] for entry in untimed(as_json(run))["findings"]] for run in (here, there)
    ]
    assert shas[0] == shas[1]

    os.kill(agent.pid, signal.SIGINT)
    assert agent.wait(200) == 0


@pytest.mark.slow
def test_an_agent_that_may_not_listen_says_why(start: Callable[..., Any]) -> None:
    said = start("agent", "serve", "--host", "0.0.0.0")  # noqa: S104 - which is refused
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert "--tls-cert" in line


def test_an_agent_imports_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Context:
        args = ("--help",)

    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _program, command: started.append(command))
    serve(Context())  # type: ignore[arg-type]
    for name in ("argparse.py", "grpc.py", "runpy.py", "edgeflare_agent.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the working directory')")
    said = subprocess.run(
        started[0], cwd=tmp_path, check=False, timeout=300, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    assert "usage: edgeflare-agent" in said.stdout


Call = Callable[..., Any]


@pytest.fixture
def run(finished: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


@pytest.mark.slow
def test_a_search_says_its_run_directory_alone(start: Call, tmp_path: Path) -> None:
    said = start("search", EXAMPLE, *SMALL, "--out", tmp_path / "run", "--quiet")
    assert (said.code, said.out, said.err) == (1, f"{tmp_path / 'run'}\n", "")
    assert (tmp_path / "run" / "run.json").is_file()


@pytest.mark.parametrize(
    ("command", "options", "made"),
    [
        ("report", ("--csv", "--summary"), ("findings.csv", "summary.md")),
        ("report", (), ()),
        ("replay", ("--out", "{}/again"), ("again",)),
    ],
)
def test_the_paths_of_what_was_made_are_all_that_is_said(
    command: str, options: tuple[str, ...], made: tuple[str, ...], run: Path
) -> None:
    said = call_here(command, run, *(option.format(run) for option in options), "--quiet")
    assert said.out.splitlines() == [str(run / name) for name in made]
    assert said.err == ""
    assert said.code == (1 if command == "replay" else 0)
    assert all((run / name).exists() for name in made)


def test_a_finding_is_explained_and_exported_quietly(finished: Any, run: Path) -> None:
    (finding, *_) = sorted((run / "findings").iterdir())
    explained = call_here("explain", run, finding.name, "--quiet")
    assert (explained.code, explained.out, explained.err) == (0, f"{run / 'explain.json'}\n", "")
    exported = call_here("export", run, finding.name, "--quiet")
    (archive,) = run.glob("finding-*.zip")
    assert (exported.code, exported.out, exported.err) == (0, f"{archive}\n", "")


def test_errors_are_still_said(tmp_path: Path) -> None:
    bad = ("--max-linf", "far")
    loud = call_here("search", EXAMPLE, *bad)
    quiet = call_here("search", EXAMPLE, *bad, "--quiet")
    assert quiet == loud
    assert "--max-linf far" in quiet.complaint()
    unreadable = call_here("search", EXAMPLE, "--quiet", "--max-queries", "many")
    assert "--max-queries" in unreadable.complaint()
    streams = sys.stdout, sys.stderr
    assert (
        call_here("report", tmp_path / "absent", "--quiet")
        .complaint()
        .startswith("there is no run")
    )
    assert (sys.stdout, sys.stderr) == streams
