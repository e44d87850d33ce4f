"""Plant faults in the kernels of a device, and see what `edgeflare conform` says of them.

    python benchmarks/conform_faults.py SEED --out runs/kernel-faults.json
    python benchmarks/conform_faults.py SEED --list

The kinds of faults are those of benchmarks/support/kernel_fault_kinds.py, two of each group at
least. Their operators, types and conditions over parameters are drawn from SEED, which should be
one that was not used while the command was worked at. The device is a real agent whose workers run
a broken runtime. A fault is found if anything that counts is found (or is undefined, for NaN that
is swallowed); operator and type are right if that is said of them; the condition is right if it
agrees with the planted one on 95 % of a thousand fresh models.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from kernel_fault_catalogue import drawn_faults
from kernel_fault_kinds import GROUPS
from kernel_fault_trial import TriedFault, tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int, help="of the faults' operators, types and conditions")
    parser.add_argument("--list", action="store_true", help="show the faults and plant none")
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="only these")
    parser.add_argument("--time-limit", default="2m", help="for each fault (default: 2m)")
    parser.add_argument("--rng-seed", type=int, default=0, help="of the runs (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time (default: 1)")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    parser.add_argument("--more", default="", help="further options of `edgeflare conform`")
    options = parser.parse_args()
    faults = list(drawn_faults(options.seed, options.group or tuple(GROUPS)))
    if options.list:
        print("\n".join(map(str, faults)))
        return
    results: list[TriedFault] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for one in pool.map(
            lambda fault: tried(
                fault, options.time_limit, options.rng_seed, *shlex.split(options.more)
            ),
            faults,
        ):
            results.append(one)
            print(f"{len(results)}/{len(faults)} {one.fault}: {_said(one)}", flush=True)
            if options.out:
                _write(options.out, results)
    _show(results)


def _said(one: TriedFault) -> str:
    if one.errors:
        return f"failed: {one.errors[0]}"
    if not one.in_cell:
        return "found elsewhere" if one.found else "not found"
    conditions = "; or ".join(", ".join(several) or "always" for several in one.conditions)
    return f"{one.agreement:.1%} agree: {conditions}"


def _write(path: Path, results: Sequence[TriedFault]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(one), "right_condition": one.right_condition} for one in results]
    path.write_text(json.dumps(rows, indent=1) + "\n")


def _show(results: Sequence[TriedFault]) -> None:
    table = Table("fault", "operator", "planted", "found", "agree", "elsewhere", "models")
    for one in results:
        table.add_row(
            f"{one.fault.group}: {one.fault.kind}",
            f"{one.fault.operator} {one.fault.type}",
            ", ".join(one.fault.condition),
            "; or ".join(", ".join(several) or "always" for several in one.conditions),
            f"{one.agreement:.1%}" if one.in_cell else "",
            str(len(one.elsewhere)),
            str(one.models),
            style=None if one.right_condition else "red",
        )
    console = Console()
    console.print(table)
    count = len(results)
    found, in_cell = sum(one.found for one in results), sum(one.in_cell for one in results)
    right = sum(one.right_condition for one in results)
    console.print(f"of {count}: found {found}, operator and type {in_cell}, condition {right}")


if __name__ == "__main__":
    main()
