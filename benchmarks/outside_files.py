"""Change files that come from outside at random, and see how the commands that read them end.

    python benchmarks/outside_files.py --out runs/outside --cases 200

Half of the cases keep the format of the file and have other values, half have other bytes. Nothing
may end in a line that tells of a mistake in EdgeFlare, in a signal, or two seconds of processor
time later than with the file that is right. `OUT/right` keeps the files that are right and
`OUT/cases.jsonl` each case, and the same command goes on where it was stopped; a file that is at
fault stays as OUT/faults/KIND-NUMBER. The kinds are in tests/support/outside_kinds.py and
benchmarks/support/more_outside_kinds.py, the changes in tests/support/mutated_files.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import command_server
from more_outside_kinds import MORE_KINDS
from outside_kinds import KINDS, changed, run_case

ALL_KINDS = {**KINDS, **MORE_KINDS}

FAULTS = ("mistake", "signal", "hang")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of cases and faults")
    parser.add_argument("--kind", action="append", choices=[*ALL_KINDS], help="default: all")
    parser.add_argument("--cases", type=int, default=200, help="of each kind (default: 200)")
    parser.add_argument("--seed", default="0", help="decides the changes (default: 0)")
    options = parser.parse_args()
    command_server.import_commands()  # here, so that no fork has to
    options.out = options.out.absolute()
    (options.out / "right").mkdir(parents=True, exist_ok=True)
    table = Table("file", "cases", "read", "refused", *(f"{one}s" for one in FAULTS), "seconds")
    for name in options.kind or ALL_KINDS:
        known = _known(options.out / "cases.jsonl", name, options.seed)
        _run(name, options, known)
        ends = Counter(_end(case) for case in known.values())
        slowest = max((case["seconds"] for case in known.values()), default=0.0)
        row = (len(known), ends["read"], ends["refused"], *(ends[one] for one in FAULTS))
        table.add_row(name, *map(str, row), f"{slowest:.1f}")
    Console().print(table)


def _end(case: Mapping[str, Any]) -> str:
    """Return how a case ended, in a word."""
    return str(case["fault"] or ("refused" if case["code"] in (2, 3) else "read"))


def _known(path: Path, name: str, seed: str) -> dict[int, dict[str, Any]]:
    """Return the cases of a kind that have been run, by their numbers."""
    if not path.is_file():
        return {}
    cases = [json.loads(line) for line in path.read_text().splitlines()]
    return {one["number"]: one for one in cases if (one["kind"], one["seed"]) == (name, seed)}


def _run(name: str, options: argparse.Namespace, known: dict[int, dict[str, Any]]) -> None:
    """Run the cases of a kind that are left."""
    if all(number in known for number in range(options.cases)):
        return
    kind = ALL_KINDS[name]
    with tempfile.TemporaryDirectory() as folder, (options.out / "cases.jsonl").open("a") as log:
        # A run names the folder in which it was made, so that each case has that very place.
        place = options.out / "right" / kind.make.__name__.strip("_")
        right = place.with_suffix(".kept")
        if not right.is_dir():
            shutil.rmtree(place, ignore_errors=True)
            kind.make(place)
            shutil.copytree(place, Path(folder, "kept"))
            shutil.move(Path(folder, "kept"), right)
        data = (right / kind.file).read_bytes()
        usual = []
        for at in range(len(kind.commands)):
            ended = run_case(kind, right, place, None, 2 * at)
            if ended.code not in (0, 1):
                sys.exit(f"{name}: the right file is refused, {ended.called}: {ended.said}")
            print(f"{name}: {ended.called}: {ended.code} in {ended.seconds:.1f} s")
            usual.append(ended.seconds)
        for number in range(options.cases):
            if number in known:
                continue
            content = changed(kind, data, f"{options.seed}/{name}", number)
            ended = run_case(kind, right, place, content, number)
            fault = ended.fault(usual[number // 2 % len(kind.commands)])
            known[number] = {
                "kind": name,
                "seed": options.seed,
                "number": number,
                "called": ended.called,
                "code": ended.code,
                "fault": fault,
                "seconds": round(ended.seconds, 2),
                "said": ended.said[-300:],
            }
            log.write(json.dumps(known[number]) + "\n")
            log.flush()
            if fault:
                faulty = options.out / "faults" / f"{name}-{number}"
                faulty.parent.mkdir(exist_ok=True)
                faulty.write_bytes(content)
                print(f"{name} {number}: {fault}, {ended.called}: {ended.said[-600:]}", flush=True)


if __name__ == "__main__":
    main()
