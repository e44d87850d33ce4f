"""What `edgeflare inspect` says of planted faults in one channel, healthy pairs, shuffled labels.

    python benchmarks/inspect_faults.py PAIR... [--faults 4] [--healthy 4] [--shuffled 4]
        [--rng-seed 0]

Of each pair, channels are drawn whose weights are multiplied (by 0, .5, 1.5 or 2, rounded and
clipped to int8) until so many are found that raise the root mean square of the margin's error by a
quarter, on 200 inputs near the boundary. Each such file is inspected: with early stopping at a
precision of .05, with all inputs, and with half as many of them. A healthy pair is inspected with
so many run seeds, and again under all behaviours with two hypotheses that no unit foretells: labels
that are drawn, half of them true, for each input and for each line. It is a false alarm if a unit
is beyond the level for one of them, by any measure.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.core.query import Arm
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.inspect.behaviour_block import ERROR_GRADIENT
from edgeflare.diagnose.inspect.inspect_document import BestScore, InspectionResult
from edgeflare.diagnose.inspect.inspect_pair import InspectionRequest, inspect_pair
from edgeflare.diagnose.inspect.unit_behaviours import BEHAVIOURS
from edgeflare.diagnose.near_boundary import near_boundary_inputs
from edgeflare.hypothesis import UnitHypothesis
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.run.plan import Plan

DEVICE = "emulated-xnnpack"
FACTORS = (0.0, 0.5, 1.5, 2.0)
RAISED = 1.25
WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
INPUTS = 1600
SHUFFLED_INPUTS = 400


def main() -> None:
    arguments = parse()
    right = same = halved = planted = calm = healthy = silent = shuffled = 0
    for folder in arguments.pairs:
        pair = load_pair(folder)
        rng = np.random.default_rng([arguments.rng_seed, len(pair.name)])
        for seed in range(arguments.healthy):
            early = inspected(pair, seed, 0.05)
            healthy += 1
            calm += early.verdict.name != "channel"
            print(f"{pair.name}, run seed {seed}: {said(early)}", flush=True)
        for seed in range(arguments.shuffled):
            alarms = [one for one in shuffled_scores(pair, seed) if one.beyond]
            shuffled += 1
            silent += not alarms
            told = [
                f"{one.behaviour} {one.measure} {one.hypothesis} {one.score:.3f}" for one in alarms
            ]
            said_of_them = ", ".join(told) or "nothing"
            print(f"{pair.name}, shuffled labels {seed}: {said_of_them}", flush=True)
        for op, channel, factor, content in faults(pair, arguments.faults, rng):
            with tempfile.TemporaryDirectory() as stored:
                path = Path(stored) / "faulty.tflite"
                path.write_bytes(content)
                faulty = replace(pair, compressed=path)
                early, full = (inspected(faulty, 0, precision) for precision in (0.05, 1e-6))
                half = inspected(faulty, 0, 1e-6, full.inputs // 2)
            planted += 1
            right += found(early, op, channel)
            same += alike(early, full)
            halved += alike(half, full)
            print(
                f"{pair.name}, channel {channel} of operator {op} times {factor:g}: {said(early)};"
                f" with all inputs: {said(full)}; with half of them: {said(half)}",
                flush=True,
            )
    print(f"planted: right {right} of {planted}, the same with all inputs {same} of {planted}")
    print(f"planted: the same with half of all inputs {halved} of {planted}")
    print(f"healthy: diffuse or nothing {calm} of {healthy}")
    print(f"shuffled labels: nothing {silent} of {shuffled}")


def faults(
    pair: Pair, wanted: int, rng: np.random.Generator
) -> Iterator[tuple[int, int, float, bytes]]:
    """Yield drawn faults that raise the margin's error: operator, channel, factor and file."""
    content = pair.compressed.read_bytes()
    graph = Graph(content)
    usual = error_size(pair, content)
    layers = [one for one in graph.layers if one.name in WEIGHTED]
    layers = [one for one in layers if one.outputs[0] not in last_tensors(graph)]
    while wanted:
        one = layers[int(rng.integers(len(layers)))]
        weights = graph.tensors[one.inputs[1]]
        axis = 3 if one.name == "DEPTHWISE_CONV_2D" else 0
        channel, factor = int(rng.integers(weights.shape[axis])), float(rng.choice(FACTORS))
        changed = np.moveaxis(graph.values(weights.index).astype(np.float64), axis, 0).copy()
        changed[channel] = np.clip(np.rint(changed[channel] * factor), -127, 127)
        edit = InPlaceEdit(content)
        edit.set_values(
            weights.index, np.ascontiguousarray(np.moveaxis(changed, 0, axis)).astype(np.int8)
        )
        if error_size(pair, edit.content()) >= RAISED * usual:
            wanted -= 1
            yield one.index, channel, factor, edit.content()


def last_tensors(graph: Graph) -> set[int]:
    """Return the tensors of the scores: the output, and what a last softmax reads."""
    output = graph.outputs[0]
    return {output, *graph.operators[graph.made_by[output]].inputs}


def error_size(pair: Pair, content: bytes) -> float:
    """Return the root mean square of the margin's error near the boundary."""
    with tempfile.TemporaryDirectory() as stored:
        path = Path(stored) / "model.tflite"
        path.write_bytes(content)
        with opened(replace(pair, compressed=path)) as known:
            return margin_error_rms(known)


def margin_error_rms(known: OpenedPair) -> float:
    """Return the root mean square of the margin's error of an open pair."""
    translated = known.white_box.open()
    arms = (Arm.ORIGINAL, Arm.TWIN)

    def scores(arm: Arm, inputs: NDArray[Any]) -> NDArray[np.float64]:
        rows = known.panel.host(arm).encoder.encode(inputs)
        return np.stack([translated.network(arm).evaluate(row)[1] for row in rows])

    def labels(inputs: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(scores(Arm.ORIGINAL, inputs).argmax(1), np.int64)

    seeds = known.seeds.inputs[:100]
    near = near_boundary_inputs(
        seeds, labels(seeds), lambda inputs, _: labels(inputs), 200, np.random.default_rng(1)
    ).tight
    exact, got = (scores(arm, near) for arm in arms)
    top = np.argsort(-exact, axis=1)[:, :2]
    lead = [np.take_along_axis(one, top, 1) @ [1.0, -1.0] for one in (exact, got)]
    return float(np.sqrt(np.square(lead[0] - lead[1]).mean()))


@contextmanager
def opened(pair: Pair) -> Iterator[OpenedPair]:
    """Open a pair on the host's kernels."""
    with ExitStack() as stack:
        yield open_pair(pair, Plan("boundary", Goal(), (DEVICE,)), [find_profile(DEVICE)], stack)


def request(rng_seed: int, precision: float, inputs: int) -> InspectionRequest:
    """Return what is asked: the behaviour that the verdict needs, and no further hypothesis."""
    return InspectionRequest((ERROR_GRADIENT,), (), precision, inputs, rng_seed)


def inspected(
    pair: Pair, rng_seed: int, precision: float, inputs: int = INPUTS
) -> InspectionResult:
    """Inspect a pair."""
    with opened(pair) as known:
        return inspect_pair(known, request(rng_seed, precision, inputs), ())


def shuffled_scores(pair: Pair, rng_seed: int) -> list[BestScore]:
    """Return for each behaviour and measure how well the best unit foretells drawn labels."""
    rng = np.random.default_rng([rng_seed, len(pair.name)])
    of_lines = chain.from_iterable(repeat(bool(rng.random() < 0.5), 2) for _ in count())
    drawn = (
        UnitHypothesis("of inputs", lambda _one: bool(rng.random() < 0.5)),
        UnitHypothesis("of lines", lambda _one: next(of_lines)),  # inputs of one come together
    )
    request = InspectionRequest(BEHAVIOURS, drawn, 1e-6, SHUFFLED_INPUTS, rng_seed)
    with opened(pair) as known:
        result = inspect_pair(known, request, ())
    return [one for one in result.best if one.hypothesis in {each.name for each in drawn}]


def found(result: InspectionResult, op: int, channel: int) -> bool:
    """Whether the verdict names a channel of an operator."""
    unit = result.verdict.unit
    if result.verdict.name != "channel" or unit is None:
        return False
    return (result.layers[unit.layer].operator_index, unit.channel) == (op, channel)


def alike(one: InspectionResult, other: InspectionResult) -> bool:
    """Whether two verdicts say the same: that of a channel names the same one."""
    if one.verdict.name != other.verdict.name:
        return False
    return one.verdict.name != "channel" or one.verdict.unit == other.verdict.unit


def said(result: InspectionResult) -> str:
    """Return the verdict on one line."""
    return f"{result.verdict.sentence} ({result.inputs} inputs)"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--faults", type=int, default=4)
    parser.add_argument("--healthy", type=int, default=4)
    parser.add_argument("--shuffled", type=int, default=4)
    parser.add_argument("--rng-seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
