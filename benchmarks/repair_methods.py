"""Changed files of a compressed model side by side, on inputs that nobody fitted them to.

    python benchmarks/repair_methods.py PAIRS_FOLDER --images NAME=NPZ … [--files NAME=FILE …]

For each pair that --images names: the compressed model as it is, its `variants/`, and the files
that --files names for it, judged on all the images, and on near-boundary and sampled inputs made
from some of them. The tables are Markdown; a cell has deviating / strict / big.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import EdgeFlareError
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.judged_inputs import (
    COUNT,
    FRESH,
    SAMPLED,
    TIGHT,
    WIDE,
    JudgedSet,
)
from edgeflare.repair.judging.judgement import Figures, Judgement, SetAside, judged
from edgeflare.repair.repair_cost import BATCH, BATCHES
from judged_images import judged_images

SHOWN = (FRESH, TIGHT, WIDE, SAMPLED)


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
    opened: OpenedPair, sets: Mapping[str, JudgedSet], files: Sequence[Path]
) -> Iterator[str]:
    counts = ", ".join(f"{name} {len(sets[name].images):,}" for name in SHOWN)
    yield f"**{opened.pair.name}** on {opened.devices[0].profile.name}: {counts}\n"
    yield f"| file | {' | '.join(SHOWN)} | right | mended, broken, p | score | KiB | µs |"
    yield "|---|" + "--:|" * (len(SHOWN) + 5)
    latencies = microseconds(opened, files)
    for file in files:
        judgement = judged(file.read_bytes(), opened, sets)
        cells = set_aside(judgement) if isinstance(judgement, SetAside) else shown(judgement)
        cells += [f"{file.stat().st_size / 1024:.1f}", latencies.get(file, "–")]
        yield f"| {file.stem} | {' | '.join(cells)} |"


def set_aside(judgement: SetAside) -> list[str]:
    return [judgement.reason, *[""] * (len(SHOWN) + 2)]


def shown(judgement: Judgement) -> list[str]:
    after, change = judgement.after, judgement.changes[FRESH]
    right = after[FRESH].right
    return [
        *(counted(after[name]) for name in SHOWN),
        "–" if right is None else f"{right / after[FRESH].labelled:.2%}",
        f"{change.mended}, {change.broken}, {change.p:.1g}",
        f"{judgement.score:.2f}",
    ]


def counted(figures: Figures) -> str:
    return f"{figures.deviating} / {figures.strict} / {figures.big}"


def microseconds(opened: OpenedPair, files: Sequence[Path]) -> dict[Path, str]:
    """Return the median time of one input on the device; the files take turns, batch by batch."""
    device, pair = opened.devices[0], opened.pair
    kernels, threads = device.profile.kernels, device.profile.threads
    images = opened.seeds.inputs[np.arange(BATCH) % len(opened.seeds)]
    times: dict[Path, list[float]] = {}
    with ExitStack() as stack:
        timed: dict[Path, Callable[[], float]] = {}
        for file in files:
            try:
                session = device.open_as(file, kernels, threads, pair.interface.invocation)
                taken = stack.enter_context(closing(session)).signature.inputs
                inputs = ModelInputs(pair.interface, taken, file.name, like=opened.inputs)
            except EdgeFlareError:  # one that the device refuses has no time
                continue
            timed[file] = partial(seconds, session, inputs.encoder().encode(images))
        for _ in range(BATCHES + 1):
            for file, run in timed.items():
                times.setdefault(file, []).append(run())
    return {file: f"{median(of[1:]) / BATCH * 1e6:.0f}" for file, of in times.items()}


def seconds(session: DeviceSession, rows: NDArray[np.generic]) -> float:
    return session.submit(rows).result().busy_seconds


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
