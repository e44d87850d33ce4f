"""Three compressions of the example's original, from one that hardly differs to a broken one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynamic_range import quantize_weights
from edgeflare.models.pair import Pair, load_pair
from tflite_weights import Weights, pruned

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
SEEDS = 12


@dataclass(frozen=True)
class Models:
    """Where models lie, and pairs of them with the first seeds and labels of the example."""

    folder: Path
    pairs: tuple[Pair, ...]


def make_models(folder: Path) -> Models:
    """Write the models and the seeds: dynamic, pruned50 and pruned85."""
    pair = load_pair(EXAMPLE)
    original = (EXAMPLE / "original.tflite").read_bytes()
    (folder / "dynamic.tflite").write_bytes(quantize_weights(original))
    for percent in (50, 85):
        content = pruned(Weights(original), 2, percent / 100)
        (folder / f"pruned{percent}.tflite").write_bytes(content)
    seeds = folder / "seeds.npz"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(seeds, images=arrays["images"][:SEEDS], labels=arrays["labels"][:SEEDS])
    return Models(
        folder,
        tuple(
            replace(pair, name=name, compressed=folder / f"{name}.tflite", seeds=seeds)
            for name in ("dynamic", "pruned50", "pruned85")
        ),
    )
