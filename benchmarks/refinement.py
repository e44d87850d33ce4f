"""What a query of a search and of its refinement takes, beside the two invocations alone.

    python benchmarks/refinement.py PAIR... [--findings N] [--shrink N] [--python PYTHON]...

In turns, with each PYTHON (an environment that imports edgeflare, so two commits can be compared):
a search of N findings on emulated-xnnpack without refinement, the same with it, and a loop that
sets, invokes and gets both models over encoded inputs. Processor time of all processes, so that it
depends little on what else the machine does; the ratio is that of a refinement's query to the loop.
A query of a refinement may ask one of the two models alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

LOOP = """
import sys, time
from pathlib import Path
import numpy as np
from ai_edge_litert.interpreter import Interpreter
models = [Interpreter(path, num_threads=1) for path in sys.argv[1:3]]
random = np.random.default_rng(0)
tensors = []
for model in models:
    model.allocate_tensors()
    given = model.get_input_details()[0]
    values = random.uniform(-100, 100, (64, *given["shape"]))
    tensors.append((model, given["index"], model.get_output_details()[0]["index"],
                    values.astype(given["dtype"])))
rounds = int(sys.argv[3])
begin = time.process_time()
for number in range(rounds):
    for model, at, out, values in tensors:
        model.set_tensor(at, values[number % 64])
        model.invoke()
        model.get_tensor(out)
print((time.process_time() - begin) / rounds)
"""
ROUNDS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIR")
    parser.add_argument("--findings", type=int, default=40, help="seeds that are searched from")
    parser.add_argument("--shrink", type=int, default=600, help="queries of each refinement")
    parser.add_argument("--python", action="append", help="environments that are compared")
    asked = parser.parse_args()
    print("| pair | environment | loop µs | search µs | refinement µs | ratio | nearness dB |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for pair in asked.pairs:
        for number, python in enumerate(asked.python or [sys.executable]):
            print(f"| {pair.name} | {number} | {measured(python, pair, asked)} |", flush=True)


def measured(python: str, pair: Path, asked: argparse.Namespace) -> str:
    """Return the columns of one environment: µs of a query, and what they are compared with."""
    loop = 1e6 * float(output(python, "-c", LOOP, *models_of(pair), str(ROUNDS)))
    with tempfile.TemporaryDirectory() as folder:
        nothing, _ = searched(python, pair, Path(folder, "start"), 1, 0, 1)
        search, plain = searched(python, pair, Path(folder, "plain"), asked.findings, 0, 1000)
        both, run = searched(python, pair, Path(folder, "run"), asked.findings, asked.shrink, 1000)
    queries, refining = plain["totals"]["queries"], run["totals"]["refine_queries"]
    query, refinement = 1e6 * (search - nothing) / queries, 1e6 * (both - search) / refining
    near = median(finding["nearness_db"] for finding in run["findings"])
    return f"{loop:,.0f} | {query:,.0f} | {refinement:,.0f} | {refinement / loop:.1f} | {near:.1f}"


def models_of(pair: Path) -> tuple[str, str]:
    """Return the paths of the two models of a pair whose files have the usual names."""
    return str(pair / "original.tflite"), str(pair / "compressed.tflite")


def searched(
    python: str, pair: Path, out: Path, findings: int, shrink: int, most: int
) -> tuple[float, dict[str, Any]]:
    """Return the processor seconds of a search and its document."""
    before = spent()
    output(
        *(python, "-m", "edgeflare", "search", str(pair), "--device", "emulated-xnnpack"),
        *("--first", str(findings), "--shrink", str(shrink), "--max-queries", str(most)),
        *("--fail-on", "none", "--rng-seed", "1", "--out", str(out)),
    )
    return spent() - before, json.loads((out / "run.json").read_text())


def spent() -> float:
    """Return the processor seconds of all processes that this one waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def output(*command: str) -> str:
    """Return what a command writes, or end with its errors."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)}: {ran.stderr.strip() or ran.stdout[-500:]}")
    return ran.stdout


if __name__ == "__main__":
    main()
