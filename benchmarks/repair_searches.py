"""Searches of pairs before and after their repair.

    python benchmarks/repair_searches.py PAIR REPAIRED_FOLDER … --out runs/searches

Each folder, a pair or what `edgeflare repair --out` wrote, is searched from its first --seeds seeds
by `boundary` and `dflare-published`, deviations by a tie excluded and included. Each run is kept in
--out, and none is made twice. The table is Markdown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

STRATEGIES = ("boundary", "dflare-published")
TIES = ("exclude", "include")


def main() -> int:
    arguments = parse()
    print("| folder | strategy | ties | deviating seeds | success | findings | mean queries |")
    print("|---|---|---|--:|--:|--:|--:|")
    for folder in arguments.folders:
        name = "-".join(folder.resolve().parts[-2:])
        for strategy in STRATEGIES:
            for ties in TIES:
                run = arguments.out / f"{name}-{strategy}-{ties}"
                totals = searched(folder, run, strategy, ties, arguments)
                mean = totals["mean_queries"]
                cells = (
                    *(name, strategy, f"{ties}d", str(totals["deviating_seeds"])),
                    *(f"{totals['success_rate']:.1%}", str(totals["findings"])),
                    "–" if mean is None else f"{mean:.1f}",
                )
                print(f"| {' | '.join(cells)} |", flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="pairs, and repaired ones")
    parser.add_argument("--seeds", type=int, default=60, help="first seeds of each")
    parser.add_argument("--max-queries", type=int, default=1000, help="for each seed")
    parser.add_argument("--device", default="emulated-xnnpack")
    parser.add_argument("--out", type=Path, default=Path("runs/searches"))
    return parser.parse_args()


def searched(
    folder: Path, run: Path, strategy: str, ties: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Search a pair, where that is not done yet; return the totals of its run."""
    if not (run / "run.json").is_file():
        options = {
            "--out": run,
            "--strategy": strategy,
            "--ties": ties,
            "--first": arguments.seeds,
            "--max-queries": arguments.max_queries,
            "--device": arguments.device,
            "--shrink": 0,
            "--fail-on": "none",
        }
        words = [str(word) for option in options.items() for word in option]
        command = [sys.executable, "-m", "edgeflare", "search", str(folder), "--overwrite"]
        subprocess.run([*command, *words], check=True, stdout=sys.stderr)
    totals: dict[str, Any] = json.loads((run / "run.json").read_bytes())["totals"]
    return totals


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
