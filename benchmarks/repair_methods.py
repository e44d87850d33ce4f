"""Changed files of a compressed model side by side, on inputs that nobody fitted them to.

    python benchmarks/repair_methods.py PAIRS_FOLDER --images NAME=NPZ … [--files NAME=FILE …]

For each pair that --images names: the compressed model as it is, its `variants/`, and the files
that --files names for it, judged on all the images, and on near-boundary and sampled inputs made
from some of them. The tables are Markdown; a cell has deviating / strict / big.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import load_pair
from edgeflare.repair.device_judgement import latency_on
from edgeflare.repair.judging.judgement import Figures, Judgement, SetAside, judged
from edgeflare.repair.judging.judgement_inputs import (
    COUNT,
    FRESH,
    SAMPLED,
    TIGHT,
    WIDE,
    JudgedSet,
    SetName,
)
from edgeflare.repair.repair_cost import BATCH
from judged_images import judged_images

SHOWN: tuple[SetName, ...] = (FRESH, TIGHT, WIDE, SAMPLED)


def main() -> int:
    arguments = parse()
    profile = find_profile(arguments.device)
    for name, path in named(arguments.images):
        pair = load_pair(arguments.folder / name)
        files = [Path(file) for of, file in named(arguments.files) if of == name]
        variants = sorted((arguments.folder / name / "variants").glob("*.tflite"))
        with ExitStack() as stack:
            begun = monotonic()
            made = judged_images(
                pair,
                Path(path),
                profile,
                stack,
                limit=arguments.limit,
                seeds=arguments.seeds,
                count=arguments.count,
                rng_seed=arguments.rng_seed,
            )
            print(f"{name}: {monotonic() - begun:.0f} s for the sets", file=sys.stderr, flush=True)
            lines = table(made.opened, made.sets, [pair.compressed, *variants, *files])
            print("\n".join(lines), flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--images", nargs="+", required=True, help="NAME=NPZ, images of a pair")
    parser.add_argument("--files", nargs="+", default=[], help="NAME=FILE, of a pair to judge")
    parser.add_argument("--limit", type=int, help="take the first so many images only")
    parser.add_argument("--seeds", type=int, default=1000, help="images that inputs are made from")
    parser.add_argument("--count", type=int, default=COUNT, help="inputs of each set made of them")
    parser.add_argument("--rng-seed", type=int, default=0)
    parser.add_argument("--device", default="emulated-xnnpack")
    return parser.parse_args()


def named(settings: Sequence[str]) -> Iterator[tuple[str, str]]:
    for setting in settings:
        name, _, value = setting.partition("=")
        yield name, value


def table(
    opened: OpenedPair, sets: Mapping[SetName, JudgedSet], files: Sequence[Path]
) -> Iterator[str]:
    counts = ", ".join(f"{name} {len(sets[name].inputs):,}" for name in SHOWN)
    yield f"**{opened.pair.name}** on {opened.devices[0].profile.name}: {counts}\n"
    yield f"| file | {' | '.join(SHOWN)} | right | mended, broken, p | score | KiB | time |"
    yield "|---|" + "--:|" * (len(SHOWN) + 5)
    for file in files:
        content = file.read_bytes()
        judgement = judged(content, opened, sets)
        cells = set_aside(judgement) if isinstance(judgement, SetAside) else shown(judgement)
        cells += [f"{file.stat().st_size / 1024:.1f}", time_ratio(opened, content)]
        yield f"| {file.stem} | {' | '.join(cells)} |"


def set_aside(judgement: SetAside) -> list[str]:
    return [judgement.reason, *[""] * (len(SHOWN) + 2)]


def shown(judgement: Judgement) -> list[str]:
    sets = judgement.by_set
    fresh = sets[FRESH]
    right = fresh.after.right
    return [
        *(counted(sets[name].after) for name in SHOWN),
        "–" if right is None else f"{right / fresh.after.labelled:.2%}",
        f"{fresh.mended}, {fresh.broken}, {fresh.p:.1g}",
        f"{judgement.score:.2f}",
    ]


def counted(figures: Figures) -> str:
    return f"{figures.deviating} / {figures.strict} / {figures.wide_margin}"


def time_ratio(opened: OpenedPair, content: bytes) -> str:
    """Return how many times as long as the compressed model a file takes on the device."""
    images = opened.seeds.inputs[np.arange(BATCH) % len(opened.seeds)]
    try:
        return f"× {latency_on(opened.devices[0], content, opened, images).ratio:.2f}"
    except EdgeFlareError:  # one that the device refuses has no time
        return "–"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
