"""Repair pairs with a layer that is quantized coarsely, and count deviations beside a healthy file.

    python benchmarks/coarse_repairs.py PAIR=HEALTHY PAIR … --out runs/coarse-repairs -- OPTIONS

HEALTHY is a file in the folder of PAIR; where none is named, the original is quantized anew on the
seeds. Each pair is repaired by `edgeflare repair` with OPTIONS, and the three files are judged on
all seeds, and on inputs made of them by another generator seed. Repairs are kept in --out. The
table is Markdown; a cell has the inputs that deviate, of how many.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.query import Arm
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import EdgeFlareError
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import load_pair
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import compressed_as
from edgeflare.repair.judging.judgement import SetAside, candidate_answers, compared
from edgeflare.repair.judging.judgement_inputs import judged_sets, known_labels
from edgeflare.repair.repair_run import repair_plan

DEVICE, RNG_SEED = "emulated-xnnpack", 1


def main() -> int:
    arguments = parse()
    print("| pair | chosen | written | before | repaired | healthy |\n|---|---|---|--:|--:|--:|")
    for named in arguments.pairs:
        folder, _, healthy = named.partition("=")
        try:
            print(row(Path(folder), healthy, arguments), flush=True)
        except EdgeFlareError as refused:
            print(f"| {Path(folder).name} | {refused} | | | | |", flush=True)
    return 0


def row(folder: Path, healthy: str, arguments: argparse.Namespace) -> str:
    """Repair a pair where that was not done, and return its line of the table."""
    out = arguments.out / folder.name
    if not (out / "repair.json").exists():
        command = [sys.executable, "-m", "edgeflare", "repair", str(folder), "--device", DEVICE]
        command += ["--trust", "--out", str(out), *arguments.options]
        made = subprocess.run(command, check=False, capture_output=True, text=True)
        if made.returncode:
            return f"| {folder.name} | {made.stderr.strip().splitlines()[-1]} | | | | |"
    document = json.loads((out / "repair.json").read_text())
    pair, profiles = load_pair(folder, trust=True), find_profiles([DEVICE])
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(None, profiles), profiles, stack)
        rng = np.random.default_rng(RNG_SEED)
        everything = np.arange(len(opened.seeds))
        sets = judged_sets(opened, known_labels(opened), everything, rng)
        files = {"repaired": out / "repaired.tflite", "healthy": folder / healthy}
        contents = {"before": read_model_file(pair.compressed)}
        contents |= {name: file.read_bytes() for name, file in files.items() if file.is_file()}
        contents.setdefault("repaired", contents["before"])
        contents.setdefault("healthy", quantized(opened))
        cells = []
        for name in ("before", "repaired", "healthy"):
            answers = candidate_answers(contents[name], opened, sets)
            if isinstance(answers, SetAside):
                cells.append(answers.reason)
                continue
            found = [judged.after for judged in compared(sets, answers).by_set.values()]
            deviating, asked = sum(one.deviating for one in found), sum(one.inputs for one in found)
            cells.append(f"{deviating:,} of {asked:,}")
    chosen, written = document["chosen"], "yes" if document["written"] else "no"
    return f"| {folder.name} | {chosen} | {written} | {' | '.join(cells)} |"


def quantized(opened: OpenedPair) -> bytes:
    """Return the original quantized as the compressed model is, calibrated on the seeds."""
    pair, seeds = opened.pair, opened.seeds
    rows = opened.panel.rows(Arm.ORIGINAL, seeds.inputs, seeds.seed_ids)
    original = read_model_file(Path(str(pair.original)))
    network = QuantizedNetwork(original, original, rows, rows)
    return compressed_as(read_model_file(pair.compressed), network).content


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", help="PAIR or PAIR=HEALTHY")
    parser.add_argument("--out", type=Path, default=Path("runs/coarse-repairs"))
    given, _, options = " ".join(sys.argv[1:]).partition(" -- ")
    arguments = parser.parse_args(given.split())
    arguments.options = options.split()
    return arguments


if __name__ == "__main__":
    raise SystemExit(main())
