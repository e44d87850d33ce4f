"""Outputs and values in another order: heads that are swapped, coordinates that are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.tensor_rows import pack_rows
from edgeflare.run.systematic.output_order import output_order, value_order
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.clip_frames import NO_CLIP
from edgeflare.tasks.heads_decoder import HeadsDecoder
from edgeflare.tasks.value_decoder import Measure, ValueAnswer, ValueDecoder

SEEDS = 24
MEASURE = Measure(0.5, "absolute")


def tensors(dtype: str = "float32", size: int = 4) -> tuple[Tensor, ...]:
    scale = 0.0 if dtype == "float32" else 0.1
    return tuple(Tensor(name, (1, size), dtype, scale, 0) for name in ("a", "b", "c"))


def rows(outputs: tuple[Tensor, ...], values: list[NDArray[np.float64]]) -> NDArray[np.generic]:
    raw = [
        one.astype(np.float32) if tensor.dtype == "float32" else np.round(one / 0.1).astype(np.int8)
        for tensor, one in zip(outputs, values, strict=True)
    ]
    return pack_rows(outputs, [one.reshape(SEEDS, 1, -1) for one in raw])


def of_heads(outputs: tuple[Tensor, ...], read: str) -> Decoder:
    return HeadsDecoder(
        [ClassDecoder(one, "logits", outputs) for one in outputs if one.name in read]
    )


def of_values(outputs: tuple[Tensor, ...], read: str) -> Decoder:
    at = [one.name for one in outputs].index(read)
    return ValueDecoder(outputs, at, MEASURE, NO_CLIP)


@pytest.mark.parametrize(
    ("read", "given", "moved"),
    [
        ("ab", "bac", ((0, 1), (1, 0))),
        ("abc", "cab", ((0, 1), (1, 2), (2, 0))),
        ("b", "acb", ((2, 1),)),
    ],
    ids=["two heads", "three heads", "an output that is not read"],
)
def test_outputs_of_one_shape_in_another_order_are_named(
    read: str, given: str, moved: tuple[tuple[int, int], ...]
) -> None:
    rng = np.random.default_rng(0)
    values = {name: 3.0 * rng.normal(size=(SEEDS, 4)) for name in "abc"}
    floats, integers = tensors(), tensors("int8")
    made = of_values if len(read) == 1 else of_heads
    found = output_order(
        made(floats, read),
        rows(floats, list(values.values())),
        made(integers, read),
        rows(integers, [values[name] for name in given]),
    )
    assert found is not None
    assert found.moved == moved
    assert found.before < 0.5
    assert found.after > 0.9


def test_no_order_is_said_of_outputs_that_are_in_place_or_are_none_of_the_original() -> None:
    for number in range(20):
        rng = np.random.default_rng(number)
        values = [3.0 * rng.normal(size=(SEEDS, 4)) for _ in "abc"]
        floats, integers = tensors(), tensors("int8")
        for others in (
            values,
            [np.clip(one + rng.normal(size=one.shape), -9.0, 9.0) for one in values],
            [3.0 * rng.normal(size=one.shape) for one in values],
            [np.zeros_like(one) for one in values],
        ):
            decoders = of_heads(floats, "abc"), of_heads(integers, "abc")
            first, second = rows(floats, values), rows(integers, others)
            assert output_order(decoders[0], first, decoders[1], second) is None


def answers(values: NDArray[np.float64]) -> list[ValueAnswer]:
    outputs = (Tensor("a", (1, values.shape[1]), "float32"),)
    read = ValueDecoder(outputs, 0, MEASURE, NO_CLIP).read(RawBatch(values.astype(np.float32)))
    return [one for one in read if isinstance(one, ValueAnswer)]


def test_values_in_another_order_are_named() -> None:
    """Coordinates with x and y exchanged, of which the last two stay."""
    rng = np.random.default_rng(1)
    values = 10.0 * rng.normal(size=(40, 6))
    moved = values[:, [1, 0, 3, 2, 4, 5]] + rng.normal(scale=0.05, size=values.shape)
    found = value_order(answers(values), answers(moved))
    assert found is not None
    assert found.moved == ((0, 1), (1, 0), (2, 3), (3, 2))
    assert (found.before, found.after) == (0.0, 1.0)


def test_values_that_are_merely_wrong_have_no_other_order() -> None:
    for number in range(20):
        rng = np.random.default_rng(number)
        values = 10.0 * rng.normal(size=(40, 6))
        for other in (
            values + rng.normal(size=values.shape),
            rng.normal(size=values.shape),
            np.minimum(values, 2.0),
            np.tile(values[:, :1], 6),
            values + 3.0,
        ):
            assert value_order(answers(values), answers(other)) is None
