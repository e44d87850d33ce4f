"""What bad input gets where inputs are no images: one line, exit 2, and nothing written."""

from __future__ import annotations

import shutil
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from small_pairs import write_clip_pair, write_score_pair, write_tokens_pair, write_two_inputs_pair

pytestmark = pytest.mark.slow  # most open two models

Call = Callable[..., Any]

WORDS = Path(__file__).parents[2] / "examples" / "spoken_words"
THRESHOLD = '[inputs.values]\ndomain = "array"\narray = "inputs"\n[task]\nname = "threshold"\n'

EDITED: dict[str, tuple[str, tuple[str, str], tuple[str, ...]]] = {
    # The pair, what is replaced in its pair.toml (behind its end where that is empty), and words.
    "task": (
        "words",
        ("", '\n[task]\nname = "threshold"\nthreshold = 0.5\n'),
        ("the task threshold reads one score", "(1, 10)", "fits classification or regression"),
    ),
    "unknown task": (
        "words",
        ("", '\n[task]\nname = "treshold"\n'),
        ("unknown task 'treshold'; did you mean 'threshold'",),
    ),
    "unknown domain": ("words", ('"audio"', '"audo"'), ("unknown domain 'audo'", "'audio'")),
    "sample rate": (
        "words",
        ("sample_rate = 8000", "sample_rate = 16000"),
        ("the sample rate is 8000 Hz, expected 16000", "resample"),
    ),
    "window": (
        "words",
        ("samples = 8000", "samples = 8050\nfit = 'none'"),
        ("shorter than the window, 8000 of 8050 samples", 'fit to "pad"'),
    ),
    "front end": ("words", ("bands = 32", "bands = 31"), ("1952 values", "61 x 31", "front end")),
    "unknown front end": ("words", ('"log-mel"', '"log-mell"'), ("did you mean 'log-mel'",)),
    "state of no input": (
        "words",
        ('name = "spoken-words"', 'frames = 4\nstate = {mask = "Identity"}'),
        ("there is no input 'mask' for a state", "(1, 61, 32, 1)"),
    ),
    "state of no output": (
        "clip",
        ('heard = "next"', 'heard = "nest"'),
        ("no output 'nest' for a state", "next (1, 3)"),
    ),
    "state without frames": ("clip", ("frames = 6", ""), ("say frames = the steps of one clip",)),
    "frames without a state": (
        "words",
        ('name = "spoken-words"', "frames = 4"),
        ("frames is 4, but the models keep nothing from one frame to the next", "[state]"),
    ),
    "an input not given": (
        "two",
        ("[inputs.place]", "[place]"),
        ("unknown key place",),
    ),
    "an input of another name": (
        "two",
        ("[inputs.place]", "[inputs.plaice]"),
        ("no input 'plaice'", "'place' (1, 4)", 'tensor = "…"'),
    ),
    "no input is searched": (
        "two",
        ("[inputs.motion]", "[inputs.motion]\nsearch = false"),
        ("search is false for every input",),
    ),
    "bounds": ("two", ("highest = 4.0", "highest = -9.0"), ("lower bound", "below the upper one")),
    "seeds beyond the bounds": (
        "two",
        ("highest = 4.0", "highest = 0.5"),
        ("values beyond the bounds -4 and 0.5", "widen"),
    ),
    "threshold that is no number": (
        "score",
        ("threshold = 0.5", "threshold = nan"),
        ("task.threshold is nan", "finite"),
    ),
    "threshold that is missing": (
        "score",
        ("threshold = 0.5", ""),
        ("[task]: threshold is missing",),
    ),
    "tolerance": (
        "score",
        ('"threshold"\nthreshold = 0.5', '"regression"\ntolerance = -1'),
        ("[task]: tolerance is -1", "above 0"),
    ),
    "vocabulary": (
        "tokens",
        ("vocabulary = 12", "vocabulary = 5"),
        ("ids beyond the vocabulary, 0 to 4",),
    ),
}

ASKED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "operators of the paper on arrays": (
        "two",
        "--strategy dflare",
        ("dflare", "domain array", "boundary, boundary-mh, donor, climb, random"),
    ),
    "operators of the published code on tokens": (
        "tokens",
        "--strategy dflare-published",
        ("dflare-published", "domain tokens", "random"),
    ),
    "mutations of a paper on arrays": ("two", "--strategy diffchaser", ("diffchaser", "array")),
    "operators of images": (
        "words",
        "--operators gaussian-blur",
        ("no audio operator is named 'gaussian-blur'", "time-stretch"),
    ),
    "a bound of one token": (
        "tokens",
        "--max-linf 3",
        ("--max-linf 3", "names and no quantities", "--within"),
    ),
    "a bound of tokens": ("tokens", "--max-l2 3", ("--max-l2 3", "--within")),
    "preprocessing of images": ("words", "--preset unit", ("preset", "[inputs.NAME]")),
    "decisions where values are": (
        "values",
        "--strategy boundary",
        ("boundary follows decisions", "--strategy climb"),
    ),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs_of_domains")
    shutil.copytree(WORDS, folder / "words")
    write_clip_pair(folder / "clip")
    write_two_inputs_pair(folder / "two")
    write_tokens_pair(folder / "tokens")
    write_score_pair(folder / "score", THRESHOLD + "threshold = 0.5\n")
    values = THRESHOLD.replace('"threshold"', '"regression"') + "tolerance = 100\n"
    write_score_pair(folder / "values", values)
    return folder


@pytest.fixture
def refused(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Search a pair, which must be refused in one line and write nothing; return that line."""
    monkeypatch.chdir(tmp_path)

    def search(pair: Path, *arguments: str) -> str:
        said = call("search", pair, *arguments, "--max-queries", "1", "--out", "run")
        assert said.code == 2, said
        assert said.out == ""
        assert not Path("run").exists()
        return str(said.complaint())

    return search


def edited(pairs: Path, name: str, change: tuple[str, str], folder: Path) -> Path:
    """Return a copy of a pair with something else in its pair.toml."""
    pair = Path(shutil.copytree(pairs / name, folder / "pair"))
    old, new = change
    said = (pair / "pair.toml").read_text()
    assert old in said
    (pair / "pair.toml").write_text(said.replace(old, new) if old else said + new)
    return pair


@pytest.mark.parametrize("mistake", EDITED)
def test_a_pair_toml_that_does_not_fit(
    mistake: str, refused: Callable[..., str], pairs: Path, tmp_path: Path
) -> None:
    name, change, words = EDITED[mistake]
    complaint = refused(edited(pairs, name, change, tmp_path))
    assert all(word in complaint for word in words), complaint


@pytest.mark.parametrize("mistake", ASKED)
def test_what_a_pair_has_nothing_for(
    mistake: str, refused: Callable[..., str], pairs: Path
) -> None:
    name, arguments, words = ASKED[mistake]
    complaint = refused(pairs / name, *arguments.split())
    assert all(word in complaint for word in words), complaint


def test_an_input_that_is_not_given(
    refused: Callable[..., str], pairs: Path, tmp_path: Path
) -> None:
    pair = edited(pairs, "two", ("", ""), tmp_path)
    said = (pair / "pair.toml").read_text()
    (pair / "pair.toml").write_text(said.partition("[inputs.place]")[0])
    complaint = refused(pair)
    assert "has 2 inputs" in complaint
    assert "place is not given" in complaint


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((8, 6), np.nan, np.float32), "seed 0 has values that are not finite"),
        (np.full((8, 6), np.inf, np.float32), "seed 0 has values that are not finite"),
        (np.zeros((8, 7), np.float32), "one has shape (7,), but the model takes (6,)"),
        (np.zeros((7, 6), np.float32), "different numbers of seeds, 7, 8"),
    ],
)
def test_seed_arrays_that_do_not_fit(
    array: NDArray[np.float32],
    words: str,
    refused: Callable[..., str],
    pairs: Path,
    tmp_path: Path,
) -> None:
    pair = edited(pairs, "two", ("", ""), tmp_path)
    with np.load(pair / "seeds.npz") as known:
        place = known["place"]
    np.savez(pair / "seeds.npz", motion=array, place=place)
    assert words in refused(pair)
    np.savez(pair / "seeds.npz", place=place)
    assert "expected an array named motion, but the file has place" in refused(pair)


@pytest.mark.parametrize(
    ("channels", "rate", "samples", "words"),
    [
        (2, 8000, 8000, "has 2 channels, expected mono"),
        (1, 16000, 8000, "has a sample rate of 16000 Hz, expected 8000"),
        (1, 8000, 7999, "the sound is shorter than the window, 7999 of 8000 samples"),
        (1, 8000, 8001, "the sound is longer than the window, 8001 of 8000 samples"),
    ],
)
def test_seed_sounds_that_do_not_fit(
    channels: int,
    rate: int,
    samples: int,
    words: str,
    refused: Callable[..., str],
    pairs: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "sounds").mkdir()
    with wave.open(str(tmp_path / "sounds" / "yes.wav"), "wb") as file:
        file.setparams((channels, 2, rate, samples, "NONE", ""))
        file.writeframes(b"\1\0" * samples * channels)
    complaint = refused(pairs / "words", "--seeds", str(tmp_path / "sounds"))
    assert "yes.wav" in complaint
    assert words in complaint


def test_an_extra_that_is_missing(
    refused: Callable[..., str], call: Call, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "audiomentations", None)
    complaint = refused(pairs / "words")
    assert "pip install 'edgeflare[audio]'" in complaint
    noise = ("--operators", "white-noise,reverberation", "--first", "2", "--dry-run")
    assert call("search", pairs / "words", *noise).code == 0
