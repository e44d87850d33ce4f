"""The strategy `gradient` beside `boundary`: success, distance, strength, and what both cost.

    python benchmarks/gradient_search.py PAIR [--seeds 100] [--rng-seeds 0,1,2]

One line for each run seed and way of searching: `boundary`, `gradient` (the first deviation), and
`gradient` with strongest=true (the strongest of 60 iterations), on emulated-xnnpack. Medians are
over the seeds with a finding; queries, gradients, evaluations and seconds are means over all seeds
that were searched. Seconds are those of the whole search, divided by the seeds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

WAYS = {
    "boundary": ["--strategy", "boundary"],
    "gradient": ["--strategy", "gradient"],
    "gradient, strongest": ["--strategy", "gradient", "--set", "strongest=true"],
}


def main() -> None:
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        for rng_seed in arguments.rng_seeds.split(","):
            for name, options in WAYS.items():
                out = Path(folder) / f"{rng_seed}-{name.replace(', ', '-')}"
                command = [
                    *(sys.executable, "-m", "edgeflare", "search", str(arguments.pair)),
                    *("--device", "emulated-xnnpack", "--first", str(arguments.seeds)),
                    *("--rng-seed", rng_seed, "--shrink", "0", "--fail-on", "none", "--quiet"),
                    *("--out", str(out), *options),
                ]
                begin = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                seconds = time.perf_counter() - begin
                document = json.loads((out / "run.json").read_text())
                print(f"{rng_seed} {name}: {figures(document, seconds)}", flush=True)


def figures(document: dict[str, Any], seconds: float) -> str:
    """Return the figures of a run on one line."""
    found, totals = document["findings"], document["totals"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    spent = " ".join(
        f"{key} {totals[key] / searched:.1f}"
        for key in ("host_gradients", "translated_evaluations")
        if key in totals
    )
    return (
        f"success {len(found)} of {searched},"
        f" L2 {median(one['distortion']['l2'] for one in found):.0f},"
        f" strength {median(one['strength'] for one in found):.4f};"
        f" queries {totals['queries'] / searched:.1f},"
        f" device queries {totals['device_queries'] / searched:.2f} {spent},"
        f" {seconds / searched:.2f} s a seed"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rng-seeds", default="0,1,2")
    return parser.parse_args()


if __name__ == "__main__":
    main()
