"""Plant faults by runtime, precision and fallback in devices, and see what `explain` names.

    python benchmarks/runtime_faults.py SEED --out runs/runtime-faults.json
    python benchmarks/runtime_faults.py SEED --healthy

Twelve faults of benchmarks/support/runtime_fault_catalogue.py, in small networks whose weights, and
the layers that the faults are in, are drawn with the seed. Each is searched for on a real agent
whose workers run the broken runtime, and the strongest finding is explained: the verdict has to be
kernel, and `which` what the catalogue says. With --healthy nothing is planted, and neither float16
nor the fallback may be blamed. GPUs need a Vulkan driver; `edgeflare doctor` says whether there is
one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.devices.transports.emulated import driver_variables
from fault_catalogue import OTHER_RUNTIME
from fault_trial import OLD_BOARD, Judged, judge
from runtime_fault_catalogue import BLAMED_WRONGLY, healthy_devices, runtime_faults, write_pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seed", type=int, help="of the networks' weights, and of the faults")
    parser.add_argument("--healthy", action="store_true", help="plant no faults")
    parser.add_argument("--limit", type=int, default=8, help="seeds to search (default: 8)")
    parser.add_argument("--jobs", type=int, default=1, help="devices at a time (default: 1)")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    os.environ.update(driver_variables(os.environ))
    with tempfile.TemporaryDirectory(prefix="edgeflare-networks-") as name:
        pairs = write_pairs(Path(name), options.seed)
        faults = list(
            healthy_devices(pairs)
            if options.healthy
            else runtime_faults(pairs, np.random.default_rng(options.seed))
        )
        if not OLD_BOARD.exists():
            faults = [one for one in faults if one.planted.fault != OTHER_RUNTIME]
            print(f"not planted: {OTHER_RUNTIME!r}, which needs {OLD_BOARD}", file=sys.stderr)
        judged: list[Judged] = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for one in pool.map(partial(judge, seeds=options.limit), faults):
                judged.append(one)
                print(f"{len(judged)}/{len(faults)} {one.verdict}: {one.which}", flush=True)
                if options.out:
                    _write(options.out, judged)
    (_show_healthy if options.healthy else _show)(judged)


def _write(path: Path, judged: Sequence[Judged]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "pair": one.fault.pair.name,
            "settings": one.fault.settings,
            "planted": asdict(one.fault.planted),
            "expected_which": one.fault.which,
            "verdict": one.verdict,
            "which": one.which,
            "why": one.why,
            "layer": one.fault.operator,
            "onset": one.operator,
            "most": one.most,
            "device_queries": one.device_queries,
            "asked": one.asked,
            "seconds": round(one.seconds, 1),
            "errors": one.errors,
        }
        for one in judged
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n")


def _show(judged: Sequence[Judged]) -> None:
    table = Table("pair", "device", "fault", "expected", "named", "layer", "begins", "most alone")
    for one in judged:
        table.add_row(
            *_device(one),
            one.fault.planted.fault or "none: its own",
            str(one.fault.which),
            f"{one.verdict}: {one.which}",
            *("" if at is None else str(at) for at in (one.fault.operator, one.operator, one.most)),
            style=None if one.right_verdict else "red",
        )
    layered = [one for one in judged if one.fault.operator is not None]
    console = Console()
    console.print(table)
    console.print(
        f"right: {sum(one.right_verdict for one in judged)} of {len(judged)}; the layer is where"
        f" it begins: {sum(one.right_layer for one in layered)} of {len(layered)}, or the one that"
        f" differs most alone: {sum(one.among_layers for one in layered)}; device queries: at most"
        f" {max(one.device_queries for one in judged)}"
    )


def _show_healthy(judged: Sequence[Judged]) -> None:
    table = Table("pair", "device", "named", "why")
    wrong = 0
    for one in judged:
        blamed = one.which in BLAMED_WRONGLY
        wrong += blamed
        row = (*_device(one), f"{one.verdict}: {one.which}", one.why)
        table.add_row(*row, style="red" if blamed else None)
    console = Console()
    console.print(table)
    console.print(f"float16 or fallback blamed: {wrong} of {len(judged)}")


def _device(one: Judged) -> tuple[str, str]:
    """Return the pair, and the device as "gpu, fp16, fallback"."""
    lines = [line.split(" = ") for line in one.fault.settings.splitlines()]
    words = [key if value == "true" else value.strip('"') for key, value in lines]
    return one.fault.pair.name, ", ".join(word for word in words if word != "false")


if __name__ == "__main__":
    main()
