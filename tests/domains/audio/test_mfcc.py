from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from edgeflare.domains.audio.log_mel import LogMel
from edgeflare.domains.audio.mfcc import Mfcc
from edgeflare.errors import UserError
from front_ends import SMALL, as_librosa, recorded

TENSORFLOW = Mfcc(LogMel(16_000, 480, 320, 512, 40, 20.0, 4_000.0, wave_scale="maximum"), 10)
LIBROSA = Mfcc(as_librosa(16_000, (512, 256, 512), (64, 0.0, 8_000.0)), 13, cosines="orthonormal")


@pytest.mark.parametrize(
    ("front_end", "name"), [(TENSORFLOW, "tensorflow_mfcc"), (LIBROSA, "librosa_mfcc")]
)
def test_coefficients_are_those_that_the_library_computed(front_end: Mfcc, name: str) -> None:
    expected, wave = recorded(name, "sound_16000")
    made = front_end.features(wave[np.newaxis])
    assert made.shape[1:] == front_end.shape(len(wave))
    np.testing.assert_allclose(made[0], expected, rtol=1e-5, atol=2e-4)


@given(waves=arrays(np.int16, (3, 60)))
def test_all_orthonormal_coefficients_keep_the_norm_of_a_frame(waves: NDArray[np.int16]) -> None:
    bands = SMALL.features(waves)
    coefficients = Mfcc(SMALL, 4, cosines="orthonormal").features(waves)
    norms = [np.linalg.norm(one, axis=2) for one in (bands, coefficients)]
    np.testing.assert_allclose(norms[1], norms[0], rtol=1e-5)


@given(waves=arrays(np.int16, (3, 60)))
def test_coefficients_of_a_sound_do_not_depend_on_the_batch(waves: NDArray[np.int16]) -> None:
    front_end = Mfcc(SMALL, 3, mean=1.0, std=2.0)
    alone = [front_end.features(wave[np.newaxis])[0] for wave in waves]
    assert np.array_equal(front_end.features(waves), np.stack(alone))


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"coefficients": 5}, r"1 to the number of bands \(4\), not 5"),
        ({"coefficients": 3, "cosines": "dct"}, "one of tensorflow, orthonormal, not 'dct'"),
        ({"coefficients": 3, "std": 0.0}, "std above 0, not 0.0 and 0.0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    parameters: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        Mfcc(SMALL, **parameters)
