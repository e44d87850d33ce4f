"""How far outputs are apart, of which a task reads one."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.query import Arm
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.models.pair_interface import PairInterface
from edgeflare.release.answers import Answers
from edgeflare.release.output_errors import output_figures

SCORES, PLACE, SURE = (
    Tensor(name, shape, "float32")
    for name, shape in (("scores", (1, 3)), ("place", (1, 2)), ("sure", (1, 1)))
)
INPUTS = 4


def arm(tensors: tuple[Tensor, ...], read: str, factor: float = 1.0) -> Any:
    """Return an arm that answers each input by its number, in all values of its outputs."""
    at = [tensor.name for tensor in tensors].index(read)
    decoder = SimpleNamespace(outputs=tensors, read_at=(at,))

    def submit(given: NDArray[np.float64]) -> Future[RawBatch]:
        arrays = [
            np.ones((INPUTS, *tensor.shape), np.float32)
            * given.reshape(-1, *[1] * len(tensor.shape)).astype(np.float32)
            * np.float32(factor if tensor.name in ("sure", "certain") else 1.0)
            for tensor in tensors
        ]
        answered: Future[RawBatch] = Future()
        answered.set_result(RawBatch(pack_rows(tensors, arrays)))
        return answered

    return SimpleNamespace(decoder=decoder, given=lambda rows, _: rows, submit=submit)


def test_outputs_that_no_decision_hangs_on_are_held_against_the_originals() -> None:
    renamed = Tensor("certain", (1, 1), "float32")
    arms = {
        Arm.ORIGINAL: arm((renamed, SCORES, PLACE), "scores", 2.0),
        Arm.TWIN: arm((SCORES, PLACE, SURE), "scores"),
        Arm.DEVICE: arm((SCORES, PLACE, SURE), "scores"),
    }
    panel = SimpleNamespace(
        arms=tuple(arms),
        reading=SimpleNamespace(decoders={each: its.decoder for each, its in arms.items()}),
        host=arms.__getitem__,
        device_of=lambda _: arms[Arm.DEVICE],
    )
    seeds = SimpleNamespace(inputs=np.arange(1.0, INPUTS + 1), seed_ids=range(INPUTS))
    pair = SimpleNamespace(interface=PairInterface())
    opened = cast(Any, SimpleNamespace(pair=pair, panel=panel, seeds=seeds))
    found = output_figures(Answers(opened, range(INPUTS), (), ()))
    assert [(each.output, each.read) for each in found] == [
        ("scores", True),
        ("place", False),
        ("sure", False),
    ]
    off = [each.compression.max_error for each in found if each.compression is not None]
    assert off == [0.0, 0.0, 4.0]
    assert [each.kernels.max_error for each in found if each.kernels is not None] == [0.0] * 3
