"""Change the source in one place at a time, and see whether a test fails.

    python benchmarks/mutants.py probe --out runs/mutants --seed 17 --mutants 150
    python benchmarks/mutants.py run --out runs/mutants --seed 17 --mutants 150

Both draw the same mutants by the seed, as many from each room. `probe` runs the tests, with a
probe in the place of each mutant, and adds to what it kept which tests pass there, in whatever
process. `run` makes one mutant after the other and runs against each the tests that pass there,
those of its room and the quickest first, until they have taken half a minute of processor time,
whatever else the machine does; tests that do not end are stopped. It goes on where it was stopped,
and `--part 1/2` does each second one, for two clones at the same time. The table has what became of
the mutants by room; `OUT/mutants-SEED.jsonl` has each one with its place and text.

It changes files where they lie: run it in a clone of its own. Words after `--` go to the pytest of
`probe`, such as files or `-m 'not system'`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).with_name("support")))

from process_tree import look_at

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    "host": ROOT / "host" / "edgeflare",
    "agent": ROOT / "agent" / "edgeflare_agent",
    "operators": ROOT / "operators" / "edgeflare_operators",
}
BUDGET = 30.0
"""Processor seconds that tests of a mutant take, after which none begins."""

LONGEST = 90.0
"""Processor seconds after which the tests of a mutant are stopped, their collection included."""

IDLE = 300.0
"""Seconds after which tests that wait for something are stopped."""

MOST_TESTS = 100
"""Tests that are named to pytest, which collects all of them before the first."""

MIRRORED = {"host": "tests", "agent": "tests/agent", "operators": "tests/operators"}
"""Where the tests of a source are, for what is executed before the first test."""

_PROBE = "getattr(__import__('builtins'), 'probe_of_mutants', int)"
"""What tells of a place; where nobody listens, as on a board, it is harmless."""

_PROBES = Path(__file__).with_name("mutant_probes")
"""Modules that listen: one for each interpreter that tests start, and one for pytest."""

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the source in one place.

    Attributes:
        room: folder of the package that the file is in.
        file: path from the root of the project.
        begin: line, and bytes into it, of what is replaced.
        end: the same of what comes after it.
        before: what is replaced.
        after: what replaces it.

    """

    room: str
    file: str
    begin: tuple[int, int]
    end: tuple[int, int]
    before: str
    after: str

    @property
    def name(self) -> str:
        """What tells it from others: place and change."""
        return f"{self.file}:{self.begin[0]}:{self.begin[1]} {self.before!r} -> {self.after!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(dest="step", required=True)
    probe = steps.add_parser("probe", help="find which tests pass at which mutants")
    probe.add_argument("words", nargs="*", help="what pytest is given")
    run = steps.add_parser("run", help="run tests against mutants")
    run.add_argument("--part", default="1/1", help="which of how many parts (default: 1/1)")
    for step in (probe, run):
        step.add_argument("--seed", default="0", help="decides which mutants are drawn")
        step.add_argument("--mutants", type=int, default=150, help="how many (default: 150)")
        step.add_argument("--room", help="draw only from this one")
        step.add_argument("--out", type=Path, required=True, help="folder of what was found")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    _check_clean()
    drawn = _drawn(options.seed, options.mutants, options.room)
    if options.step == "probe":
        _probe(options.out.resolve(), drawn, options.words)
    else:
        part, parts = map(int, options.part.split("/"))
        _run(options.out, options.seed, drawn[part - 1 :: parts])


def _probe(out: Path, drawn: Sequence[Mutant], words: Sequence[str]) -> None:
    """Run the tests with a probe in the place of each mutant."""
    found = out / "probes"
    found.mkdir(exist_ok=True)
    files: dict[Path, list[tuple[int, Mutant]]] = defaultdict(list)
    for number, mutant in enumerate(drawn):
        files[ROOT / mutant.file].append((number, mutant))
    kept = {path: path.read_bytes() for path in files}
    try:
        for path, mutants in files.items():
            path.write_bytes(_with_probes(kept[path], mutants))
        subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "pytest_probes", *words],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(_PROBES), "PROBES_OF_MUTANTS": str(found)},
            check=False,
        )
    finally:
        for path, content in kept.items():
            path.write_bytes(content)
    names = [mutant.name for mutant in drawn]
    seconds = dict(_lines_of(found / "seconds"))
    passed: dict[int, set[str]] = defaultdict(set)
    for number, test in _lines_of(found / "passed"):
        passed[number].add(test)
    tests = {name: sorted(passed[number]) for number, name in enumerate(names)}
    (out / "tests.json").write_text(json.dumps({"tests": tests, "seconds": seconds}), "utf-8")


def _lines_of(path: Path) -> list[Any]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _with_probes(content: bytes, mutants: Sequence[tuple[int, Mutant]]) -> bytes:
    """Return a file that tells of each mutant's place: around an expression, before a statement."""
    inserted: list[tuple[int, int, int, str]] = []
    for number, mutant in mutants:
        begin, end = _span(content, mutant)
        if mutant.after == "pass":
            inserted.append((begin, 1, -end, f"{_PROBE}({number}); "))
        else:
            inserted.append((begin, 1, -end, f"[{_PROBE}({number}), ("))
            inserted.append((end, 0, -begin, ")][1]"))
    parts = []
    done = 0
    for place, _, _, text in sorted(inserted):
        parts += [content[done:place], text.encode()]
        done = place
    return b"".join([*parts, content[done:]])


def _span(content: bytes, mutant: Mutant) -> tuple[int, int]:
    """Return where what a mutant replaces begins and ends, as bytes from the file's begin."""
    lines = content.splitlines(keepends=True)
    begin, end = (sum(map(len, lines[: line - 1])) + at for line, at in (mutant.begin, mutant.end))
    return begin, end


def _run(out: Path, seed: str, drawn: Sequence[Mutant]) -> None:
    record = out / f"mutants-{seed}.jsonl"
    known = {found["name"]: found for found in _lines_of(record)}
    executed = json.loads((out / "tests.json").read_text("utf-8"))
    for number, mutant in enumerate(drawn, 1):
        if mutant.name in known:
            continue
        tests, left_out = _tests_of(mutant, executed)
        with _changed(mutant):
            verdict, seconds = _verdict(tests)
        found = {"name": mutant.name, **asdict(mutant), "verdict": verdict, "tests": tests[:9]}
        found |= {"left_out": left_out, "seconds": round(seconds, 1)}
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        known[mutant.name] = found
        print(f"{number}/{len(drawn)} {verdict}: {mutant.name}", flush=True)
    _print_table([known[mutant.name] for mutant in drawn])


def _check_clean() -> None:
    words = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"]
    if said := subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout:
        sys.exit(f"the files of the project are changed; commit them, or `git restore`:\n{said}")


def _drawn(seed: str, count: int, room: str | None) -> list[Mutant]:
    """Return mutants in turns from each room, each room's in an order that the seed decides."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in _all_mutants(room):
        rooms[mutant.room].append(mutant)
    if not rooms:
        sys.exit(f"{room} is no room")

    def place(text: str) -> bytes:
        return hashlib.sha256(f"{seed} {text}".encode()).digest()

    for some in rooms.values():
        some.sort(key=lambda one: place(one.name), reverse=True)
    order = [rooms[name] for name in sorted(rooms, key=place)]
    drawn: list[Mutant] = []
    while len(drawn) < count and any(order):
        drawn += [some.pop() for some in order if some]
    return drawn[:count]


def _all_mutants(wanted: str | None) -> Iterator[Mutant]:
    """Yield the mutants of a room, or of all."""
    for source, package in SOURCES.items():
        for path in sorted(package.rglob("*.py")):
            within = path.relative_to(package).parts
            room = within[0] if source == "host" and len(within) > 1 else source
            if wanted in (None, room):
                yield from _mutants_of(room, path)


def _mutants_of(room: str, path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a file, of what is executed when a function is called."""
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for function in ast.walk(ast.parse(content)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node, after in _changes(function):
                begin = (node.lineno, node.col_offset)
                end = (node.end_lineno or 0, node.end_col_offset or 0)
                first, last = (starts[line - 1] + at for line, at in (begin, end))
                before = content[first:last].decode()
                yield Mutant(room, str(path.relative_to(ROOT)), begin, end, before, after)


def _changes(function: ast.AST) -> Iterator[tuple[Any, str]]:
    """Yield expressions and statements of a function's own body, with what they become."""
    waiting: list[ast.AST] = list(function.body)  # type: ignore[attr-defined]
    while waiting:
        node = waiting.pop()
        if isinstance(
            node,
            ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.ClassDef
            | ast.JoinedStr
            | ast.Raise
            | ast.pattern,
        ):
            continue  # of its own, without a place before Python 3.12, words, or no expression
        if isinstance(node, ast.AnnAssign):
            waiting += [node.value] if node.value else []  # an annotation is never evaluated
        else:
            waiting += ast.iter_child_nodes(node)
        called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if called or isinstance(node, ast.AugAssign):
            yield node, "pass"
        elif isinstance(node, ast.expr) and (changed := _swapped(node)) is not None:
            yield node, f"({ast.unparse(changed)})"
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            yield node.test, f"(not ({ast.unparse(node.test)}))"


def _swapped(node: ast.expr) -> ast.expr | None:
    """Return an expression with its operator or its constant changed; None where it has none."""
    changed: Any = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPPED:
        changed.ops[0] = _SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in _SWAPPED:
        if _is_text(node):
            return None
        changed.op = _SWAPPED[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        changed = node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        changed.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        changed.value = node.value + 1
    else:
        return None
    return changed  # type: ignore[no-any-return]


def _is_text(node: ast.AST) -> bool:
    """Tell whether text is put together, for which - and / are errors that any test sees."""
    return any(
        isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and type(one.value) is str)
        for one in ast.walk(node)
    )


def _tests_of(mutant: Mutant, executed: Mapping[str, Any]) -> tuple[list[str], int]:
    """Return tests that pass at a mutant, at most `MOST_TESTS`: the room's own, the quickest first.

    Args:
        mutant: one of those that were probed.
        executed: what `probe` wrote: by the mutant's name tests, or files of tests for what a
            fixture that they share executes; and the seconds of tests.

    Returns:
        The tests; and how many others there are.

    """
    if mutant.name not in executed["tests"]:
        sys.exit("the source has changed since `probe`: run it again")
    seconds: dict[str, float] = executed["seconds"]
    tests = set(executed["tests"][mutant.name])
    if tests == {""}:
        tests = _mirrored_tests(mutant)
    of_files: dict[str, float] = defaultdict(float)
    for test, spent in seconds.items():
        of_files[test.partition("::")[0]] += spent
    lasting = {test: seconds.get(test, of_files[test]) for test in tests if test}
    own = _tests_of_room(mutant)
    ordered = sorted(lasting, key=lambda test: (not test.startswith(own), lasting[test], test))
    return ordered[:MOST_TESTS], len(ordered[MOST_TESTS:])


def _tests_of_room(mutant: Mutant) -> str:
    """Return the folder of the tests of a mutant's room."""
    return f"{MIRRORED.get(mutant.room, f'tests/{mutant.room}')}/"


def _mirrored_tests(mutant: Mutant) -> set[str]:
    """Return the tests of a file that is executed before the first test: its own, or the room's."""
    room = _tests_of_room(mutant)
    own = f"test_{Path(mutant.file).name}"
    found = {str(path.relative_to(ROOT)) for path in (ROOT / room).rglob(own)}
    return found or {room}


@contextmanager
def _changed(mutant: Mutant) -> Iterator[None]:
    """Have a mutant in its file."""
    path = ROOT / mutant.file
    content = path.read_bytes()
    begin, end = _span(content, mutant)
    try:
        path.write_bytes(content[:begin] + mutant.after.encode() + content[end:])
        yield
    finally:
        path.write_bytes(content)


def _verdict(tests: Sequence[str]) -> tuple[str, float]:
    """Run tests until one fails, and say what became of the mutant, and in how many seconds."""
    if not tests:
        return "not executed", 0.0
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    places = os.pathsep.join(map(str, (_PROBES, ROOT / "benchmarks" / "support")))
    started = time.monotonic()
    process = psutil.Popen(
        [*words, "-p", "pytest_budget", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": places, "BUDGET_OF_MUTANT": str(BUDGET)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while process.poll() is None:
            spent, _ = look_at(process)
            if spent > LONGEST or time.monotonic() - started > IDLE:
                return "timed out", time.monotonic() - started
            time.sleep(0.2)
    finally:
        if process.poll() is None:  # a session of its own hears of no Ctrl-C
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return "killed" if process.returncode else "survived", time.monotonic() - started


def _print_table(found: Sequence[Mapping[str, Any]]) -> None:
    table = Table("room", "mutants", "killed", "timed out", "survived", "not executed")
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        rooms[one["room"]][one["verdict"]] += 1
    verdicts = ("killed", "timed out", "survived", "not executed")
    for room in sorted(rooms):
        counts = (rooms[room][one] for one in verdicts)
        table.add_row(room, str(rooms[room].total()), *map(str, counts))
    together = sum(rooms.values(), Counter())
    table.add_row("all", str(len(found)), *(str(together[one]) for one in verdicts))
    Console().print(table)


if __name__ == "__main__":
    main()
