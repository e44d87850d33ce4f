"""Kill whole commands before a step that they do on files, and see what the next command does.

    python benchmarks/command_kills.py --out runs/kills --kills 100

The user has put files of their own into the folder that a command writes. The command is killed,
with SIGKILL, before one of its renames, writes and removals, which the seed draws, or with a new
file made and empty. Then it is typed again, the same or with --resume, and changed as each refusal
says. At fault is a kill after which something of the user's is gone or changed, a command tells of
a mistake in EdgeFlare or says nothing, asks for another folder where the first was EdgeFlare's, the
result is not that of a command that is left in peace, or a process, a file or a folder is left that
belongs to no result. A command that ends before its step is judged likewise.

`OUT/right` keeps what commands start from and `OUT/cases.jsonl` each kill, and the same command
goes on where it was stopped. Of `fleet` the cluster is stood in for: units are done once, and each
attempt ends as that did. `fleet on Ray` needs root and Ray: its hosts are network namespaces.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import command_server
from attempts_in_memory import BegunAttempt
from attempts_of_this_process import attempts_here, made_attempt
from edgeflare.fleet.work.unit_attempt import AttemptReport, AttemptResult
from edgeflare.record.folder_contents import read_contents
from fleet_hosts import CLASS, ROOT, stood_in_fleet, why_no_hosts
from killed_commands import (
    ELSEWHERE,
    OUT,
    CommandCall,
    Typed,
    adopt_orphans,
    faults_of,
    kind_of_temporary,
    names_below,
    place_of,
    typed_again,
)
from kills import Kill, put_notes, remove_notes, require_notes
from processes import children
from run_content import run_content

SEARCH: Final = ("--fail-on", "none", "--max-queries")
MADE: Final = (OUT, ELSEWHERE)
MENDED: Final = ("ended what a killed command had begun", "removed what a killed command had begun")

_TIMED: Final = frozenset({"front", "latency", "latency_ratio", "turns"})
"""Keys of a repair's document that depend on how fast an inference is."""

_CLONE_NEWNET: Final = 0x40000000


@dataclass(frozen=True)
class KilledCommand:
    """A command that is killed.

    Attributes:
        make: types what has to be there.
        words: of the command, without --out.
        content: returns what it has made, without times.
        resumes: whether --resume goes on with it.
        noted: folders within that it writes, into which the user puts files too.
        cluster: on which it runs: "" for none, "here" for one that is stood in for, or "ray".
        temporary: what a kill may leave in the folder for temporary files, up to what is random.

    """

    make: Callable[[CommandCall], None]
    words: tuple[str, ...]
    content: Callable[[Path], Any]
    resumes: bool = False
    noted: tuple[str, ...] = ()
    cluster: str = ""
    temporary: frozenset[str] = frozenset()


def _make_parts(call: CommandCall) -> None:
    short = ("search", "pair", "--first", "4", *SEARCH, "60", "--shrink", "10")
    _done(call, *short, "--screen-only", "--out", "screening")
    for name, ids in (("one", "0:2"), ("other", "2:4")):
        _done(call, *short, "--seed-ids", ids, "--screening", "screening", "--out", name)


def _make_merged(call: CommandCall) -> None:
    _make_parts(call)
    _done(call, "merge", "one", "screening", "--out", OUT)


def _make_board(call: CommandCall) -> None:
    """Make a device that offers some of this host's kernel sets, for the sake of time."""
    launcher, profile = call.place / "python", call.place / "device_profiles" / "board.toml"
    launcher.write_text(_LAUNCHER.format(python=sys.executable))
    launcher.chmod(0o755)
    profile.parent.mkdir()
    profile.write_text(f'transport = "emulated"\npython = "{launcher}"\n')


_LAUNCHER: Final = """\
#!{python}
import runpy, sys
from edgeflare_agent.runtime import model_runtime
offered = model_runtime.offered_kernel_sets
few = ("builtin", "reference")
model_runtime.offered_kernel_sets = lambda: tuple(one for one in offered() if one in few)
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def _make_matrix(call: CommandCall) -> None:
    _make_board(call)
    _done(call, *_MATRIX, "--device", "emulated-all", "--rng-seed", "1", "--out", OUT)


def _make_repair(call: CommandCall) -> None:
    _done(call, *REPAIR, "--out", OUT)


def _make_run(call: CommandCall) -> None:
    _done(call, *_SHORTEST, "--rng-seed", "1", "--out", OUT)


def _make_nothing(call: CommandCall) -> None:
    """Make nothing: the pair is there."""


def _done(call: CommandCall, *words: str) -> None:
    typed = call.type(words)
    if typed.code:
        sys.exit(f"{' '.join(words)} ended in {typed.code}: {typed.said}")


MERGE: Final = ("merge", "one", "other", "screening")
_MATRIX: Final = (
    *("search", "pair", "--find", "kernel", "--first", "2"),
    *(*SEARCH, "10", "--shrink", "0", "--within", "none"),
)
MATRIX: Final = (*_MATRIX, "--device", "board/all", "--trust")
REPAIR: Final = (
    *("repair", "pair", "--method", "weights-only", "--max-latency", "none"),
    *("--max-size", "none"),
)
_SHORTEST: Final = ("search", "pair", "--first", "2", *SEARCH, "20", "--shrink", "0")
FLEET: Final = (
    *(*_SHORTEST, "--unit-seeds", "1", "--device", CLASS),
    *("--fleet", "local", "--fleet-devices", "2"),
)
ON_RAY: Final = (*FLEET[:-4], "--fleet", "HEAD", "--fleet-file", "FILE")


def _matrix_content(out: Path) -> dict[str, Any]:
    runs = {one.name: run_content(one) for one in sorted(out.iterdir()) if _is_run(one)}
    document = _without(json.loads((out / "matrix.json").read_bytes()), {"seconds"})
    return {**runs, "matrix": document}


def _is_run(folder: Path) -> bool:
    return (folder / "run.db").is_file()


def _repair_content(out: Path) -> dict[str, Any]:
    files = {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in out.rglob("*")
        if path.suffix in (".tflite", ".png", ".toml")
    }
    return {**files, "document": _without(json.loads((out / "repair.json").read_bytes()), _TIMED)}


def _without(value: Any, keys: frozenset[str] | set[str]) -> Any:
    if isinstance(value, Mapping):
        kept = {key: one for key, one in value.items() if key not in keys}
        timed = re.compile(r"seconds|ratio(_|$)")
        return {key: _without(one, keys) for key, one in kept.items() if not timed.match(key)}
    return [_without(one, keys) for one in value] if isinstance(value, list) else value


OF_DEVICES: Final = frozenset({"edgeflare-scratch-", "edgeflare-"})
"""Folders of agents, which a later agent removes, and of models that this host runs."""

OF_FLEETS: Final = OF_DEVICES | {"edgeflare-journal-"}

KINDS: Final[Mapping[str, KilledCommand]] = {
    "merge": KilledCommand(_make_parts, MERGE, run_content),
    "merge, over a run": KilledCommand(_make_merged, (*MERGE, "--overwrite"), run_content),
    "matrix": KilledCommand(
        _make_board, MATRIX, _matrix_content, True, ("builtin",), temporary=OF_DEVICES
    ),
    # --resume would leave the runs of kernel sets that only the earlier matrix has.
    "matrix, over one": KilledCommand(
        _make_matrix,
        (*MATRIX, "--overwrite"),
        _matrix_content,
        noted=("builtin", "micro"),
        temporary=OF_DEVICES,
    ),
    "repair": KilledCommand(_make_nothing, REPAIR, _repair_content, True, temporary=OF_DEVICES),
    "repair, gone on with": KilledCommand(
        _make_repair, (*REPAIR, "--resume"), _repair_content, True, temporary=OF_DEVICES
    ),
    "fleet": KilledCommand(
        _make_nothing, FLEET, run_content, True, cluster="here", temporary=OF_FLEETS
    ),
    "fleet, over a run": KilledCommand(
        _make_run,
        (*FLEET, "--overwrite"),
        run_content,
        True,
        cluster="here",
        temporary=OF_FLEETS,
    ),
    "fleet on Ray": KilledCommand(
        _make_run,
        (*ON_RAY, "--overwrite"),
        run_content,
        True,
        cluster="ray",
        temporary=OF_FLEETS,
    ),
}


@dataclass
class Trial:
    """A kind of command in its place.

    Attributes:
        kind: of it.
        call: types commands in the place.
        right: what each of them starts from.
        words: of the command.
        steps: how many one does that is left in peace.
        expected: what that makes.
        names: of the files and folders that it leaves.

    """

    kind: KilledCommand
    call: CommandCall
    right: Path
    words: tuple[str, ...]
    steps: int = 0
    expected: Any = None
    names: frozenset[str] = frozenset()

    @property
    def place(self) -> Path:
        """The working directory of the command."""
        return self.call.place

    def restore(self) -> None:
        """Have all lie there as before the command."""
        temporary = Path(self.call.environment["TMPDIR"])
        for folder in (self.place, temporary):
            shutil.rmtree(folder, ignore_errors=True)
        temporary.mkdir(parents=True)
        shutil.copytree(self.right, self.place, symlinks=True)

    def leave_in_peace(self) -> None:
        """Run the command to its end, and keep what that makes."""
        self.restore()
        put_notes(*(noted := self.noted()))
        typed = self.call.type([*self.words, "--out", OUT])
        if typed.fault or typed.code:
            sys.exit(f"{' '.join(typed.words)} ended in {typed.code}: {typed.said}")
        require_notes(*noted)
        remove_notes(*noted)
        self.steps, self.expected = typed.steps, self.kind.content(self.place / OUT)
        self.names = names_below(self.place / OUT)

    def noted(self) -> list[Path]:
        """Return the folders that the user puts files into, as far as they are there."""
        folders = [self.place / OUT, *(self.place / OUT / one for one in self.kind.noted)]
        return [one for one in folders if one.is_dir()]

    def kill(self, random: Random) -> dict[str, Any]:
        """Kill the command, type what follows, and return what came of it."""
        self.restore()
        put_notes(*(before := self.noted()))
        others = _contents(self.place)
        at, began = (
            Kill(random.randint(1, self.steps), torn=random.random() < 0.3),
            time.monotonic(),
        )
        killed = self.call.type([*self.words, "--out", OUT], at, watcher=random.random() < 0.5)
        had_ended = killed.steps < at.step
        gone = self.call.seconds_to_go() if had_ended or random.random() < 0.5 else 0.0
        faults = _faults_of_notes(before)
        noted, said, elsewhere = before, [killed], False
        if not had_ended:
            out = self.place / OUT
            elsewhere = out.is_dir() and read_contents(out) is None  # not EdgeFlare's yet
            put_notes(*(noted := self.noted()))
            said = typed_again(self.call, [self._next_words(random), self.words])
            gone = None if gone is None else self.call.seconds_to_go()
        faults += faults_of(said, elsewhere=elsewhere)
        if not said[-1].code:
            faults += self._faults(said[-1], noted)
        if gone is None:
            faults.append("a process stays")
        if _contents(self.place) != others:
            faults.append("something beside it is changed")
        temporary = Path(self.call.environment["TMPDIR"])
        left = sorted(kind_of_temporary(one.name) for one in temporary.iterdir())
        if unknown := {*left} - self.kind.temporary:
            faults.append(f"left in the folder for temporary files: {sorted(unknown)}")
        return {
            "fault": "; ".join(faults),
            "step": at.step,
            "torn": at.torn,
            "way": "had ended" if had_ended else _way(said),
            "gone": gone,
            "temporary": left,
            "seconds": round(time.monotonic() - began, 1),
            "said": [[" ".join(one.words), one.code, one.said[-300:]] for one in said],
        }

    def _next_words(self, random: Random) -> tuple[str, ...]:
        """Return what is typed first after a kill: the same, or that with --resume."""
        if self.kind.resumes and random.random() < 0.5:
            return (*(one for one in self.words if one != "--overwrite"), "--resume")
        return self.words

    def _faults(self, typed: Typed, noted: list[Path]) -> Iterator[str]:
        """Yield what is not as it should be once the last command has ended well."""
        out = self.place / place_of(typed)
        yield from _faults_of_notes(noted)
        remove_notes(*noted)
        if self.kind.content(out) != self.expected:
            yield "the result differs"
        if (names := names_below(out)) != self.names:
            yield f"files or folders differ: {sorted(names ^ self.names)}"
        if hidden := [*out.rglob(".*"), *self.place.glob("*.fleet/**/.*")]:
            yield f"left: {[str(one.relative_to(self.place)) for one in hidden]}"


def _way(said: list[Typed]) -> str:
    """Return what the commands after a kill have done, in a word."""
    if any(word in one.said for one in said for word in MENDED):
        return "mended"
    return "told" if len(said) > 1 else "went on" if "--resume" in said[0].words else "anew"


def _faults_of_notes(noted: list[Path]) -> list[str]:
    """Return what has come of the user's files in folders that is a fault."""
    try:
        require_notes(*noted)
    except (AssertionError, OSError):
        return ["something of the user's is gone or changed"]
    return []


def _contents(folder: Path) -> dict[str, bytes]:
    """Return what no command has to change in the user's folder: of files the content too."""
    return {
        name: b"" if name.endswith("/") else (folder / name).read_bytes()
        for name in sorted(names_below(folder))
        if Path(name).parts[0].partition(".")[0] not in MADE
    }


def make_pair(folder: Path) -> None:
    """Make the example with as many seeds as a repair needs at least."""
    example = ROOT / "examples" / "fashion_lenet4"
    folder.mkdir(parents=True)
    for name in ("pair.toml", "original.tflite", "compressed.tflite"):
        shutil.copy(example / name, folder)
    with np.load(example / "seeds.npz") as seeds:
        np.savez(folder / "seeds.npz", **{name: rows[:50] for name, rows in seeds.items()})


@contextmanager
def prepared(name: str, kind: KilledCommand, folder: Path) -> Iterator[Trial]:
    """Make what a kind of command starts from, unless an earlier benchmark has."""
    own = re.sub(r"\W+", "-", name)
    right, place = folder / "right" / own, folder / "place" / own
    temporary = folder / "tmp" / own
    environment = {
        "HOME": str(folder / "home"),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    with _cluster(kind, folder / "cluster" / own) as (words, become, more):
        known = frozenset(children(os.getpid()))
        call = CommandCall(place, {**environment, **more}, become, known)
        trial = Trial(kind, call, right, words)
        if not right.is_dir():
            for one in (place, temporary):
                shutil.rmtree(one, ignore_errors=True)
            temporary.mkdir(parents=True)
            make_pair(place / "pair")
            kind.make(call)
            right.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(place, right)
        trial.leave_in_peace()
        yield trial


@contextmanager
def _cluster(
    kind: KilledCommand, folder: Path
) -> Iterator[tuple[tuple[str, ...], Callable[[], None], Mapping[str, str]]]:
    """Yield the words of a command, what its process becomes first, and its environment."""
    if kind.cluster == "here":
        yield kind.words, partial(_stand_in_for_a_cluster, folder), {}
        return
    if kind.cluster != "ray":
        yield kind.words, lambda: None, {}
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with stood_in_fleet(folder, 2) as fleet:
        fleet.start()
        told = {"HEAD": fleet.address, "FILE": str(fleet.file)}
        enter = partial(_enter_namespace, f"/var/run/netns/{fleet.head.namespace}")
        ray = {key: one for key, one in fleet.head.environment.items() if key.startswith("RAY_")}
        yield tuple(told.get(one, one) for one in kind.words), enter, ray


def _enter_namespace(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    if ctypes.CDLL(None).setns(handle, _CLONE_NEWNET):
        raise OSError(f"cannot enter {path}")
    os.close(handle)


def _stand_in_for_a_cluster(folder: Path) -> None:
    """Have this process make each attempt itself, unless it was made before."""
    folder.mkdir(parents=True, exist_ok=True)
    here = attempts_here(pytest.MonkeyPatch(), folder / "cache")

    def kept(unit: str) -> AttemptResult:
        return msgspec.json.decode((folder / unit).read_bytes(), type=AttemptResult)

    def outcome(attempt: BegunAttempt) -> AttemptResult:
        unit = attempt.order.unit
        if not (folder / unit).is_file():
            (folder / unit).write_bytes(msgspec.json.encode(made_attempt(attempt)))
        return kept(unit)

    def told() -> list[AttemptReport]:
        """Report the run of the last attempt, as one does that is still at work."""
        orders = [one.order for one in here.begun[-1:] if (folder / one.order.unit).is_file()]
        return [
            AttemptReport(one.unit, one.number, 0, 0, 0.0, kept(one.unit).run) for one in orders
        ]

    here.outcome, here.told = outcome, told


def known_cases(path: Path, name: str, seed: str) -> dict[int, dict[str, Any]]:
    """Return the kills of a kind that have been done, by their numbers."""
    if not path.is_file():
        return {}
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    return {one["number"]: one for one in cases if (one["kind"], one["seed"]) == (name, seed)}


def run_kind(name: str, options: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Do the kills of a kind that are left; return all."""
    path = options.out / "cases.jsonl"
    known = known_cases(path, name, options.seed)
    wanted = [number for number in range(options.kills) if number not in known]
    if not wanted:
        return known
    with prepared(name, KINDS[name], options.out) as trial, path.open("a") as log:
        print(f"{name}: {trial.steps} steps", flush=True)
        for number in wanted:
            random = Random(f"{options.seed}/{name}/{number}")  # noqa: S311 - no secret
            case = trial.kill(random)
            known[number] = {"kind": name, "seed": options.seed, "number": number, **case}
            log.write(json.dumps(known[number]) + "\n")
            log.flush()
            if case["fault"]:
                print(f"{name} {number}: {case['fault']}", flush=True)
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of all that is made")
    parser.add_argument("--command", action="append", choices=[*KINDS], help="default: all")
    parser.add_argument("--kills", type=int, default=100, help="of each (default: 100)")
    parser.add_argument("--seed", default="0", help="decides the steps (default: 0)")
    options = parser.parse_args()
    wanted = options.command or [*KINDS]
    if any(KINDS[name].cluster == "ray" for name in wanted) and (why := why_no_hosts()):
        parser.error(why)
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which removes the hosts of a fleet
    command_server.import_commands()  # here, so that no fork has to
    ways = ("mended", "told", "went on", "anew")
    table = Table("command", "kills", *ways, "faults", "seconds until all processes are gone")
    for name in wanted:
        all_cases = run_kind(name, options).values()
        cases = [one for one in all_cases if one["way"] != "had ended"]
        counted = Counter(one["way"] for one in cases)
        gone = max((one["gone"] or 0.0 for one in cases), default=0.0)
        faults = sum(bool(one["fault"]) for one in all_cases)
        row = (len(cases), *(counted[way] for way in ways), faults)
        table.add_row(name, *map(str, row), f"{gone:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
