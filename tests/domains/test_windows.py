"""Windows of arrays, clips and sounds: how they are cut, counted and encoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.core.domain import DescribedEncoder
from edgeflare.core.tensor import Tensor
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.audio.front_end import open_front_end
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.domains.windows import Windows

Refusal = Callable[..., str]

SPECTRUM: dict[str, Any] = {"name": "spectrum", "frame_length": 64, "frame_step": 32}
WAVES = np.random.default_rng(0).integers(-9_000, 9_000, (2, 800)).astype(np.int16)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 60))
def test_windows_begin_a_step_apart_and_none_is_cut_off(length: int, step: int, more: int) -> None:
    windows, rows = Windows(length, step), length + more - 1
    cut = windows.cut(np.arange(2 * rows * 3).reshape(2, rows, 3))
    assert cut.shape == (2, windows.count(rows), length, 3)
    assert (cut[1, :, 0, 0] == (rows + step * np.arange(windows.count(rows))) * 3).all()
    assert (np.diff(cut[..., 0], axis=2) == 3).all()
    assert windows.rows(windows.count(rows)) <= rows < windows.rows(windows.count(rows) + 1)
    assert windows.count(length - 1) == 0


def test_windows_of_an_array_overlap_and_are_normalized_along_the_last_axis() -> None:
    domain = ArrayDomain(windows={"length": 3, "step": 2}, mean=(1.0, 2.0))
    flat, deep = Tensor("x", (4, 1, 6), "float32"), Tensor("x", (4, 1, 3, 2), "float32")
    assert domain.input_shape(flat) == domain.input_shape(deep) == (9, 2)
    given_rows = np.arange(18, dtype=np.float32).reshape(1, 9, 2)
    made = domain.encoder(deep).encode(given_rows)
    expected = [given_rows[0, at : at + 3] - [1.0, 2.0] for at in (0, 2, 4, 6)]
    np.testing.assert_array_equal(made, np.reshape(expected, (1, 4, 1, 3, 2)))
    np.testing.assert_array_equal(domain.encoder(flat).encode(given_rows).ravel(), made.ravel())


@pytest.mark.parametrize("shape", [(4, 1, 2, 3), (4, 1, 7), (4,)])
def test_a_model_that_takes_no_such_window_is_refused(
    shape: tuple[int, ...], refusal: Refusal
) -> None:
    domain = ArrayDomain(windows={"length": 3, "step": 1})
    said = refusal(domain.input_shape, Tensor("x", shape, "float32"))
    assert "which is no window of 3 rows, (1, 3, …)" in said


def test_a_model_sees_several_frames_of_a_clip_at_a_time() -> None:
    domain = FramesDomain(windows={"length": 2, "step": 1})
    tensor = Tensor("x", (3, 1, 2, 4, 4, 1), "float32")
    assert domain.input_shape(tensor) == (4, 4, 4, 1)
    clip = np.random.default_rng(1).integers(0, 256, (1, 4, 4, 4, 1), np.uint8)
    made = domain.encoder(tensor).encode(clip)
    assert made.shape == (1, *tensor.shape)
    assert isinstance(domain.encoder(tensor), DescribedEncoder)
    for at in range(3):
        np.testing.assert_allclose(
            np.float64(made[0, at, 0]), clip[0, at : at + 2] / 255.0, rtol=1e-6
        )


def features(waves: NDArray[np.int16]) -> NDArray[np.float32]:
    return open_front_end(SPECTRUM, 16_000).features(waves)


@pytest.mark.parametrize("source", ["features", "samples"])
def test_windows_of_a_sound_are_cut_behind_the_front_end_or_before_it(source: str) -> None:
    """Here both are the same windows: 5 rows are those of 192 samples, and 2 rows are 64 apart."""
    windows: dict[str, Any] = {"length": 5, "step": 2}
    if source == "samples":
        windows = {"length": 192, "step": 64, "source": source}
    domain = AudioDomain(samples=800, front_end=SPECTRUM, windows=windows)
    assert domain.window_count() == 10
    tensor = Tensor("x", (10, 1, 5 * 33), "float32")
    assert domain.input_shape(tensor) == (800,)
    made = domain.encoder(tensor).encode(WAVES)
    whole = features(WAVES)
    for at in range(10):
        expected = whole[:, 2 * at : 2 * at + 5].reshape(2, 1, -1)
        np.testing.assert_allclose(np.float64(made[:, at]), expected, rtol=1e-5, atol=1e-7)


def test_each_window_of_samples_has_its_own_peak() -> None:
    domain = AudioDomain(
        normalize="peak", windows={"length": 100, "step": 100, "source": "samples"}
    )
    made = np.float64(domain.encoder(Tensor("x", (8, 1, 100), "float32")).encode(WAVES))
    assert (np.abs(made).max(axis=(2, 3)) == 1.0).all()
    domain = AudioDomain(normalize="peak", windows={"length": 100, "step": 100})
    made = np.float64(domain.encoder(Tensor("x", (8, 1, 100), "float32")).encode(WAVES))
    assert ((np.abs(made).max(axis=(2, 3)) == 1.0).sum(1) < 8).all()


def test_another_number_of_windows_is_corrected_with_the_line(refusal: Refusal) -> None:
    domain = AudioDomain(samples=800, front_end=SPECTRUM, windows={"length": 5, "step": 2})
    said = refusal(domain.input_shape, Tensor("x", (9, 1, 165), "float32"))
    assert "24 feature rows of a sound have 10 windows of 5 with the step 2: write frames" in said
    short = AudioDomain(samples=80, front_end=SPECTRUM, windows={"length": 5, "step": 2})
    assert "give longer sounds" in refusal(short.input_shape, Tensor("x", (1, 1, 165), "float32"))
    plain = AudioDomain(samples=800, front_end=SPECTRUM)
    said = refusal(plain.input_shape, Tensor("x", (1, 5, 33), "float32"))
    assert "for windows of 5 write windows = { length = 5, step = 2 } with the app's step" in said
    assert "step has to be 1 or more" in refusal(ArrayDomain, windows={"length": 1, "step": 0})
    assert "step is missing: add it" in refusal(ArrayDomain, windows={"length": 1})
    assert "expected 'features' or 'samples'" in refusal(
        AudioDomain, windows={"length": 1, "step": 1, "source": "sound"}
    )
