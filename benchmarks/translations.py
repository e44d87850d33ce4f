r"""How exactly networks are translated: labels, layers, scores and gradients against the runtime.

    python benchmarks/translations.py MODEL.tflite SEEDS.npz [--key images] [--scale 255] \
        [--mean 0 --std 1]

One line for the model: on how many inputs the labels are equal; the share of scores that are equal
(of a quantized model) or the largest difference (of a float one); and of float models the median
and largest relative error of the gradient against central differences of the runtime, in its own
direction. Inputs are divided by `--scale`, and quantized as the model takes them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor, quantize
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork

STEP = 5e-4
"""Length of the step to each side, in the values that the model takes."""


def main() -> None:
    arguments = parse()
    content = arguments.model.read_bytes()
    network = DifferentiableNetwork(Graph(content, str(arguments.model)))
    known = network.graph.tensors[network.graph.inputs[0]]
    inputs = np.load(arguments.seeds)[arguments.key][: arguments.inputs]
    scaled = (inputs / arguments.scale - arguments.mean) / arguments.std
    real = scaled.astype(np.float32).reshape(-1, *known.shape)
    scales, points = known.scales or (0.0,), known.zero_points or (0,)
    rows = quantize(real, Tensor("input", known.shape, known.dtype, scales[0], points[0]))
    with HostProbe(content, "xnnpack", capture=True) as probe:
        said = compared(network, probe, rows)
        if known.dtype == "float32":
            errors = [gradient_error(network, probe, row, n) for n, row in enumerate(rows[:50])]
            said += f"; gradients off by {np.median(errors):.2g} (largest {max(errors):.2g})"
    print(f"{arguments.model}: {said}")


def compared(network: DifferentiableNetwork, probe: HostProbe, rows: NDArray[np.generic]) -> str:
    """Compare labels and scores."""
    at = probe.made.index(network.scores)
    output = probe.made.index(network.graph.outputs[0])
    labels, differences = 0, []
    for row in rows:
        runtime = probe.run([row])
        made, _ = network.evaluate(row)
        labels += int(made.argmax() == runtime[output].argmax())
        scores = network.tensors(row)[network.scores].astype(np.float64)
        differences.append(np.abs(scores - runtime[at].astype(np.float64)))
    off = np.array(differences)
    said = f"labels equal on {labels} of {len(rows)}"
    if network.graph.tensors[network.scores].scales:
        return f"{said}; scores {(off == 0).mean():.2%} equal, at most {off.max():.0f} units off"
    return f"{said}; scores at most {off.max():.2g} off"


def gradient_error(
    network: DifferentiableNetwork, probe: HostProbe, plain: NDArray[np.generic], seed: int
) -> float:
    """Return the relative error of a gradient; noise takes the row away from ties of maxima."""
    rng = np.random.default_rng(seed)
    spread = float(np.ptp(plain))
    noise = spread * rng.uniform(0, 0.05, plain.shape)
    row = (plain.astype(np.float64) + noise).astype(np.float32)
    at = probe.made.index(network.scores)
    weights = rng.normal(size=network.graph.tensors[network.scores].size)
    gradient = network.gradient(row, weights).reshape(row.shape)
    length = float(np.linalg.norm(gradient))
    step = (STEP * spread * gradient / length).astype(np.float32)
    ahead, behind = (
        probe.run([row + sign * step])[at].ravel().astype(np.float64) for sign in (1, -1)
    )
    slope = float((ahead - behind) @ weights) / (2 * STEP * spread)
    return abs(slope - length) / length


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--key", default="images", help="the array in the .npz file")
    parser.add_argument("--scale", type=float, default=255.0, help="what values are divided by")
    for name, default in (("--mean", "0"), ("--std", "1")):
        said = "of the channels, with commas between, as preprocessing has it"
        parser.add_argument(name, type=_numbers, default=default, help=said)
    parser.add_argument("--inputs", type=int, default=300)
    return parser.parse_args()


def _numbers(text: str) -> NDArray[np.float64]:
    return np.array([float(part) for part in text.split(",")])


if __name__ == "__main__":
    main()
