"""What an input of a large set takes to be screened, beside the invocations alone.

    python benchmarks/screening.py PAIR... [--images N] [--jpeg] [--python PYTHON]...

Of a pair of pictures: N pictures are made of its seeds, each with noise of its own, as PNG or JPEG
files, and evaluated on all arms (`search --screen-only`, emulated-xnnpack), in turns with each
PYTHON. Processor time of all processes for a picture, less that of a start with one; the loops set,
invoke and get the original once and the compressed model once, or twice as twin and device do. The
ratios are to the two models, to the three arms, and to the two models of a picture whose device
computes by itself, as boards do: without one of the compressed model's invocations. Memory is the
most of any one process.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from invocation_loop import LOOP, ROUNDS, models_of, output, spent

NOISE = 8
"""Gray levels by which a value changes, at most."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIR")
    parser.add_argument("--images", type=int, default=50_000, help="pictures that are screened")
    parser.add_argument("--jpeg", action="store_true", help="write them as JPEG files")
    parser.add_argument("--python", action="append", help="environments that are compared")
    asked = parser.parse_args()
    print("| pair | environment | load | two models µs | arms µs | picture µs | ratios | MB |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    for pair in asked.pairs:
        with tempfile.TemporaryDirectory() as folder:
            pictures = Path(folder, "pictures")
            write(pair, pictures, asked.images, ".jpg" if asked.jpeg else ".png")
            for number, python in enumerate(asked.python or [sys.executable]):
                shown = measured(os.path.abspath(python), pair, pictures)
                load = os.getloadavg()[0]
                print(f"| {pair.name} | {number} | {load:.0f} | {shown} |", flush=True)


def write(pair: Path, folder: Path, count: int, suffix: str) -> None:
    """Write pictures that are a pair's seeds with noise."""
    with np.load(pair / "seeds.npz") as arrays:
        seeds = arrays["images"]
    random = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        seed = seeds[number % len(seeds)]
        noise = random.integers(-NOISE, NOISE + 1, seed.shape)
        picture = np.clip(seed + noise, 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / f"{number:06}{suffix}"), picture[..., ::-1])


def measured(python: str, pair: Path, pictures: Path) -> str:
    """Return the columns of one environment."""
    original, compressed = models_of(pair)
    both = 1e6 * float(output(python, "-c", LOOP, original, compressed, str(ROUNDS)))
    once = 1e6 * float(output(python, "-c", LOOP, compressed, compressed, str(ROUNDS))) / 2
    files = sorted(pictures.iterdir())
    with tempfile.TemporaryDirectory() as alone:
        shutil.copy(files[0], alone)
        start = screened(python, pair, Path(alone))
    took = 1e6 * (screened(python, pair, pictures) - start) / (len(files) - 1)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    ratios = f"{took / both:.2f}, {took / (both + once):.2f}, {(took - once) / both:.2f}"
    return f"{both:,.0f} | {both + once:,.0f} | {took:,.0f} | {ratios} | {memory:,.0f}"


def screened(python: str, pair: Path, pictures: Path) -> float:
    """Return the processor seconds of screening a folder of pictures."""
    before = spent()
    with tempfile.TemporaryDirectory() as folder:
        output(
            *(python, "-m", "edgeflare", "search", str(pair), "--seeds", str(pictures)),
            *("--screen-only", "--device", "emulated-xnnpack"),
            *("--fail-on", "none", "--out", str(Path(folder, "run"))),
        )
    return spent() - before


if __name__ == "__main__":
    main()
