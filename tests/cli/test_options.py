"""Options that commands share, what Typer says of them, and what a shell completes."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, fill
from typing import Annotated, get_args

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from called_commands import EXAMPLE, call_here, completed
from edgeflare.cli import reworded, search_options
from edgeflare.cli.bench import bench
from edgeflare.cli.fleet_options import FleetOptions, user_words
from edgeflare.cli.option_values import read_whole_numbers
from edgeflare.cli.quiet import Quietable
from edgeflare.cli.rank import rank
from edgeflare.cli.run_options import RunFolder, with_option_groups
from edgeflare.cli.search import search
from edgeflare.cli.strategies import rewrapped
from edgeflare.cli.survey_options import Conditions
from edgeflare.conditions.condition_choice import chosen_conditions
from edgeflare.errors import UserError
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import MOST
from edgeflare.run.run_directory import RunDirectory
from edgeflare.strategies.strategy_registry import pool_strategies
from edgeflare_protos.kernel_sets import KERNEL_SETS


@dataclass(frozen=True)
class Size:
    """How large."""

    width: Annotated[int, typer.Option(help="In pixels.")] = 3
    height: Annotated[int, typer.Option()] = 4


@with_option_groups
def area(
    name: Annotated[str, typer.Argument()], *, before: bool = False, size: Size, after: bool = False
) -> int:
    """Print an area."""
    typer.echo(f"{name} {before} {size.width * size.height} {after}")
    return 0


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["wall"], "wall False 12 False"),
        (["wall", "--height", "5", "--after"], "wall False 15 True"),
        (["--width", "2", "--before", "wall"], "wall True 8 False"),
    ],
)
def test_the_fields_of_a_group_are_options(arguments: list[str], printed: str) -> None:
    app = typer.Typer()
    app.command()(area)
    assert CliRunner().invoke(app, arguments).output.strip() == printed


def test_the_options_stand_in_the_place_of_their_group() -> None:
    assert list(inspect.signature(area).parameters) == [
        "name",
        "before",
        "width",
        "height",
        "after",
    ]


@pytest.mark.parametrize("option", ["ties", "max_queries", "max_time", "max_linf", "max_l2"])
def test_searching_commands_have_the_same_limits_and_bounds(option: str) -> None:
    here, *others = (
        inspect.signature(command).parameters[option] for command in (search, rank, bench)
    )
    for other in others:
        assert (other.default, other.annotation) == (here.default, here.annotation)


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        (RunFolder(resume=True), "--resume has to know which run: add --out RUN"),
        (RunFolder(Path("run"), overwrite=True, resume=True), "give one of them"),
    ],
)
def test_contradictions_are_refused(folder: RunFolder, message: str) -> None:
    with pytest.raises(UserError, match=message):
        folder.require_one_way()


def test_a_run_that_begins_is_not_written_over_another(tmp_path: Path) -> None:
    os.close(RunDirectory.claim(tmp_path, overwrite=False)[1])
    write_atomically(tmp_path / "run.json", b"{}")
    with pytest.raises(UserError, match="holds a run already"):
        RunFolder(tmp_path).choose("pair")
    assert RunFolder(tmp_path, overwrite=True).choose("pair") == tmp_path
    assert RunFolder(tmp_path, resume=True).choose("pair") == tmp_path


def test_by_default_a_run_lies_in_a_new_folder_of_runs() -> None:
    paths = [RunFolder().choose("pair") for _ in range(10)]
    assert {path.parent for path in paths} == {Path("runs")}
    assert all(path.name.startswith("pair-") for path in paths)
    assert len(set(paths)) == 10  # in one second


def test_the_examples_of_conditions_are_conditions() -> None:
    _, option = get_args(Conditions)
    examples = re.search(r"(\S+) or (\S+);", option.help)
    assert examples
    assert all(chosen_conditions("image", one) for one in examples.groups())


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Input should be greater than or equal to 1", "expected 1 or more"),
        ("Input should be less than or equal to 1", "expected 1 or less"),
        (
            "Input should be a valid integer, unable to parse string as an integer",
            "expected a whole number",
        ),
        ("Input should be a valid number, unable to parse", "expected a number"),
        ("Value error, nan is not a finite number", "nan is not a finite number"),
        ("0 is not in the range x>=1.", "0 is not in the range x>=1."),
        ("No such option: --jsonl", "No such option: --jsonl"),
    ],
)
def test_the_words_are_ours(theirs: str, ours: str) -> None:
    assert reworded(f"Invalid value for '--limit': {theirs}") == (
        f"Invalid value for '--limit': {ours}"
    )


@pytest.mark.parametrize("text", ["0,-1", "1.5", f"0,{MOST + 1}", "1" * 5000])
def test_run_seeds_that_no_run_can_be_read_with_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=f"expected whole numbers from 0 to {MOST}"):
        read_whole_numbers("--rng-seeds", text)
    assert read_whole_numbers("--rng-seeds", f"0,{MOST}") == (0, MOST)


@pytest.mark.parametrize(("number", "code"), [(MOST, 0), (MOST + 1, 2), (10**30, 2)])
def test_a_number_that_no_run_can_be_read_with_is_refused(number: int, code: int) -> None:
    app = typer.Typer()

    @app.command(cls=Quietable)
    def search(max_queries: Annotated[int, typer.Option(min=1)] = 1) -> None:
        assert max_queries <= MOST

    said = CliRunner().invoke(app, ["--max-queries", str(number)])
    assert said.exit_code == code
    assert ("--max-queries" in said.output) == (code == 2)


NARROW = dedent(
    """\
    A summary
    of two lines.

    Heading
        - An item
          of two lines.
        - Another.
        10. A numbered
            one."""
)

WIDE = dedent(
    """\
    A summary of two lines.

    Heading
        - An item of two lines.
        - Another.
        10. A numbered one."""
)


def test_lines_are_joined_within_a_paragraph_and_an_item() -> None:
    assert rewrapped(NARROW, 80) == WIDE
    assert rewrapped(rewrapped(WIDE, 18), 80) == WIDE
    assert rewrapped("", 18) == ""


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1), st.integers(9, 60))
def test_a_paragraph_is_the_same_however_it_was_wrapped(words: list[str], width: int) -> None:
    assert rewrapped(fill(" ".join(words), width), 40) == fill(" ".join(words), 40)


Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Return what completes the last word of a command line, as in bash."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_EDGEFLARE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        said = call_here()
        assert said.err == ""
        words: list[str] = said.out.splitlines()
        return words

    return complete


def test_commands_and_options(complete: Complete) -> None:
    assert complete("edgeflare rep") == ["replay", "report", "repair"]
    assert complete("edgeflare search --fail") == ["--fail-on"]


@pytest.mark.parametrize(
    "before",
    [
        "search pair --device",
        "bench pair --device",
        "replay run --device",
        "explain run --device",
        "devices check",
        "agent install --device",
    ],
)
def test_devices_shipped_and_of_ones_own(
    before: str, complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "device_profiles").mkdir()
    (tmp_path / "device_profiles" / "emulated-mine.toml").write_text('extends = "emulated-builtin"')
    (tmp_path / "device_profiles" / "emulated-broken.toml").write_text("threads = 0")
    shipped = {f"emulated-{name}" for name in KERNEL_SETS.keys() - {"npu"}}
    others = {"emulated-all", "emulated-builtin-slow", "emulated-mine"}
    assert complete(f"edgeflare {before} emulated-") == sorted(shipped | others)
    assert complete(f"edgeflare {before} ss") == ["ssh://"]


def test_the_help_names_the_strategies_that_draw_from_operators() -> None:
    (option,) = get_args(search_options.Operators)[1:]
    *most, last = pool_strategies()
    assert f"strategies {', '.join(most)} and {last} draw from them" in option.help


@pytest.mark.parametrize("before", ["search --strategy", "bench --strategy", "rank --strategy"])
def test_strategies(before: str, complete: Complete) -> None:
    assert complete(f"edgeflare {before} boundary") == ["boundary", "boundary-mh"]


def test_parameters_of_the_strategy_that_was_chosen(complete: Complete) -> None:
    assert complete("edgeflare search pair --set first") == ["first_leap="]
    assert complete("edgeflare search pair --strategy diffchaser --set po") == ["population="]
    assert complete("edgeflare search pair --strategy random --set po") == [""]


@pytest.mark.parametrize("before", ["report", "explain", "compare one", "replay run --baseline"])
def test_run_directories_and_no_others(
    before: str, complete: Complete, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        *("runs/first/run.db", "runs/second/run.json", "runs/third/conform.db"),
        "runs/no-run/report.html",
    ):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert complete(f"edgeflare {before} ru") == ["runs/first", "runs/second", "runs/third"]
    assert complete(f"edgeflare {before} runs/f") == ["runs/first"]
    assert complete(f"edgeflare {before} runs/[f]") == [""]


@pytest.mark.slow
def test_bash_completes_with_what_is_shown_for_it() -> None:
    edgeflare = Path(sys.executable).with_name("edgeflare")
    script = """
        eval "$("$0" --show-completion bash)"
        COMP_WORDS=(edgeflare search pair --device emulated-r) COMP_CWORD=4
        _edgeflare_completion "$0"
        echo "${COMPREPLY[*]}"
    """
    done = subprocess.run(
        ["bash", "-c", script, edgeflare], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "emulated-reference\n"
    assert done.stderr == ""


KEPT = ["search", "pair", "--first", "5", "--find=any", "--chains", "3"]

OF_THE_FLEET = [
    ["--fleet", "local"],
    ["--fleet=h:1"],
    ["--fleet-file", "fleet.toml"],
    ["--unit-seeds=4"],
    ["--fleet-devices", "3"],
    ["--out", "--resume"],
    ["--device", "emulated-builtin"],
    ["--seed-ids", "0:5"],
    ["--fail-on=any"],
    ["--allow", "0.1"],
    ["--resume"],
    ["--overwrite"],
    ["--quiet"],
]


@given(st.permutations([*([one] for one in KEPT[:2]), *OF_THE_FLEET]))
def test_units_have_neither_place_nor_folder(words: list[list[str]]) -> None:
    flat = [word for group in words for word in group]
    without = {"--seed-ids", "--fail-on", "--allow"}
    told = user_words([*flat, *KEPT[2:]], without=without, without_flags={"--quiet"})
    positional = [word for word in flat if word in KEPT[:2]]
    assert list(told) == [*positional, *KEPT[2:]]


def test_what_stands_behind_two_dashes_is_no_option() -> None:
    assert user_words(["pair", "--out", "x", "--", "--out", "y"]) == ("pair", "--", "--out", "y")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (FleetOptions(fleet_devices=4), "belong to --fleet"),
        (FleetOptions(fleet_file=Path("f")), "belong to --fleet"),
        (FleetOptions(fleet="h:1"), "--fleet-file"),
        (FleetOptions(fleet=""), "names no cluster"),
        (FleetOptions(fleet="local", fleet_file=Path("f")), "leave out --fleet-file"),
        (FleetOptions(fleet="h:1", fleet_file=Path("f"), fleet_devices=3), "--fleet-file says it"),
    ],
)
def test_options_that_lack_another_are_refused(
    options: FleetOptions, expected: str, refusal: Callable[..., str]
) -> None:
    assert expected in refusal(options.require_complete)


def test_complete_options_are_not() -> None:
    for options in (
        FleetOptions(),
        FleetOptions(fleet="local", fleet_devices=3),
        FleetOptions(fleet="h:1", fleet_file=Path("f")),
    ):
        options.require_complete()


def test_a_dry_run_says_what_refining_may_cost_on_all_hosts(tmp_path: Path) -> None:
    words = ("--fleet", "local", "--first", "20", "--seed-ids", "4:20", "--unit-seeds", "8")
    out = tmp_path / "run"
    said = completed(
        *("search", EXAMPLE, *words, "--device", "emulated-builtin", "--shrink", "99"),
        *("--dry-run", "--out", out),
    )
    assert "units that evaluate the seeds: 1; that search from them: 2" in said.out
    assert "refined by at most 100 queries more, 1,600 for 16: --strengthen 0" in said.out
    assert not list(tmp_path.iterdir())
