"""What a query of a search and of its refinement takes, beside the two invocations alone.

    python benchmarks/refinement.py PAIR... [--findings N] [--shrink N] [--strategy NAME]
        [--max-queries N] [--python PYTHON]...

In turns, with each PYTHON (an environment that imports edgeflare, so two commits can be compared):
a search of N findings on emulated-xnnpack without refinement, the same with it, and a loop that
sets, invokes and gets both models over encoded inputs. Processor time of all processes, so that it
depends little on what else the machine does; the ratios are those of a query of a search, and of a
refinement, to the loop. A query of a refinement may ask one of the two models alone. With
`--shrink 0` nothing is refined.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from invocation_loop import LOOP, ROUNDS, models_of, output, spent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIR")
    parser.add_argument("--findings", type=int, default=40, help="seeds that are searched from")
    parser.add_argument("--shrink", type=int, default=600, help="queries of each refinement")
    parser.add_argument("--strategy", default="boundary", help="what searches")
    parser.add_argument("--max-queries", type=int, default=1000, help="of each search")
    parser.add_argument("--python", action="append", help="environments that are compared")
    asked = parser.parse_args()
    print("| pair | environment | loop µs | search µs | ratio | refinement µs | ratio | dB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for pair in asked.pairs:
        for number, python in enumerate(asked.python or [sys.executable]):
            print(f"| {pair.name} | {number} | {measured(python, pair, asked)} |", flush=True)


def measured(python: str, pair: Path, asked: argparse.Namespace) -> str:
    """Return the columns of one environment: µs of a query, and what they are compared with."""
    loop = 1e6 * float(output(python, "-c", LOOP, *models_of(pair), str(ROUNDS)))
    with tempfile.TemporaryDirectory() as folder:
        some, most = asked.findings, asked.max_queries
        nothing, _ = searched(python, pair, Path(folder, "start"), asked.strategy, 1, 0, 1)
        search, plain = searched(python, pair, Path(folder, "plain"), asked.strategy, some, 0, most)
        query = 1e6 * (search - nothing) / plain["totals"]["queries"]
        shown = f"{loop:,.0f} | {query:,.0f} | {query / loop:.1f}"
        if not asked.shrink:
            return f"{shown} | – | – | –"
        both, run = searched(
            python, pair, Path(folder, "run"), asked.strategy, some, asked.shrink, most
        )
    refinement = 1e6 * (both - search) / run["totals"]["refine_queries"]
    near = median(finding["nearness_db"] for finding in run["findings"])
    return f"{shown} | {refinement:,.0f} | {refinement / loop:.1f} | {near:.1f}"


def searched(
    python: str, pair: Path, out: Path, strategy: str, findings: int, shrink: int, most: int
) -> tuple[float, dict[str, Any]]:
    """Return the processor seconds of a search and its document."""
    before = spent()
    output(
        *(python, "-m", "edgeflare", "search", str(pair), "--device", "emulated-xnnpack"),
        *(
            "--strategy",
            strategy,
            "--first",
            str(findings),
            "--shrink",
            str(shrink),
            "--max-queries",
            str(most),
        ),
        *("--fail-on", "none", "--rng-seed", "1", "--out", str(out)),
    )
    return spent() - before, json.loads((out / "run.json").read_text())


if __name__ == "__main__":
    main()
