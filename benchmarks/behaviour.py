"""What EdgeFlare does at a commit, recorded so that another commit can be held to it.

    python benchmarks/behaviour.py record FOLDER [--python PYTHON] [--pairs DIR] [--only TEXT]
    python benchmarks/behaviour.py compare FOLDER OTHER

`record` runs the commands of `support/behaviour_cases.py` with the EdgeFlare that PYTHON imports,
and writes what they made to FOLDER/CASE/PART, all but times, versions and paths. `compare` prints
each part that differs, with its first differing line, and exits with 1 if there is one. A change
that should alter no result is shown to alter none by recording the commit before it and the commit
after it. A case that FOLDER has is left as it is, so that a recording goes on where it was stopped.

Cases whose extras or capabilities PYTHON lacks record that they are refused: compare recordings of
one environment.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from behaviour_cases import ROOT, Case, cases

TIMES = re.compile(
    r"seconds|latency|^(ratio|began|edgeflare|agent_version|protocol|started|finished|date|cost)$"
)
MEASURED = r"µs|ms|s|min|h|MB|(?:queries )?per second|seeds per hour|seconds?|bytes +finding\.json"
"""What stands behind a number that is another one each time; finding.json holds times."""
CALLS = """
import contextlib, io, json, sys
from edgeflare.cli import main

ended = []
for words in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.argv[:] = ["edgeflare", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    ended.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""
"""A program that calls all commands of a case, so that they are imported once."""
DONE = "exit-codes.txt"
"""The part of a case that is written last."""

PATHS = re.compile(r"^(original|compressed|seeds|path|folder|run|test|labelled|out|campaign)$")


def main() -> None:
    arguments = parse()
    if arguments.action == "record":
        chosen = [case for case in cases(arguments.pairs) if arguments.only in case.name]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for case in pool.map(lambda case: record(case, arguments), chosen):
                print(case, flush=True)
    else:
        sys.exit(1 if differences(arguments.folder, arguments.other) else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record", help="run the commands and write what they made")
    recording.add_argument("folder", type=Path)
    recording.add_argument("--python", default=sys.executable, help="its EdgeFlare is recorded")
    recording.add_argument("--pairs", type=Path, help="a folder that holds the further pairs")
    recording.add_argument("--only", default="", help="cases whose name holds this text")
    recording.add_argument("--jobs", type=int, default=2, help="cases at a time")
    comparing = actions.add_parser("compare", help="print what differs between two recordings")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("other", type=Path)
    return parser.parse_args()


def record(case: Case, arguments: argparse.Namespace) -> str:
    """Run the case's commands and write what they made."""
    folder = arguments.folder / case.name
    if (folder / DONE).exists():
        return f"{case.name}: is there"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    codes = []
    with tempfile.TemporaryDirectory() as parent:
        out = os.path.join(parent, "OUT")  # of one width in every figure that names it
        os.mkdir(out)
        for number, (words, (code, said, complained)) in enumerate(called(case, out, arguments)):
            codes.append(f"{words[0]}: exit {code}")
            (folder / f"{number:02}-{words[0]}.txt").write_text(shown(words[0], said, out))
            if code not in (0, 1):
                codes.append(plain(complained, out))
        for path in sorted(Path(out).rglob("*")):
            if path.is_file() and (write := WRITERS.get(path.suffix)):
                part = "_".join(path.relative_to(out).parts)
                (folder / part).write_text(write(path, out))
    (folder / DONE).write_text("\n".join(codes) + "\n")
    return case.name + ": " + ", ".join(codes)


def called(
    case: Case, out: str, arguments: argparse.Namespace
) -> Iterator[tuple[list[str], tuple[int, str, str]]]:
    """Yield the words of each command with its exit code and what it printed, twice."""
    commands = [[word.replace("{out}", out) for word in command] for command in case.commands]
    done = subprocess.run(
        [arguments.python, "-c", CALLS],
        cwd=out,
        # Cases at the same time have a device each, and lines as long as on a wide terminal.
        env={**os.environ, "COLUMNS": "120", "EDGEFLARE_AGENT_DEVICE": case.name},
        input=json.dumps(commands),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return zip(commands, json.loads(done.stdout), strict=True)


def plain(text: str, out: str) -> str:
    """Return the text without times, memory, paths of this machine and runs of spaces."""
    text = text.replace(out, "OUT").replace(Path(out).name, "OUT").replace(str(ROOT), "ROOT")
    text = re.sub(rf"\d[\d,.]*(?= ?(?:{MEASURED})\b)", "N", text)
    text = re.sub(r"(seconds</dt><dd>)[^<]*", r"\1N", text)
    text = re.sub(r"(N µs \()[^)]*", r"\1N", text)
    text = re.sub(r"(seconds\" value=\")[^\"]*", r"\1N", text)
    text = re.sub(r" +", " ", text)
    return re.sub(r"(time|seconds|timestamp)=\"[^\"]*\"", r'\1="N"', text)


def shown(command: str, text: str, out: str) -> str:
    """Return what a command printed, JSON or text; the last column of a rank is the latency."""
    try:
        return plain(json.dumps(stripped(json.loads(text)), indent=1, sort_keys=True), out)
    except ValueError:
        text = plain(text, out)
    if command == "fleet":  # the share of the time for which a device worked
        return re.sub(r"\d+%", "N%", text)
    return re.sub(r"[\d.]+( \|)?\s*$", r"N\1", text, flags=re.M) if command == "rank" else text


def document(path: Path, out: str) -> str:
    text = json.dumps(stripped(json.loads(path.read_text())), indent=1, sort_keys=True)
    return plain(text, out)


def stripped(value: Any) -> Any:
    """Return a document without times, versions and paths."""
    if isinstance(value, dict):
        return {
            key: "PATH" if PATHS.search(key) and isinstance(entry, str) else stripped(entry)
            for key, entry in value.items()
            if not TIMES.search(key)
        }
    return [stripped(entry) for entry in value] if isinstance(value, list) else value


def digest(path: Path, _out: str) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() + "\n"


def members(path: Path, _out: str) -> str:
    """Return the names of what an archive holds."""
    with zipfile.ZipFile(path) as archive:
        return "\n".join(sorted(archive.namelist())) + "\n"


def text(path: Path, out: str) -> str:
    return shown(path.stem, path.read_text(), out)


def table(path: Path, out: str) -> str:
    """Return a CSV table without the columns of times."""
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    kept = [{key: cell for key, cell in row.items() if not TIMES.search(key)} for row in rows]
    return plain(json.dumps(kept, indent=1), out)


WRITERS: dict[str, Callable[[Path, str], str]] = {
    ".json": document,
    ".html": text,
    ".xml": text,
    ".md": text,
    ".csv": table,
    ".toml": text,
    ".png": digest,
    ".svg": text,
    ".npy": digest,
    ".npz": digest,
    ".tflite": digest,
    ".wav": digest,
    ".zip": members,
}


def differences(folder: Path, other: Path) -> int:
    """Print how many parts differ, and each of these with its first differing line."""
    parts = {
        path.relative_to(root)
        for root in (folder, other)
        for path in root.rglob("*")
        if path.is_file()
    }
    differing = 0
    for part in sorted(parts):
        before, after = lines(folder / part), lines(other / part)
        if before != after:
            differing += 1
            print(f"{part}: {first_difference(before, after)}")
    print(
        f"{len(parts)} parts of {len({part.parts[0] for part in parts})} cases; {differing} differ"
    )
    return differing


def lines(path: Path) -> list[str] | None:
    if not path.exists():
        return None
    return path.read_text().splitlines()


def first_difference(before: list[str] | None, after: list[str] | None) -> str:
    if before is None or after is None:
        return "is in one recording only"
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        if old != new:
            return f"line {number}: {old.strip()[:120]!r} became {new.strip()[:120]!r}"
    return f"{len(before)} lines became {len(after)}"


if __name__ == "__main__":
    main()
