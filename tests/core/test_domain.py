"""What every domain says of distances and views unless it says otherwise."""

from __future__ import annotations

from dataclasses import asdict
from math import inf, sqrt

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.domain import PSNR, SNR, Domain, decibels
from edgeflare.core.input_space import InputSpace
from edgeflare.core.views import CurvesView, ValuesView, view_by_shape
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain, signal_to_noise_db
from edgeflare.domains.image.image_domain import ImageDomain

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.sampled_from([1, 3]))
def test_the_nearness_of_images_is_their_psnr(rng_seed: int, channels: int) -> None:
    seed, image = np.random.default_rng(rng_seed).integers(0, 256, (2, 7, 5, channels), np.uint8)
    domain = ImageDomain()
    assert domain.nearness_measure is PSNR
    assert domain.nearness_db(image, seed) == decibels(
        255.0, domain.distances(image, seed).l2, seed.size
    )
    assert domain.nearness_db(image, seed) == pytest.approx(cv2.PSNR(seed, image), abs=1e-6)


@given(SEEDS)
def test_the_nearness_of_sounds_is_their_ratio_to_noise(rng_seed: int) -> None:
    seed, one = np.random.default_rng(rng_seed).integers(-9000, 9000, (2, 300), np.int16)
    domain = AudioDomain()
    assert domain.nearness_measure is SNR
    assert domain.nearness_db(one, seed) == signal_to_noise_db(one, seed)
    # What a domain says that leaves it to the base class.
    unlimited = ArrayDomain("float32", level=16.0)
    assert unlimited.nearness_measure is SNR
    assert unlimited.nearness_db(one.astype(np.float32), seed.astype(np.float32)) == pytest.approx(
        signal_to_noise_db(one, seed)
    )


@pytest.mark.parametrize("level", [None, 0.5])
def test_the_nearness_of_arrays_between_bounds_is_told_by_their_span(level: float | None) -> None:
    domain = ArrayDomain(lowest=-10.0, highest=30.0, level=level)
    seed = np.zeros(4, np.float32)
    assert domain.nearness_measure is PSNR
    assert domain.nearness_db(seed + np.float32(4.0), seed) == pytest.approx(20.0)


@pytest.mark.parametrize(
    "domain", [ImageDomain(), AudioDomain(), ArrayDomain(), ArrayDomain(lowest=0.0, highest=1.0)]
)
def test_an_input_is_infinitely_near_to_itself_alone(domain: Domain) -> None:
    seed = np.ones(
        (6, 1, 1)[: domain.space.cell_axes + (domain.name == "image")], domain.space.dtype
    )
    assert domain.nearness_db(seed, seed) == inf
    changed = seed.copy()
    changed[3] = 0
    assert domain.nearness_db(changed, seed) < inf


def test_what_is_near_to_silence_is_nothing() -> None:
    silent = np.zeros(4, np.int16)
    assert AudioDomain().nearness_db(silent + np.int16(1), silent) == -inf
    floats = silent.astype(np.float32)
    assert ArrayDomain().nearness_db(floats + np.float32(1), floats) == -inf


@pytest.mark.parametrize(
    ("domain", "seed", "one", "l2", "linf", "mean_abs", "changed"),
    [
        (ImageDomain(), np.zeros((2, 2, 3)), [[[3, 4, 0], [0, 0, 0]]] * 2, 50**0.5, 4, 14 / 12, 2),
        (AudioDomain(), np.zeros(4), [48, -64, 0, 0], 5.0, 4.0, 7 / 4, 2),
        (ArrayDomain(), np.zeros((3, 2)), [[3, 4], [0, 0], [0, 1]], sqrt(26), 4, 8 / 6, 2),
        (ArrayDomain("int16", level=2.0), np.zeros(3), [6, 0, -8], 5.0, 4.0, 7 / 3, 2),
    ],
)
def test_distances_are_in_levels_and_cells(
    domain: Domain,
    seed: np.ndarray,
    one: list[object],
    l2: float,
    linf: float,
    mean_abs: float,
    changed: int,
) -> None:
    dtype = domain.space.dtype
    told = asdict(domain.distances(np.array(one, dtype), seed.astype(dtype)))
    expected = {"l2": l2, "linf": linf, "mean_abs": mean_abs, "changed": changed}
    assert told == pytest.approx(expected)


SPACE = InputSpace("float32", -2.0, 3.0, cell_axes=1)


@pytest.mark.parametrize("shape", [(4,), (), (1,)])
def test_a_single_axis_is_values(shape: tuple[int, ...]) -> None:
    one = np.full(shape, 1.5, np.float32)
    view = view_by_shape(one, SPACE)
    assert isinstance(view, ValuesView)
    assert view.values.tolist() == one.ravel().tolist()
    assert (view.lowest, view.highest) == (-2.0, 3.0)


@pytest.mark.parametrize(
    ("shape", "curves"), [((5, 2), (5, 2)), ((5, 2, 3), (5, 6)), ((0, 2), (0, 2))]
)
def test_several_axes_are_curves_along_the_first(
    shape: tuple[int, ...], curves: tuple[int, ...]
) -> None:
    one = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    view = view_by_shape(one, SPACE)
    assert isinstance(view, CurvesView)
    assert view.values.shape == curves
    assert view.values.ravel().tolist() == one.ravel().tolist()
