from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare_operators import MutationOperator, OperatorError, operators
from edgeflare_operators.audio import (
    SAMPLE_RATE,
    brown_noise,
    clipping,
    gain,
    high_pass,
    low_pass,
    pink_noise,
    pitch_shift,
    reverberation,
    time_shift,
    time_stretch,
    white_noise,
)

Wave = NDArray[np.int16]

ALL = operators("audio")
NOISES = (white_noise, pink_noise, brown_noise)

seeds = st.integers(0, 2**32)


def tone(hertz: float = 1_000.0, peak: int = 8_000) -> Wave:
    """Return half a second of a tone."""
    times = np.arange(SAMPLE_RATE // 2) / SAMPLE_RATE
    wave: Wave = np.rint(peak * np.sin(2 * np.pi * hertz * times)).astype(np.int16)
    return wave


def power(wave: Wave) -> float:
    return float(np.mean(wave.astype(float) ** 2))


@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_global_generators_are_neither_used_nor_changed(op: MutationOperator) -> None:
    mutants = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  # the generator that libraries draw from
        before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002
        mutants.append(op(tone()[:800], np.random.default_rng(0)))
        assert (random.getstate(), repr(np.random.get_state())) == before  # noqa: NPY002
    assert np.array_equal(mutants[0], mutants[1])


HASHES = """
import hashlib, numpy as np
from edgeflare_operators import operators
rng = np.random.default_rng(0)
wave = rng.integers(-9000, 9000, 4000).astype(np.int16)
print([hashlib.sha256(op(wave, rng).tobytes()).hexdigest() for op in operators("audio")])
"""


@pytest.mark.slow
def test_another_process_makes_the_same_mutants(capsys: pytest.CaptureFixture[str]) -> None:
    exec(HASHES, {})  # noqa: S102 - ours
    done = subprocess.run(
        [sys.executable, "-c", HASHES], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout == capsys.readouterr().out


@pytest.mark.parametrize("op", ALL, ids=lambda op: op.name)
def test_silence_stays_silent(op: MutationOperator) -> None:
    assert not op(np.zeros(400, np.int16), np.random.default_rng(0)).any()


@given(seed=seeds)
def test_gain_is_one_factor_within_twelve_decibels(seed: int) -> None:
    wave = tone()
    mutant = gain(wave, np.random.default_rng(seed)).astype(float)
    factor = mutant.max() / wave.max()
    assert 10 ** (-12.1 / 20) < factor < 10 ** (12.1 / 20)
    np.testing.assert_allclose(mutant, np.clip(wave * factor, -32_768, 32_767), atol=2)


@given(seed=seeds)
def test_clipping_keeps_what_lies_between_its_limits(seed: int) -> None:
    wave = tone()
    mutant = clipping(wave, np.random.default_rng(seed))
    assert np.array_equal(mutant, np.clip(wave, mutant.min(), mutant.max()))
    assert np.count_nonzero(mutant != wave) <= 0.41 * len(wave)


@pytest.mark.parametrize(("op", "slope"), list(zip(NOISES, (0.0, -3.01, -6.02), strict=True)))
def test_noise_falls_by_its_colour(op: MutationOperator, slope: float) -> None:
    rng = np.random.default_rng(0)
    wave = np.tile(np.array([20_000, -20_000], np.int16), 8_000)
    noises = [(op(wave, rng).astype(float) - wave) for _ in range(30)]
    spectrum = np.mean([np.abs(np.fft.rfft(one)) ** 2 / one.var() for one in noises], axis=0)
    octaves = [spectrum[100 * 2**n : 200 * 2**n].mean() for n in range(5)]
    falls = np.diff(10 * np.log10(octaves))
    assert falls.mean() == pytest.approx(slope, abs=0.4)


@pytest.mark.parametrize("op", NOISES, ids=lambda op: op.name)
def test_noise_has_the_ratio_that_it_says(op: MutationOperator) -> None:
    rng = np.random.default_rng(0)
    wave = tone()
    ratios = [10 * np.log10(power(wave) / power(op(wave, rng) - wave)) for _ in range(60)]
    assert 4.9 <= min(ratios) < 10
    assert 35 < max(ratios) <= 40.1


@pytest.mark.parametrize(
    ("op", "kept", "lost"), [(low_pass, 60.0, 7_900.0), (high_pass, 6_000.0, 10.0)]
)
@given(seed=seeds)
def test_a_filter_takes_away_its_side_of_the_spectrum(
    op: MutationOperator, kept: float, lost: float, seed: int
) -> None:
    steady = slice(SAMPLE_RATE // 4, None)
    through, held = (
        power(op(tone(hertz), np.random.default_rng(seed))[steady]) / power(tone(hertz)[steady])
        for hertz in (kept, lost)
    )
    assert through > 0.9
    assert held < through


@given(seed=seeds)
def test_a_pitch_is_moved_by_four_semitones_at_most_and_kept_where_time_is_stretched(
    seed: int,
) -> None:
    mutant = pitch_shift(tone(), np.random.default_rng(seed))
    highest = np.abs(np.fft.rfft(mutant * np.hanning(len(mutant)))).argmax() * 2.0
    assert 1_000 * 2 ** (-4.2 / 12) < highest < 1_000 * 2 ** (4.2 / 12)
    stretched = time_stretch(tone(), np.random.default_rng(seed))
    highest = np.abs(np.fft.rfft(stretched * np.hanning(len(stretched)))).argmax() * 2.0
    assert highest == pytest.approx(1_000, abs=15)


@given(seed=seeds)
def test_a_shifted_sound_is_rolled_but_for_the_fades(seed: int) -> None:
    rising = np.arange(1, 8_001, dtype=np.int16)
    mutant = time_shift(rising, np.random.default_rng(seed))
    came_from = mutant.astype(int) - 1
    places = np.bincount((np.arange(8_000) - came_from) % 8_000).argmax()
    faded = mutant != np.roll(rising, places)
    assert np.count_nonzero(faded) <= 2 * 0.005 * SAMPLE_RATE


@given(seed=seeds)
def test_echoes_come_after_the_sound_and_die_away(seed: int) -> None:
    click = np.zeros(SAMPLE_RATE, np.int16)
    click[1_000] = 20_000
    mutant = reverberation(click, np.random.default_rng(seed))
    assert not mutant[:1_000].any()
    assert mutant[1_001:3_000].any()
    assert power(mutant[1_001:3_000]) > power(mutant[9_000:])
    assert not mutant[1_000 + round(0.6 * SAMPLE_RATE) :].any()


def test_without_the_library_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "audiomentations", None)
    with pytest.raises(OperatorError, match=r"pip install 'edgeflare\[audio\]'") as caught:
        gain(tone(), np.random.default_rng(0))
    assert "\n" not in str(caught.value)


def test_the_library_is_not_imported_before_it_is_needed() -> None:
    program = (
        "import sys\n"
        "sys.modules['audiomentations'] = sys.modules['scipy'] = None\n"
        "from edgeflare_operators import domains, operators\n"
        "print(*(len(operators(domain)) for domain in domains()))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert said.stdout.split() == ["6", "12", "10", "7", "4"]
