"""What a card shows of an entry's inputs: in which form, what is seen and heard, how large."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msgspec.structs import replace
from numpy.typing import NDArray

from documents import REFINED, Document, finding, run_pair
from edgeflare.core.views import CurvesView, ImageView, InputView, PartsView, SoundView, ValuesView
from edgeflare.domains.array_domain import ArrayDomain
from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.domains.audio.wav_file import DecodedWav, decode_wav
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.pages.answers.answer_form import SIDE
from edgeflare.pages.comparison_plot import ComparisonPlot
from edgeflare.pages.page_allowance import BUDGET, MOST, PageAllowance, allowance
from edgeflare.report.html.answered_shots import ShotGroup, shot_groups
from edgeflare.report.html.input_views import StoredView, stored_views
from edgeflare.report.html.pictures import GAINS, Picture, difference, image_uri, pictures_of
from edgeflare.report.html.sounds import (
    COLUMNS,
    LEAST_POWER,
    RANGE_DB,
    ROWS,
    WAVE_ROWS,
    SoundFigure,
    gain_of,
    log_spectrogram,
    sounds_of,
    spectrogram_image,
    waveform_image,
)
from edgeflare.run.run_directory import RunDirectory
from edgeflare_operators.operator_registry import Image
from stored_runs import chirp, noisy, stored_run

IMAGE = ImageView(np.zeros((4, 4, 1), np.uint8))
SOUND = SoundView(np.ones(80, np.int16), 8_000)
CURVES = CurvesView(np.zeros((5, 2)))
VALUES = ValuesView(np.zeros(5))


def groups(**views: InputView | None) -> tuple[ShotGroup, ...]:
    stored = [StoredView(what, f"{what}.file", view) for what, view in views.items()]
    return shot_groups(stored, PageAllowance(10_000))


@pytest.mark.parametrize(
    ("view", "kinds"),
    [
        (IMAGE, ["picture", "picture", "picture"]),
        (SOUND, ["sound", "sound", "sound"]),
        (CURVES, ["plot"]),
        (VALUES, ["plot"]),
    ],
)
def test_a_view_is_drawn_in_its_form(view: InputView, kinds: list[str]) -> None:
    (group,) = groups(seed=view, trigger=view)
    assert group.name == ""
    assert [shot.kind for shot in group.shots] == kinds
    (alone,) = groups(seed=view)
    assert [shot.kind for shot in alone.shots] == kinds[:1]


def test_several_inputs_have_a_group_each() -> None:
    view = PartsView({"voice": SOUND, "age": VALUES})
    shown = groups(seed=view, trigger=view)
    assert [group.name for group in shown] == ["voice", "age"]
    assert [len(group.shots) for group in shown] == [3, 1]


def test_a_seed_that_is_gone_leaves_the_trigger() -> None:
    expected: list[tuple[InputView, list[str]]] = [
        (IMAGE, ["picture", "picture"]),
        (SOUND, ["sound", "sound"]),
        (VALUES, ["picture", "plot"]),
    ]
    for view, kinds in expected:
        (group,) = groups(seed=None, trigger=view)
        assert [shot.kind for shot in group.shots] == kinds
    (group,) = groups(seed=None, trigger=None)
    assert group.shots == (Picture("seed", None), Picture("trigger", None))


def test_a_refined_array_is_shown_before_and_after() -> None:
    other = ValuesView(np.ones(5))
    (group,) = groups(seed=VALUES, before=other, trigger=VALUES)
    plots = [shot for shot in group.shots if isinstance(shot, ComparisonPlot)]
    assert [plot.names for plot in plots] == [("seed", "before"), ("seed", "trigger")]


def test_arrays_of_two_shapes_are_shown_apart() -> None:
    (group,) = groups(seed=VALUES, trigger=ValuesView(np.zeros(4)))
    (shot,) = group.shots
    assert isinstance(shot, ComparisonPlot)
    assert shot.names == ("trigger",)


def test_stored_sounds_are_shown_at_the_rate_of_their_files(tmp_path: Path) -> None:
    seed = chirp(11_025)
    document, directory = stored_run(tmp_path, AudioDomain(11_025), [(seed, noisy(seed, 40))])
    (entry,) = document.findings
    shown = stored_views(directory, entry, document.pair)
    assert [(one.what, one.file) for one in shown] == [
        ("seed", "seeds/000000.wav"),
        ("trigger", "findings/000000.wav"),
    ]
    for one in shown:
        assert isinstance(one.view, SoundView)
        assert one.view.sample_rate == 11_025
    (tmp_path / "findings/000000.wav").write_bytes(b"RIFF")
    (tmp_path / "seeds/000000.wav").unlink()
    assert [one.view for one in stored_views(directory, entry, document.pair)] == [None, None]


def test_stored_arrays_have_the_bounds_of_the_run(tmp_path: Path) -> None:
    seed = np.array([0.5, -0.5], np.float32)
    domain = ArrayDomain(lowest=-1, highest=1)
    document, directory = stored_run(
        tmp_path,
        domain,
        [(seed, -seed)],
        pair={"domain": "array", "domain_settings": {"lowest": -1, "highest": 1}},
    )
    for one in stored_views(directory, document.findings[0], document.pair):
        assert isinstance(one.view, ValuesView)
        assert (one.view.lowest, one.view.highest) == (-1, 1)


def test_what_was_before_refinement_is_read_too(tmp_path: Path) -> None:
    seed = chirp(8_000)
    document, directory = stored_run(tmp_path, AudioDomain(8_000), [(seed, noisy(seed, 40))])
    stored = directory.store_input("refined", 0, noisy(seed, 90), AudioDomain(8_000)).path
    refined = finding(refined={**REFINED, "file_before": stored}).refined
    entry = replace(document.findings[0], refined=refined)
    shown = stored_views(directory, entry, document.pair)
    assert [one.what for one in shown] == ["seed", "before", "trigger"]


def data(picture: Picture) -> bytes:
    assert picture.uri is not None
    head, text = picture.uri.split(",")
    assert head in {"data:image/png;base64", "data:image/webp;base64"}
    return b64decode(text)


def pixels(picture: Picture) -> Image:
    decoded = cv2.imdecode(np.frombuffer(data(picture), np.uint8), cv2.IMREAD_COLOR_RGB)
    return np.asarray(decoded, np.uint8)


def stored(directory: RunDirectory, seed: Image, trigger: Image) -> Document:
    """An entry whose images are those."""
    change = trigger.astype(int) - seed.astype(int)
    return {
        "seed_file": directory.store_input("seeds", 1, seed, ImageDomain()).path,
        "file": directory.store_input("findings", 1, trigger, ImageDomain()).path,
        "distortion": {"linf": float(np.abs(change).max())},
        "refined": None,
    }


def pictures_in(directory: RunDirectory, entry: Document, most: int) -> tuple[Picture, ...]:
    return pictures_of(stored_views(directory, finding(**entry), run_pair()), most)


images = st.tuples(st.integers(1, 8), st.integers(1, 8), st.sampled_from([1, 3, 4])).flatmap(
    lambda shape: st.tuples(arrays(np.uint8, shape), arrays(np.uint8, shape))
)


@given(images)
def test_a_difference_tells_every_change_and_its_direction(pair: tuple[Image, Image]) -> None:
    seed, trigger = (image[:, :, :3] for image in pair)
    shown, gain = difference(*pair)
    change = trigger.astype(int) - seed
    assert gain in GAINS
    assert shown.shape == change.shape
    assert np.array_equal(np.sign(shown.astype(int) - 128)[gain >= 1 or change % 2 == 0],
                          np.sign(change)[gain >= 1 or change % 2 == 0])  # fmt: skip
    restored = (shown.astype(float) - 128) / gain
    assert np.abs(restored - change).max() <= 1 / gain, "nothing is cut off"


def test_a_small_difference_is_magnified_as_far_as_it_goes() -> None:
    seed = np.full((4, 4, 1), 100, np.uint8)
    trigger = seed.copy()
    trigger[0, 0], trigger[1, 1] = 107, 97
    shown, gain = difference(seed, trigger)
    assert gain == 16
    assert shown[0, 0] == 128 + 16 * 7
    assert shown[1, 1] == 128 - 16 * 3
    assert shown[3, 3] == 128


@settings(deadline=None, max_examples=30)
@given(images)
def test_small_images_are_shown_to_the_pixel(
    tmp_path_factory: pytest.TempPathFactory, pair: tuple[Image, Image]
) -> None:
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    seed, trigger = (image[:, :, : min(3, image.shape[2])] for image in pair)
    shown = pictures_of(
        stored_views(directory, finding(**stored(directory, seed, trigger)), run_pair()), MOST
    )
    by_name = {picture.what: picture for picture in shown}
    assert np.array_equal(pixels(by_name["seed"]), np.broadcast_to(seed, (*seed.shape[:2], 3)))
    if (seed != trigger).any():
        assert list(by_name) == ["seed", "trigger", "difference"]
        expected = np.broadcast_to(trigger, (*seed.shape[:2], 3))
        assert np.array_equal(pixels(by_name["trigger"]), expected)
    else:
        assert list(by_name) == ["seed"]


@pytest.mark.slow
@pytest.mark.parametrize("most", [900, 2_000, 10_000, MOST])
@pytest.mark.parametrize("shape", [(32, 32, 3), (224, 224, 3), (300, 500, 1), (128, 128, 4)])
def test_no_picture_weighs_more_than_its_allowance(
    tmp_path: Any, shape: tuple[int, ...], most: int
) -> None:
    directory = RunDirectory(tmp_path)
    rng = np.random.default_rng(3)
    seed, trigger = (rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(2))
    for picture in pictures_of(
        stored_views(directory, finding(**stored(directory, seed, trigger)), run_pair()), most
    ):
        assert len(data(picture)) <= most
        height, width = pixels(picture).shape[:2]
        assert max(height, width) <= SIDE
        assert width / height == pytest.approx(shape[1] / shape[0], rel=0.1)
        assert (picture.width, picture.height) == (shape[1], shape[0])


def test_no_exact_form_is_made_of_what_is_far_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """These are what takes long: a page of many photographs would take minutes."""
    encode, made = cv2.imencode, []

    def spy(suffix: str, image: Image, settings: list[int]) -> Any:
        made.append((suffix, settings[-1]))
        return encode(suffix, image, settings)

    monkeypatch.setattr(cv2, "imencode", spy)
    noise = np.random.default_rng(3).integers(0, 256, (64, 64, 3), np.uint8)
    image_uri(noise, 3_000)
    assert not {(".png", 9), (".webp", 101)} & set(made)
    image_uri(noise, 12_000)
    assert {(".png", 9), (".webp", 101)} <= set(made)


def test_pictures_share_a_budget() -> None:
    assert allowance(0) == allowance(3) == MOST
    assert all(n * allowance(n) <= BUDGET for n in (300, 1_000, 4_000, 10_000))


def test_a_lost_file_leaves_the_others_and_what_was_before_refinement(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    rng = np.random.default_rng(3)
    seed, trigger, before = (rng.integers(0, 256, (6, 6, 3), dtype=np.uint8) for _ in range(3))
    entry = stored(directory, seed, trigger)
    stored_before = directory.store_input("refined", 1, before, ImageDomain()).path
    entry["refined"] = {**REFINED, "file_before": stored_before}
    shown = pictures_in(directory, entry, MOST)
    assert [picture.what for picture in shown] == ["seed", "before", "trigger", "difference"]
    assert np.array_equal(pixels(shown[1]), before)
    (tmp_path / entry["seed_file"]).write_bytes(b"no picture")
    shown = pictures_in(directory, {**entry, "refined": None}, MOST)
    assert [(picture.what, picture.uri is None) for picture in shown] == [
        ("seed", True),
        ("trigger", False),
    ]


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


def test_what_was_before_refinement_stands_between_and_other_lengths_have_no_difference() -> None:
    seed = chirp(RATE)
    shown = figures(seed, noisy(seed, 500), noisy(seed, 50))
    assert list(shown) == ["seed", "before", "trigger", "difference"]
    assert list(figures(seed, chirp(RATE, 0.25))) == ["seed", "trigger"]


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


def tone(hertz: float, sample_rate: int, seconds: float = 1.0) -> NDArray[np.int16]:
    time = np.arange(int(seconds * sample_rate)) / sample_rate
    return np.asarray(np.rint(10_000 * np.sin(2 * np.pi * hertz * time)), np.int16)


@pytest.mark.parametrize("sample_rate", [8_000, 16_000, 44_100])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.4])
def test_a_tone_is_a_line_at_its_frequency_and_as_loud_as_it_is(
    sample_rate: int, share: float
) -> None:
    decibels = log_spectrogram(tone(share * sample_rate, sample_rate), sample_rate)
    middle = decibels[:, decibels.shape[1] // 2]
    place = middle.argmax() / (len(middle) - 1)
    assert place == pytest.approx(2 * share, abs=0.02)
    loudness = 20 * np.log10(10_000 / np.sqrt(2))
    assert middle.max() == pytest.approx(loudness, abs=1.5)
    assert np.median(middle) < loudness - 50


def test_a_click_is_a_column_at_its_time() -> None:
    wave = np.zeros(16_000, np.int16)
    wave[12_000] = 30_000
    decibels = log_spectrogram(wave, 16_000)
    loud = np.flatnonzero(decibels.max(axis=0) > 0) / (decibels.shape[1] - 1)
    assert loud.mean() == pytest.approx(0.75, abs=0.02)
    assert np.ptp(loud) < 0.05


def test_silence_is_dark() -> None:
    decibels = log_spectrogram(np.zeros(4_000, np.int16), 8_000)
    assert (decibels == 10 * np.log10(LEAST_POWER)).all()
    assert spectrogram_image(decibels, 0.0).max() < 8


@given(
    wave=st.integers(1, 3_000).flatmap(lambda samples: arrays(np.int16, (samples,))),
    sample_rate=st.sampled_from([1, 100, 8_000, 16_000, 192_000, 2**31 - 1]),
)
def test_every_sound_has_images_of_at_most_so_many_pixels(
    wave: NDArray[np.int16], sample_rate: int
) -> None:
    decibels = log_spectrogram(wave, sample_rate)
    assert np.isfinite(decibels).all()
    image = spectrogram_image(decibels, float(decibels.max()))
    assert image.dtype == np.uint8
    rows, columns, colours = image.shape
    assert 1 <= rows <= ROWS
    assert 1 <= columns <= COLUMNS
    assert colours == 3
    drawn = waveform_image(wave, 32_768)
    assert drawn.shape == (WAVE_ROWS, min(len(wave), COLUMNS), 4)
    assert drawn[:, :, 3].max(axis=0).min() == 255, "a column without a mark"


def test_the_louder_is_the_brighter() -> None:
    decibels = np.linspace(-RANGE_DB, 0, 9)[:, np.newaxis]
    brightness = spectrogram_image(decibels, 0.0).astype(int).sum(axis=2).ravel()
    assert (np.diff(brightness) < 0).all(), "high frequencies are on top"


def test_a_waveform_reaches_as_far_as_it_is_loud() -> None:
    wave = np.array([0, 0, 5_000, -10_000, 10_000, 0], np.int16)
    filled = waveform_image(wave, 10_000)[:, :, 3] > 0
    rows = [np.flatnonzero(column) for column in filled.T]
    assert (rows[3].min(), rows[4].max()) == (WAVE_ROWS - 1, 0)
    assert rows[2].mean() == pytest.approx((WAVE_ROWS - 1) / 4, abs=1)
