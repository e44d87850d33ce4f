"""An answer of any task never differs from an equal one, whatever there is in it."""

from __future__ import annotations

from math import prod
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.tasks.task_registry import find_task
from edgeflare.tasks.value_decoder import DistanceName

TASKS: dict[str, dict[str, Any]] = {
    "classification": {"heads": ["1x1x6", "1x6"]},
    "threshold": {"threshold": 0.5, "spread": 1.0},
    "detection": {"decoding": "objects", "threshold": 0.1},
    "segmentation": {"layout": "NHWC", "overlap": 1.0, "region": 1},
    "transcript": {"vocabulary": ["a", "b", "c", "d", "e"]},
    **{f"regression {one}": {"distance": one, "tolerance": 1e-9} for one in get_args(DistanceName)},
}
"""What each is constructed with; the name of the task is the first word."""

TASKS["regression normalized"]["normalize"] = [0, 1]

OUTPUTS: dict[str, list[tuple[int, ...]]] = {
    "classification": [(1, 1, 6), (1, 6)],
    "threshold": [(1, 1)],
    "detection": [(1, 4, 6)],
    "segmentation": [(1, 4, 6, 1)],
    "transcript": [(1, 4, 6)],
    "regression": [(1, 6)],
}


def answers(name: str, raw: NDArray[np.int8]) -> list[Answer]:
    """Return the answers to one row of raw outputs, read twice."""
    kind = name.split(maxsplit=1)[0]
    shapes = OUTPUTS[kind]
    tensors = tuple(Tensor(str(at), one, "int8", 1 / 100, 0) for at, one in enumerate(shapes))
    (row,) = pack_rows(tensors, [raw[: prod(one)].reshape(one) for one in shapes])
    model = ModelOutputs(
        "any.tflite",
        tensors,
        frozenset(),
        frames=0,
        operators=(),
        sample=lambda _count: RawBatch(np.zeros_like(row)[None]),
        picture_sizes=((4, 6),),
    )
    decoder = find_task(kind, TASKS[name]).decoder(model)
    return [next(iter(decoder.read(RawBatch(row[None])))) for _ in range(2)]


@pytest.mark.parametrize("name", TASKS)
@given(
    st.one_of(
        arrays(np.int8, 24),
        arrays(np.int8, 24, elements=st.sampled_from([0, 50, 100])),
        st.just(np.zeros(24, np.int8)),
    )
)
def test_an_answer_does_not_differ_from_an_equal_one(name: str, raw: NDArray[np.int8]) -> None:
    first, second = answers(name, raw)
    assert first.equals(second)
    assert not first.differs(second)
    assert first.failure is not None or (first.strength_against(second) or 0.0) <= 0.0
