"""What shifts cost as a part of the model: latency and bytes added.

    python benchmarks/appended.py PAIR...

For each pair's compressed model: the model before and after, on XNNPACK and on the built-in
kernels, one thread. They take turns, a fraction of a millisecond each, and the order goes round;
what is given is the median over the turns of the difference within a turn, so that whatever else
the machine does meets both. `alone` is the time of the shifts as a file of their own, with what a
call costs; it tells more where the model takes so long that the difference drowns in its noise.
The shifts are random: they change no operator's time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from edgeflare.models.pair import load_pair
from edgeflare.repair.shift_details import MOST_STEPS
from edgeflare.repair.shifts.model_to_repair import read_model_to_repair
from edgeflare.repair.shifts.shifts import Shifts, append, standalone

_KERNELS = {
    "xnnpack": OpResolverType.AUTO,
    "builtin": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}
_TURN_SECONDS = 0.0004
"""Short enough that the system seldom takes the core away meanwhile."""

_WARMUPS = 20


@dataclass(frozen=True)
class AddedCost:
    """What shifts add to a model: medians."""

    microseconds: float
    percent: float
    alone: float  # microseconds of the shifts by themselves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", nargs="+", type=Path, metavar="PAIR")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="for each pair and kernels (default 10)"
    )
    given = parser.parse_args()
    print("| pair | kernels | model, µs | bytes | added, µs | % | alone, µs |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for folder in given.pairs:
        _measure(folder, given.seconds)


def _measure(folder: Path, seconds: float) -> None:
    pair = load_pair(folder)
    before = pair.compressed.read_bytes()
    target = read_model_to_repair(before, pair.name)
    shifts = _shifts(target.classes)
    after, alone = append(before, shifts, target, pair.name), standalone(shifts, target)
    for kernels, resolver in _KERNELS.items():
        model, cost = _turns(
            [_interpreter(content, resolver) for content in (before, after, alone)], seconds
        )
        print(
            f"| {pair.name} | {kernels} | {model:.1f} | {len(after) - len(before):,} "
            f"| {cost.microseconds:.2f} | {cost.percent:.1f} | {cost.alone:.2f} |",
            flush=True,
        )


def _shifts(classes: int) -> Shifts:
    rng = np.random.default_rng(0)
    lower = np.tril(rng.integers(-MOST_STEPS, MOST_STEPS + 1, (classes, classes)), -1)
    return Shifts((lower - lower.T).astype(np.int8))


def _interpreter(content: bytes, resolver: OpResolverType) -> Interpreter:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the runtime's, about memory
        interpreter = Interpreter(
            model_content=content, experimental_op_resolver_type=resolver, num_threads=1
        )
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        interpreter.set_tensor(details["index"], _input(details["shape"], details["dtype"]))
    for _ in range(_WARMUPS):
        interpreter.invoke()
    return interpreter


def _input(shape: NDArray[np.int32], dtype: type) -> NDArray[np.generic]:
    rng = np.random.default_rng(0)
    if np.issubdtype(dtype, np.floating):
        return rng.random(shape).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape).astype(dtype)


def _turns(interpreters: list[Interpreter], seconds: float) -> tuple[float, AddedCost]:
    """Return the model's time in µs, and what the shifts cost.

    Args:
        interpreters: of the model, of the repaired one, and of the shifts alone.
        seconds: for all of them together.

    """
    count = len(interpreters)
    runs = [max(1, round(_TURN_SECONDS / _seconds(one, 5))) for one in interpreters]
    turns: list[NDArray[np.float64]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        turn = np.zeros(count)
        for place in range(count):
            which = (place + len(turns)) % count
            interpreters[which].invoke()  # caches are another's now
            turn[which] = _seconds(interpreters[which], runs[which]) * 1e6
        turns.append(turn)
    before, after, alone = np.array(turns).T
    cost = AddedCost(
        float(np.median(after - before)),
        float(np.median(after / before - 1) * 100),
        float(np.median(alone)),
    )
    return float(np.median(before)), cost


def _seconds(interpreter: Interpreter, runs: int) -> float:
    began = time.perf_counter()
    for _ in range(runs):
        interpreter.invoke()
    return (time.perf_counter() - began) / runs


if __name__ == "__main__":
    main()
