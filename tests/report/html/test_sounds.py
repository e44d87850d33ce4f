"""The sounds of a finding: what is heard, on which scale it is drawn, and what it weighs."""

from __future__ import annotations

from base64 import b64decode

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.input_view import SoundView
from edgeflare.domains.audio.wav_file import DecodedWav, decode_wav
from edgeflare.report.html.page_allowance import PageAllowance
from edgeflare.report.html.pictures import GAINS
from edgeflare.report.html.sounds import SoundFigure, gain_of, sounds_of
from edgeflare.report.html.stored_views import StoredView
from stored_runs import chirp, noisy

Wave = NDArray[np.int16]

RATE = 8_000


def figures(*waves: Wave | None, allowance: PageAllowance | None = None) -> dict[str, SoundFigure]:
    names = ("seed", "trigger") if len(waves) == 2 else ("seed", "before", "trigger")
    stored = [
        StoredView(what, f"{what}.wav", None if wave is None else SoundView(wave, RATE))
        for what, wave in zip(names, waves, strict=False)
    ]
    shown = sounds_of(stored, allowance or PageAllowance(10_000))
    return {one.what: one for one in shown}


def played(figure: SoundFigure) -> DecodedWav:
    assert figure.player is not None
    head, text = figure.player.split(",")
    assert head == "data:audio/wav;base64"
    sound = decode_wav(b64decode(text))
    assert sound is not None
    return sound


def test_seed_and_trigger_are_heard_as_they_are() -> None:
    seed = chirp(RATE)
    trigger = noisy(seed, 50)
    shown = figures(seed, trigger)
    assert list(shown) == ["seed", "trigger", "difference"]
    for what, wave in (("seed", seed), ("trigger", trigger)):
        assert np.array_equal(played(shown[what]).wave, wave)
        assert played(shown[what]).sample_rate == RATE
        assert shown[what].gain is None
        assert shown[what].seconds == len(wave) / RATE
        assert shown[what].kilohertz == RATE / 2_000


def test_a_difference_is_heard_magnified_and_never_louder_than_the_sounds() -> None:
    seed = chirp(RATE)
    trigger = noisy(seed, 50)
    difference = figures(seed, trigger)["difference"]
    assert difference.gain in GAINS
    change = trigger.astype(int) - seed
    assert np.array_equal(played(difference).wave, np.rint(change * difference.gain))
    assert np.abs(played(difference).wave).max() <= max(abs(seed).max(), abs(trigger).max())


@pytest.mark.parametrize(("change", "gain"), [(1, 64), (100, 64), (157, 32), (10_001, 0.5)])
def test_the_gain_is_the_largest_that_stays_below_the_peak(change: int, gain: float) -> None:
    assert gain_of(np.array([0, -change], np.int32), 10_000) == gain


def test_a_change_from_one_end_to_the_other_is_not_cut_off() -> None:
    seed = np.full(400, -32_768, np.int16)
    difference = figures(seed, np.full(400, 32_767, np.int16))["difference"]
    assert difference.gain == 0.5
    assert set(played(difference).wave.tolist()) == {32_767}


def test_all_sounds_share_the_scale_of_colours_and_of_amplitudes() -> None:
    seed = chirp(RATE)
    quiet, loud = (seed // 2).astype(np.int16), (2 * seed).astype(np.int16)
    beside_quiet, beside_loud = figures(seed, quiet)["seed"], figures(seed, loud)["seed"]
    assert beside_quiet.wave != beside_loud.wave
    assert beside_quiet.spectrogram != beside_loud.spectrogram
    alone = figures(seed, seed.copy())["seed"]
    assert beside_quiet.wave == alone.wave, "the louder of both sets the scale"


def test_what_was_before_refinement_stands_between() -> None:
    seed = chirp(RATE)
    shown = figures(seed, noisy(seed, 500), noisy(seed, 50))
    assert list(shown) == ["seed", "before", "trigger", "difference"]


def test_sounds_of_another_length_have_no_difference() -> None:
    assert list(figures(chirp(RATE), chirp(RATE, 0.25))) == ["seed", "trigger"]


@pytest.mark.parametrize("missing", [None, np.zeros(0, np.int16)])
def test_a_lost_or_empty_sound_leaves_the_other(missing: Wave | None) -> None:
    shown = figures(missing, chirp(RATE))
    assert list(shown) == ["seed", "trigger"]
    assert (shown["seed"].wave, shown["seed"].player) == (None, None)
    assert shown["trigger"].wave
    assert shown["trigger"].player
    gone = figures(None, None)
    assert [one.wave for one in gone.values()] == [None, None]


def test_players_share_an_allowance_and_the_first_findings_have_them() -> None:
    seed = chirp(RATE)
    finding = 3 * (2 * len(seed) + 44)
    allowance = PageAllowance(10_000, players=2 * finding + 100)
    entries = [figures(seed, noisy(seed, 9), allowance=allowance) for _ in range(4)]
    heard = [{one.player is not None for one in shown.values()} for shown in entries]
    assert heard == [{True}, {True}, {False}, {False}]
    short = figures(chirp(RATE, 0.001), chirp(RATE, 0.001), allowance=allowance)
    assert short["seed"].player is None, "a later finding has a player where an earlier has none"


@pytest.mark.parametrize("most", [1_500, 6_000, 24_000])
def test_images_of_a_sound_weigh_no_more_than_a_picture(most: int) -> None:
    wave = np.random.default_rng(0).integers(-9_000, 9_000, 2 * RATE).astype(np.int16)
    for one in figures(wave, noisy(wave, 900), allowance=PageAllowance(most)).values():
        assert one.wave is not None
        assert one.spectrogram is not None
        texts = (one.wave.split(",")[1], one.spectrogram.split(",")[1])
        assert sum(len(b64decode(text)) for text in texts) <= most
