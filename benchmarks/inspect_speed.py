"""What the statistics of `edgeflare inspect` cost beyond inference: seconds and memory.

    python benchmarks/inspect_speed.py [--inputs 1000] [--channels 1184]

Synthetic numbers: three behaviours, six hypotheses, five measures, 1,000 permutations; precision is
set so fine that nothing ends early.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence

import numpy as np

from edgeflare.diagnose.inspect.behaviour_block import BehaviourBlock, UnitLayer
from edgeflare.diagnose.inspect.inspection import Inspection
from edgeflare.hypothesis import UnitHypothesis

NAMES = ("deviates", "class pair", "brightness", "contrast", "high frequencies", "mine")
BLOCK = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--channels", type=int, default=1184)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    layers = [UnitLayer("CONV_2D", n, 16) for n in range(options.channels // 16)]
    hypotheses = [UnitHypothesis(name, lambda _: 0.0) for name in NAMES]
    inspection = Inspection(layers, hypotheses, 1e-4, np.random.default_rng(1))
    adding = 0.0
    for begin in range(0, options.inputs, BLOCK):
        made = block(rng, layers, begin)
        began = time.perf_counter()
        goes_on = inspection.add(made)
        adding += time.perf_counter() - began
        if not goes_on:
            break
    began = time.perf_counter()
    result = inspection.result()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{result.inputs} inputs, {options.channels} channels, ended: {result.ended}")
    print(f"blocks {adding:.1f} s, result {seconds:.1f} s, peak of the process {peak:.0f} MB")


def block(rng: np.random.Generator, layers: Sequence[UnitLayer], begin: int) -> BehaviourBlock:
    units = sum(layer.channels for layer in layers)
    names = ("activation", "error", "error-gradient")
    values = {name: rng.standard_normal((BLOCK, units), np.float32) for name in names}
    said = np.column_stack([rng.random((BLOCK, 2)) < 0.4, rng.normal(size=(BLOCK, 4))])
    errors = values["error-gradient"].sum(axis=1).astype(np.float64)
    groups = (begin + np.arange(BLOCK)) // 2
    halves = (groups % 2).astype(np.int8)
    return BehaviourBlock(values, said, errors, groups, halves, rng.integers(0, 4, BLOCK))


if __name__ == "__main__":
    main()
