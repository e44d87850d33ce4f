"""Tests of edgeflare.diagnose.near_boundary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.diagnose.near_boundary import (
    FURTHEST,
    NearBoundary,
    near_boundary_inputs,
)
from edgeflare.errors import UserError

SHAPE = (2, 3, 1)
CLASSES = 3


def linear(weights: NDArray[np.float64], images: NDArray[np.uint8]) -> NDArray[np.int64]:
    scores = images.reshape(len(images), -1).astype(np.float64) @ weights
    labels: NDArray[np.int64] = scores.argmax(axis=1).astype(np.int64)
    return labels


def drawn(
    number: int, seeds: int = 30, count: int = 40
) -> tuple[NearBoundary, NDArray[np.uint8], NDArray[np.float64]]:
    """Near-boundary inputs of a linear classifier, its images and its weights."""
    rng = np.random.default_rng(number)
    images = rng.integers(0, 256, (seeds, *SHAPE), np.uint8)
    weights = rng.normal(size=(6, CLASSES))
    weights -= weights.mean(axis=0)  # each class is the largest somewhere
    labels = linear(weights, images)
    made = near_boundary_inputs(
        images, labels, lambda batch: linear(weights, batch), count, np.random.default_rng(number)
    )
    return made, images, weights


def images_of_line(start: NDArray[np.uint8], end: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The images at 0, 1/512, … 1 of a line, halves towards the start, by whole numbers."""
    change = end.astype(np.int64) - start
    steps = np.arange(513)[:, None, None, None]
    images: NDArray[np.int64] = start - np.sign(change) * (
        (512 - 2 * np.abs(change) * steps) // 1024
    )
    return images


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_tight_images_are_neighbours_on_both_sides_of_the_boundary(number: int) -> None:
    made, images, weights = drawn(number)
    labels, answered = linear(weights, images), linear(weights, made.tight)
    for at in range(0, len(made.tight), 2):
        start, end = images[made.rows[at]], images[made.rows[at + 1]]
        assert answered[at] == labels[made.rows[at]]
        assert answered[at + 1] != answered[at]
        line = images_of_line(start, end)
        low, high = made.tight[at], made.tight[at + 1]
        assert ((line[:-1] == low) & (line[1:] == high)).all(axis=(1, 2, 3)).any()
        assert np.abs(low.astype(int) - high).max() == 1


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_wide_images_lie_further_on_their_own_side_and_within_the_line(number: int) -> None:
    made, images, _ = drawn(number)
    for at in range(len(made.wide)):
        own, other = images[made.rows[at]], images[made.rows[at ^ 1]]
        whole = np.abs(own.astype(float) - other)
        further = np.abs(made.wide[at].astype(float) - other)
        tight = np.abs(made.tight[at].astype(float) - other)
        assert (further >= tight).all()
        assert (further <= whole).all()
        assert (further - tight <= FURTHEST * whole + 1).all()


def test_no_two_lines_are_the_same_and_fewer_seeds_make_fewer_images() -> None:
    made, images, weights = drawn(3, seeds=6, count=1000)
    labels = linear(weights, images)
    ends = [frozenset(pair) for pair in made.rows.reshape(-1, 2).tolist()]
    sizes = np.bincount(labels)
    assert len(ends) == len(set(ends)) == (36 - (sizes**2).sum()) // 2
    assert len(made.tight) == len(made.wide) == 2 * len(ends) < 1000


def test_the_same_generator_seed_makes_the_same_images() -> None:
    (one, _, _), (same, _, _), (other, _, _) = drawn(5), drawn(5), drawn(6)
    assert (one.tight == same.tight).all()
    assert (one.wide == same.wide).all()
    assert (one.wide != other.wide).any()


def test_seeds_on_which_the_original_is_wrong_or_that_have_no_label_are_left_out() -> None:
    _, images, weights = drawn(4)
    labels = linear(weights, images)
    labels[:5] = (labels[:5] + 1) % CLASSES
    labels[5:10] = -1
    made = near_boundary_inputs(
        images, labels, lambda batch: linear(weights, batch), 100, np.random.default_rng(0)
    )
    assert made.rows.min() >= 10


def test_seeds_of_one_label_are_refused() -> None:
    images = np.zeros((4, *SHAPE), np.uint8)
    with pytest.raises(UserError, match="4 of 4 seeds, all of one label or none: give more seeds"):
        near_boundary_inputs(
            images,
            np.zeros(4, np.int64),
            lambda batch: np.zeros(len(batch), np.int64),
            10,
            np.random.default_rng(0),
        )
