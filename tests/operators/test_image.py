from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from edgeflare_operators import MutationOperator, operators
from edgeflare_operators.image import (
    SIGMA,
    average_blur,
    clipped,
    gaussian_blur,
    gaussian_noise,
    median_blur,
    multiplicative_noise,
    pixel_change,
    salt_and_pepper,
)
from edgeflare_operators.wrapping_noise import (
    wrapped,
    wrapping_gaussian_noise,
    wrapping_multiplicative_noise,
)

Image = NDArray[np.uint8]

OURS = (
    average_blur,
    gaussian_blur,
    gaussian_noise,
    median_blur,
    multiplicative_noise,
    pixel_change,
    salt_and_pepper,
)
BLURS = (average_blur, gaussian_blur, median_blur)

shapes = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3, 4]))
images = shapes.flatmap(lambda shape: arrays(np.uint8, shape))
seeds = st.integers(0, 2**32)
reals = arrays(np.float64, array_shapes(), elements=st.floats(-1e6, 1e6))


def test_pixel_change_reaches_every_count_and_the_whole_range() -> None:
    rng = np.random.default_rng(0)
    image = np.full((64, 64, 3), 100, np.uint8)
    mutants = [pixel_change(image, rng) for _ in range(3000)]
    assert {np.count_nonzero(mutant != 100) for mutant in mutants} == set(range(10))
    assert {0, 255} <= {int(value) for mutant in mutants for value in mutant[mutant != 100]}


@given(image=images, seed=seeds)
def test_salt_and_pepper_sets_a_few_entries_to_white_or_black(image: Image, seed: int) -> None:
    mutant = salt_and_pepper(image, np.random.default_rng(seed))
    changed = mutant[mutant != image]
    most = math.ceil(0.004 * image.size / 2)
    assert np.isin(changed, (0, 255)).all()
    assert np.count_nonzero(changed == 0) <= most
    assert np.count_nonzero(changed == 255) <= most


def test_salt_and_pepper_are_half_and_half() -> None:
    rng = np.random.default_rng(0)
    gray = np.full((100, 100, 3), 100, np.uint8)
    mutant = salt_and_pepper(gray, rng)
    assert np.count_nonzero(mutant == 255) == pytest.approx(60, abs=2)
    assert np.count_nonzero(mutant == 0) == pytest.approx(60, abs=2)


@pytest.mark.parametrize("op", BLURS, ids=lambda op: op.name)
@given(image=images, seed=seeds)
def test_a_blur_stays_within_the_range_of_the_image(
    op: MutationOperator, image: Image, seed: int
) -> None:
    mutant = op(image, np.random.default_rng(seed))
    assert mutant.min() >= image.min()
    assert mutant.max() <= image.max()


@pytest.mark.parametrize(("op", "windows"), list(zip(BLURS, (5, 4, 4), strict=True)))
def test_a_blur_has_as_many_windows_as_the_paper_says(op: MutationOperator, windows: int) -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(256, size=(28, 28, 1), dtype=np.uint8)
    mutants = {op(image, rng).tobytes() for _ in range(200)}
    assert len(mutants) == windows
    assert image.tobytes() in mutants  # a window of one


def test_gaussian_noise_has_the_published_deviation_and_rounds_to_nearest() -> None:
    gray = np.full((200, 200, 3), 100, np.uint8)
    change = gaussian_noise(gray, np.random.default_rng(0)).astype(int) - 100
    beyond_half = math.erfc(0.5 / SIGMA / math.sqrt(2))
    assert np.count_nonzero(change) / change.size == pytest.approx(beyond_half, abs=0.005)
    assert change.mean() == pytest.approx(0, abs=0.005)


def test_multiplicative_noise_is_a_share_of_each_entry() -> None:
    rng = np.random.default_rng(0)
    image = np.zeros((40, 40, 1), np.uint8)
    image[20:] = 100
    mutants = np.array([multiplicative_noise(image, rng) for _ in range(400)]).astype(float)
    assert not mutants[:, :20].any()  # black stays black
    shares = mutants[:, 20:] / 100 - 1
    means, deviations = shares.mean(axis=(1, 2, 3)), shares.std(axis=(1, 2, 3))
    assert means.min() == pytest.approx(-0.5, abs=0.05)
    assert means.max() == pytest.approx(0.5, abs=0.05)
    assert (deviations**2).max() == pytest.approx(0.05, abs=0.005)
    assert (deviations**2).mean() == pytest.approx(0.025, abs=0.005)


@given(reals)
def test_clipping_gives_the_nearest_gray_level(real: NDArray[np.float64]) -> None:
    within = np.clip(real, 0, 255)
    assert (np.abs(clipped(real) - within) <= 0.5).all()


@given(reals)
def test_wrapping_truncates_and_keeps_the_value_modulo_256(real: NDArray[np.float64]) -> None:
    expected = [math.trunc(value) % 256 for value in real.flat]
    assert wrapped(real).ravel().tolist() == expected


@pytest.mark.parametrize(
    ("clipping", "wrapping"),
    [
        (gaussian_noise, wrapping_gaussian_noise),
        (multiplicative_noise, wrapping_multiplicative_noise),
    ],
    ids=["gaussian", "multiplicative"],
)
def test_only_the_published_noise_wraps(
    clipping: MutationOperator, wrapping: MutationOperator
) -> None:
    white = np.full((64, 64, 1), 255, np.uint8)
    parted = 0
    for seed in range(20):
        held = clipping(white, np.random.default_rng(seed)).astype(int)
        wrapped_round = wrapping(white, np.random.default_rng(seed)).astype(int)
        apart = abs(held - wrapped_round) > 1  # more than truncation instead of rounding
        assert np.isin(held[apart], (0, 255)).all()
        parted += np.count_nonzero(apart)
    assert parted > 0


def test_searches_draw_ours_and_not_the_published_variants() -> None:
    assert operators() == OURS
