"""Change the source in one place at a time, and see whether a test fails.

    python benchmarks/mutants.py lines --out runs/mutants
    python benchmarks/mutants.py run --out runs/mutants --seed 17 --mutants 150

`lines` runs each file of tests under coverage.py once, and keeps which tests execute which lines;
what only a process that a test starts executes counts for all tests of the file. `run` draws
mutants by the seed, as many from each room, and runs against each the tests that execute its line,
the quickest first: what took half a minute under coverage.py, and for a minute at most. Both go on
where they were stopped. The table has the mutants that survive by room; `OUT/mutants-SEED.jsonl`
has each one with its place and text.

It changes files where they lie: run it in a clone of its own. Needs coverage.py and pytest-cov.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coverage import CoverageData
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    "host": ROOT / "host" / "edgeflare",
    "agent": ROOT / "agent" / "edgeflare_agent",
    "operators": ROOT / "operators" / "edgeflare_operators",
}
LONGEST = 60.0
"""Seconds that the tests of a mutant may take together."""

_COVERAGE = """
[run]
branch = false
parallel = true
concurrency = multiprocessing, thread
patch = subprocess, fork, _exit
source = {sources}
disable_warnings = no-data-collected, module-not-measured, module-not-imported
"""
_DURATION = re.compile(r"^ *([\d.]+)s (?:setup|call|teardown) +(\S.*)$", re.MULTILINE)

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
    lines = steps.add_parser("lines", help="find which tests execute which lines")
    lines.add_argument("files", nargs="*", help="files of tests; all unless named")
    lines.add_argument("--marked", default="", help="pytest's -m: which tests of them")
    run = steps.add_parser("run", help="draw mutants, and run tests against them")
    run.add_argument("--seed", default="0", help="decides which mutants are drawn (default: 0)")
    run.add_argument("--mutants", type=int, default=150, help="how many (default: 150)")
    for one in (lines, run):
        one.add_argument("--out", type=Path, required=True, help="folder of what was found")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.step == "lines":
        _find_lines(options.out, options.files, options.marked)
    else:
        _run(options.out, options.seed, options.mutants)


def _find_lines(out: Path, files: Sequence[str], marked: str) -> None:
    """Run each file of tests under coverage.py, unless that was done."""
    listed = files or sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")
    )
    config = (out / "coverage.ini").resolve()
    config.write_text(_COVERAGE.format(sources=", ".join(map(str, SOURCES.values()))), "utf-8")
    for number, file in enumerate(listed, 1):
        kept = _kept(out, file)
        if kept.with_suffix(".json").exists():
            continue
        print(f"{number}/{len(listed)} {file}", flush=True)
        with tempfile.TemporaryDirectory(dir=out) as folder:
            data = Path(folder).resolve() / "coverage"
            words = ["--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report="]
            words += ["--durations=0", "--durations-min=0", "-p", "no:cacheprovider", "-q"]
            words += ["-m", marked] if marked else []
            ended = subprocess.run(
                [sys.executable, "-m", "pytest", *words, file],
                cwd=ROOT,
                env={**os.environ, "COVERAGE_FILE": str(data)},
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if data.exists():
                os.replace(data, kept)
        seconds: dict[str, float] = defaultdict(float)
        for spent, test in _DURATION.findall(ended.stdout):
            seconds[test] += float(spent)
        found = {"file": file, "code": ended.returncode, "seconds": seconds}
        kept.with_suffix(".json").write_text(json.dumps(found), "utf-8")


def _kept(out: Path, file: str) -> Path:
    """Return where the lines of a file of tests are kept."""
    folder = out / "lines"
    folder.mkdir(exist_ok=True)
    return folder / file.replace("/", "+")


def _run(out: Path, seed: str, count: int) -> None:
    _check_clean()
    record = out / f"mutants-{seed}.jsonl"
    known = {}
    if record.exists():
        known = {
            one["name"]: one for one in map(json.loads, record.read_text("utf-8").splitlines())
        }
    drawn = _drawn(seed, count)
    for number, mutant in enumerate(drawn, 1):
        if mutant.name in known:
            continue
        tests, left_out = _tests_of(out, mutant)
        with _changed(mutant):
            verdict, seconds = _verdict(tests)
        found = {"name": mutant.name, "verdict": verdict, "tests": len(tests)}
        found |= {"left_out": left_out, "seconds": round(seconds, 1), **asdict(mutant)}
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        known[mutant.name] = found
        print(f"{number}/{count} {verdict}: {mutant.name}", flush=True)
    _print_table([known[one.name] for one in drawn])


def _check_clean() -> None:
    words = ["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"]
    if said := subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout:
        sys.exit(f"the files of the project are changed; commit them, or `git restore`:\n{said}")


def _drawn(seed: str, count: int) -> list[Mutant]:
    """Return mutants in turns from each room, each room's in an order that the seed decides."""
    rooms: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in _all_mutants():
        rooms[mutant.room].append(mutant)

    def place(text: str) -> bytes:
        return hashlib.sha256(f"{seed} {text}".encode()).digest()

    for some in rooms.values():
        some.sort(key=lambda one: place(one.name), reverse=True)
    order = sorted(rooms, key=place)
    drawn: list[Mutant] = []
    while len(drawn) < count and any(rooms.values()):
        drawn += [rooms[room].pop() for room in order if rooms[room]]
    return drawn[:count]


def _all_mutants() -> Iterator[Mutant]:
    for source, package in SOURCES.items():
        for path in sorted(package.rglob("*.py")):
            within = path.relative_to(package).parts
            room = within[0] if source == "host" and len(within) > 1 else source
            yield from _mutants_of(room, path)


def _mutants_of(room: str, path: Path) -> Iterator[Mutant]:
    """Yield the mutants of a file, of what is executed when a function is called."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node, after in _changes(function):
                begin = (node.lineno, node.col_offset)
                end = (node.end_lineno or 0, node.end_col_offset or 0)
                before = ast.get_source_segment(text, node) or ""
                yield Mutant(room, str(path.relative_to(ROOT)), begin, end, before, after)


def _changes(function: ast.AST) -> Iterator[tuple[Any, str]]:
    """Yield expressions and statements of a function's own body, with what they become."""
    waiting: list[ast.AST] = list(function.body)  # type: ignore[attr-defined]
    while waiting:
        node = waiting.pop()
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.JoinedStr | ast.Raise
        ):
            continue  # of its own, without a place before Python 3.12, or words
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


def _tests_of(out: Path, mutant: Mutant) -> tuple[list[str], int]:
    """Return the tests that execute the line of a mutant, the quickest first, as time allows.

    Returns:
        The tests; and how many others there are.

    """
    path = str(ROOT / mutant.file)
    found: dict[str, float] = {}
    for told in sorted((out / "lines").glob("*.json")):
        data = told.with_suffix("")
        if not data.exists():
            continue
        seconds = json.loads(told.read_text("utf-8"))["seconds"]
        coverage = CoverageData(str(data))
        coverage.read()
        contexts = coverage.contexts_by_lineno(path).get(mutant.begin[0], [])
        tests = {one.rsplit("|", 1)[0] for one in contexts if one}
        if not tests and "" in contexts:
            tests = set(seconds)
        found |= {one: seconds.get(one, 0.0) for one in tests}
    chosen: list[str] = []
    spent = 0.0
    for test in sorted(found, key=lambda one: (found[one], one)):
        spent += found[test]
        if spent > LONGEST / 2 and chosen:
            break
        chosen.append(test)
    return chosen, len(found) - len(chosen)


@contextmanager
def _changed(mutant: Mutant) -> Iterator[None]:
    """Have a mutant in its file."""
    path = ROOT / mutant.file
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    begin, end = (sum(map(len, lines[: line - 1])) + at for line, at in (mutant.begin, mutant.end))
    try:
        path.write_bytes(content[:begin] + mutant.after.encode() + content[end:])
        yield
    finally:
        path.write_bytes(content)


def _verdict(tests: Sequence[str]) -> tuple[str, float]:
    """Run tests until one fails, and say what became of the mutant, and in how many seconds."""
    if not tests:
        return "not executed", 0.0
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    started = time.monotonic()
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "timed out", LONGEST
    return "survived" if code == 0 else "killed", time.monotonic() - started


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
