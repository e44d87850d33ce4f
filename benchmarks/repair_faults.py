"""Faults planted in compressed files, and whether `edgeflare repair` mends them.

    python benchmarks/repair_faults.py PAIRS_FOLDER --images NAME=NPZ … --out runs/faults

For each pair that --images names, --count faults are drawn: one layer's scales wrong, one bias
zeroed, one channel's weights clipped, one range clipped by a bad calibration. A fault counts where
at least half as many more of the images deviate with it; else another one is drawn. A repair mends
it where the repaired file has at most a tenth or 3 deviations more than the healthy one. The block
is named where the repair blames that with the fault. Repairs are kept in --out, and none is made
twice. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.core.seeds import SeedChoice
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError, UserError
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.judging.candidate_model import open_candidate
from edgeflare.repair.judging.judgement import figures
from edgeflare.repair.judging.judgement_inputs import JudgedSet, fresh_set
from edgeflare.run.plan import Plan
from quantization_faults import FAULTS, QuantizationFault, drawn_fault, harmful_fault

WAYS = {
    "in-place": ("--in-place",),
    "int8-only": ("--target", "int8-only"),
    "float": ("--target", "float"),
}


@dataclass(frozen=True, slots=True)
class Images:
    """A pair, and the images that its files are judged by."""

    folder: Path
    opened: OpenedPair
    fresh: JudgedSet

    def deviating(self, content: bytes) -> int:
        """Return on how many images a file decides unlike the original."""
        with open_candidate(content, self.opened) as model:
            answers = model.answers(self.fresh.inputs, self.fresh.seed_ids.tolist())
        pairs = zip(self.fresh.original, answers, strict=True)
        return sum(wanted.differs(made) for wanted, made in pairs)

    @property
    def healthy(self) -> int:
        """How many deviate with the file as it is."""
        return figures(self.fresh.original, self.fresh.before, None).deviating


def main() -> int:
    arguments = parse()
    ways = " | ".join(f"{way}: named | chosen | dev | mended" for way in arguments.ways)
    for setting in arguments.images:
        name, _, path = setting.partition("=")
        with ExitStack() as stack:
            images = opened_images(arguments.folder / name, path, arguments, stack)
            pair = images.opened.pair
            content = pair.compressed.read_bytes()
            original = Path(str(pair.original)).read_bytes()
            print(f"**{name}**: {images.healthy} of {len(images.fresh.inputs):,} deviate\n")
            print(f"| fault | operator | dev | {ways} |")
            print("|---" * (3 + 4 * len(arguments.ways)) + "|", flush=True)
            rng = np.random.default_rng(arguments.rng_seed)
            for number, kind in zip(range(arguments.count), cycle(FAULTS), strict=False):
                draw = partial(drawn_fault, content, original, kind, rng)
                fault, count = harmful_fault(draw, images.deviating, images.healthy)
                cells = [
                    f"{fault.kind} {fault.amount:.2f}",
                    shown_operator(images, fault.operator),
                    str(count),
                ]
                for way in arguments.ways:
                    out = repaired(images, fault, arguments.out / name / f"{number}", way)
                    cells += mended(images, fault, out)
                print(f"| {' | '.join(cells)} |", flush=True)
            print()
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--images", nargs="+", required=True, help="NAME=NPZ, images of a pair")
    parser.add_argument("--limit", type=int, default=4000, help="take the first so many images")
    parser.add_argument("--count", type=int, default=6, help="faults of each pair")
    parser.add_argument("--ways", nargs="+", default=["in-place"], choices=WAYS)
    parser.add_argument("--rng-seed", type=int, default=0)
    parser.add_argument("--device", default="emulated-xnnpack")
    parser.add_argument("--out", type=Path, default=Path("runs/faults"))
    return parser.parse_args()


def opened_images(
    folder: Path, path: str, arguments: argparse.Namespace, stack: ExitStack
) -> Images:
    pair, profile = load_pair(folder), find_profile(arguments.device)
    ensemble, _ = read_ensemble(profile.kernels)
    plan = Plan("boundary", Goal(), (profile.name,), ensemble=ensemble)
    opened = open_pair(pair, plan, [profile], stack)
    loaded = opened.inputs.load(Path(path), SeedChoice(first=arguments.limit))
    return Images(folder, opened, fresh_set(opened, loaded))


def named(document: dict[str, Any], fault: QuantizationFault) -> str:
    """Return whether the block that a repair blames has the operator, and else which one it is."""
    residual = document["residual"] or {"blocks": [], "blamed": None}
    blocks = {one["name"]: one["operators"] for one in residual["blocks"]}
    block = residual["blamed"]
    return "yes" if fault.operator in blocks.get(block, ()) else f"no: {block}"


def shown_operator(images: Images, operator: int) -> str:
    one = Graph(images.opened.pair.compressed.read_bytes()).operators[operator]
    return f"{operator} {one.name}"


def repaired(images: Images, fault: QuantizationFault, folder: Path, way: str) -> Path:
    """Repair a file with a fault, if that is not done, and return the folder of the repair."""
    out = folder / way
    file = folder / "fault.tflite"
    if file.is_file() and file.read_bytes() != fault.content:
        raise UserError(f"{folder} holds a repair of another fault: name another --out")
    if not (out / "repair.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(fault.content)
        command = ["repair", images.folder, "--compressed", file, "--out", out, "--resume"]
        device = images.opened.devices[0].profile.name
        said = [sys.executable, "-m", "edgeflare", *map(str, command), "--device", device]
        subprocess.run([*said, *WAYS[way]], check=True, stdout=subprocess.DEVNULL)
    return out


def mended(images: Images, fault: QuantizationFault, out: Path) -> Iterator[str]:
    """Yield whether the block is named, what was chosen, what deviates, whether it is mended."""
    document = json.loads((out / "repair.json").read_bytes())
    content = fault.content
    if document["written"]:
        content = (out / "repaired.tflite").read_bytes()
    count = images.deviating(content)
    healthy = images.healthy
    yield named(document, fault)
    yield document["chosen"] if document["written"] else "nothing"
    yield str(count)
    yield "yes" if count <= max(1.1 * healthy, healthy + 3) else "no"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
