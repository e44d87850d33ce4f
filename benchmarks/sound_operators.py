"""How long each operator on sounds takes on a second of speech-like sound at 16 kHz: a table.

    OPENBLAS_NUM_THREADS=1 python benchmarks/sound_operators.py [--calls N]

The sound is noise that swells and fades in five syllables. The first calls, which are not timed,
import the library and fill its caches.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np

from edgeflare_operators import operators


def main() -> None:
    parser = argparse.ArgumentParser(description="Time operators on a second of 16 kHz sound.")
    parser.add_argument("--calls", type=int, default=200, metavar="N")
    calls = parser.parse_args().calls
    rng = np.random.default_rng(0)
    syllables = np.sin(np.pi * 5 * np.arange(16_000) / 16_000) ** 2
    wave = np.rint(4_000 * syllables * rng.normal(size=16_000)).astype(np.int16)
    print("| operator | median, ms | 95 %, ms |")
    print("|---|--:|--:|")
    for operator in operators("audio"):
        for _ in range(3):
            operator(wave, rng)
        times = []
        for _ in range(calls):
            begin = perf_counter()
            operator(wave, rng)
            times.append(1_000 * (perf_counter() - begin))
        print(f"| {operator.name} | {np.median(times):.2f} | {np.percentile(times, 95):.2f} |")


if __name__ == "__main__":
    main()
