"""Choose the seeds of the example from a pool of pictures: `make_seeds.py POOL.npz`.

A picture can be chosen where the original and the compressed model detect the same, with no score
at the threshold, whichever kernels run the compressed one. All such pictures without a whole face
are taken, and of those with one as many, evenly spaced, as make up 35 seeds. The pool is not
shipped; it holds `images` (n, 128, 128, 3) uint8, `names` and `has_face` (n,).
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import quantize
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import Kernels

HERE = Path(__file__).parent
SEEDS = 35
KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")


def answers(images: NDArray[np.uint8], file: str, kernels: Kernels) -> list[Answer]:
    """Return what a model detects in each picture: images (n, 128, 128, 3) uint8."""
    task = load_pair(HERE).interface.opened_task
    inputs = (images / np.float32(127.5) - np.float32(1.0)).astype(np.float32)
    with closing(open_tflite(HERE / file, kernels)) as model:
        batch = model.submit(quantize(inputs, model.signature.input)).result()
        outputs = model.signature.outputs
        read = ModelOutputs(file, outputs, frozenset(), 0, (), lambda _: batch)
        return list(task.decoder(read).read(batch))


def main() -> None:
    with np.load(sys.argv[1]) as pool:
        images, names, has_face = (pool[key] for key in ("images", "names", "has_face"))
    original = answers(images, "original.tflite", "xnnpack")
    fit = np.array([not one.tied for one in original])
    for kernels in KERNELS:
        compressed = answers(images, "compressed.tflite", kernels)
        fit &= [not (a.differs(b) or b.tied) for a, b in zip(original, compressed, strict=True)]
    empty, faces = np.flatnonzero(fit & ~has_face), np.flatnonzero(fit & has_face)
    spaced = faces[np.linspace(0, len(faces) - 1, SEEDS - len(empty)).round().astype(int)]
    chosen = np.sort(np.concatenate([empty, spaced]))
    np.savez_compressed(HERE / "seeds.npz", images=images[chosen], names=names[chosen])
    print(len(chosen), "seeds:", ", ".join(names[chosen]))


if __name__ == "__main__":
    main()
