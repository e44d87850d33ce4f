"""The example detector is complete, small, and free of deviations before any search."""

from __future__ import annotations

from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import quantize
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import Kernels

PAIR = Path(__file__).parents[2] / "examples" / "face_detection"
ALL_KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")


@cache
def answers(file: str, kernels: Kernels) -> list[Answer]:
    with np.load(PAIR / "seeds.npz") as seeds:
        inputs = (seeds["images"] / np.float32(127.5) - np.float32(1.0)).astype(np.float32)
    with closing(open_tflite(PAIR / file, kernels)) as model:
        batch = model.submit(quantize(inputs, model.signature.input)).result()
        outputs = model.signature.outputs
        read = ModelOutputs(file, outputs, frozenset(), 0, (), lambda _: batch)
        return list(load_pair(PAIR).interface.opened_task.decoder(read).read(batch))


def test_the_pair_is_complete_and_small() -> None:
    assert (PAIR / "LICENSE.mediapipe").is_file()
    assert sum(path.stat().st_size for path in PAIR.rglob("*") if path.is_file()) < 2_000_000
    with np.load(PAIR / "seeds.npz") as seeds:
        assert seeds["images"].shape == (35, 128, 128, 3)
        assert len(np.unique(seeds["images"], axis=0)) == len(set(seeds["names"])) == 35


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ALL_KERNELS)
def test_both_models_detect_the_same_on_every_seed_without_a_tie(kernels: Kernels) -> None:
    original, compressed = (
        answers("original.tflite", "xnnpack"),
        answers("compressed.tflite", kernels),
    )
    assert not any(one.tied for one in (*original, *compressed))
    assert not any(a.differs(b) for a, b in zip(original, compressed, strict=True))
