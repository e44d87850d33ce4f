"""The example in sound from its dry run to a replay and a bench, as its user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.domains.audio.audio_domain import signal_to_noise_db
from edgeflare.domains.audio.wav_file import decode_wav
from edgeflare.run.run_directory import RunDirectory

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

WORDS = Path(__file__).parents[2] / "examples" / "spoken_words"
SMALL = ("--first", "4", "--max-queries", "150", "--shrink", "30")


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return document


def sound(file: Path) -> NDArray[np.int16]:
    decoded = decode_wav(file.read_bytes())
    assert decoded is not None
    assert decoded.sample_rate == 8000
    return decoded.wave


@dataclass(frozen=True)
class Searched:
    """A search of the example with further sounds beside its seeds, and what it said."""

    run: Path
    said: Any


@pytest.fixture(scope="module")
def searched(start: Call, tmp_path_factory: pytest.TempPathFactory) -> Searched:
    folder = tmp_path_factory.mktemp("spoken_words")
    with np.load(WORDS / "seeds.npz") as seeds:
        np.savez(folder / "test.npz", waves=seeds["waves"][50:60], labels=seeds["labels"][50:60])
    (folder / "device_profiles").mkdir()
    profile = 'extends = "emulated-builtin"\ncanary_every = 10\n'
    (folder / "device_profiles" / "watched.toml").write_text(profile)
    options = ("--device", "watched", "--test", "test.npz", "--within", "none", "--out", "run")
    said = start("search", WORDS, *SMALL, *options, cwd=folder)
    return Searched(folder / "run", said)


def test_the_dry_run_says_what_it_understood(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("search", WORDS, "--first", "8", "--dry-run")
    words = " ".join(said.out.split())
    assert said.code == 0
    assert "input sound: audio, sample_rate 8000, samples 8000, front_end log-mel" in words
    assert "task: classification" in words
    assert "0 of the first 8 seeds already deviate" in words
    assert list(tmp_path.iterdir()) == []


def test_a_search_fails_the_gate_and_keeps_sounds(searched: Searched) -> None:
    assert searched.said.code == 1, searched.said.err
    document = document_of(searched.run)
    assert document["pair"]["domain"] == "audio"
    assert document["findings"]
    for one in document["findings"]:
        assert one["verified"]
        trigger, seed = (sound(searched.run / one[key]) for key in ("image", "seed_image"))
        assert signal_to_noise_db(trigger, seed) == pytest.approx(one["nearness_db"])
    assert document["nearness"]["measure"] == "SNR"


def test_further_sounds_and_canaries_are_counted(searched: Searched) -> None:
    document = document_of(searched.run)
    assert document["unmutated"]["test"]["images"] == 10
    (health,) = document["health"]
    assert health["canaries"]["same"] > 0
    assert not health["failed"]
    assert "unmutated test sounds" in searched.said.out


def test_the_findings_are_explained_and_can_be_played(searched: Searched, call: Call) -> None:
    assert call("explain", searched.run, "--device", "emulated-builtin").code == 0
    explained = json.loads((searched.run / "explain.json").read_bytes())["findings"]
    found = document_of(searched.run)["findings"]
    assert explained.keys() == {str(one["seed_id"]) for one in found}

    assert call("report", searched.run, "--html", "--junit", "--csv").code == 0
    page = (searched.run / "report.html").read_text()
    assert page.count("<audio") >= 2 * len(found)
    assert (searched.run / "findings.csv").read_text().count("\n") == 1 + len(found)


def test_the_findings_deviate_still_when_tried_again(
    searched: Searched, call: Call, tmp_path: Path
) -> None:
    replayed = tmp_path / "again"
    options = ("--device", "emulated-builtin", "--baseline", searched.run, "--out", replayed)
    assert call("replay", searched.run, *options).code == 0
    before, after = (document_of(run) for run in (searched.run, replayed))
    assert sorted(one["sha256"] for one in after["findings"]) == sorted(
        one["sha256"] for one in before["findings"]
    )
    assert RunDirectory(replayed).document.is_file()


def test_chosen_operators_alone_are_drawn(call: Call, tmp_path: Path) -> None:
    options = ("--operators", "gain,white-noise", "--fail-on", "none", "--shrink", "0")
    limits = ("--first", "3", "--max-queries", "60")
    said = call("search", WORDS, *limits, *options, "--out", tmp_path / "run")
    assert said.code == 0
    document = document_of(tmp_path / "run")
    assert document["plan"]["operators"] == ["gain", "white-noise"]
    drawn = {name for one in document["findings"] for name in one["operators"]}
    assert drawn
    assert drawn <= {"gain", "white-noise"}


def test_strategies_are_compared(call: Call, tmp_path: Path) -> None:
    options = ("--strategies", "boundary,random", "--rng-seeds", "1", "--out", tmp_path / "bench")
    said = call("bench", WORDS, *options, "--first", "2", "--max-queries", "40")
    assert said.code == 0
    runs = json.loads((tmp_path / "bench" / "bench.json").read_bytes())["runs"]
    assert [one["strategy"] for one in runs] == ["boundary", "random"]
