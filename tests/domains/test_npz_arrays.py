from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgeflare.domains.npz_arrays import labels_of

PATH = Path("seeds.npz")


def test_labels_are_one_integer_or_several_for_each_seed() -> None:
    texts = labels_of(PATH, {"labels": np.array([[3, 1, -1], [1, 0, 2]])}, 2, "waves")
    assert texts is not None
    assert texts.tolist() == [[3, 1, -1], [1, 0, 2]]
    assert labels_of(PATH, {}, 2, "waves") is None
    column = labels_of(PATH, {"labels": np.array([[3], [1]], np.uint8)}, 2, "waves")
    assert column is not None
    assert column.tolist() == [3, 1]


@pytest.mark.parametrize(
    "labels", [np.eye(3, dtype=np.int64)[:2], np.zeros((3, 2), np.int64), np.zeros((2, 2))]
)
def test_one_hot_labels_and_those_of_other_seeds_are_refused(
    labels: np.ndarray[tuple[int, ...], np.dtype[np.generic]], refusal: Callable[..., str]
) -> None:
    said = refusal(labels_of, PATH, {"labels": labels}, 2, "waves")
    assert "expected one integer for each of 2 waves" in said
