"""The examples in sound and of a detector, from a dry run to a replay, as their users meet them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from called_commands import EXAMPLES, Said, completed, document_of, refused
from edgeflare.domains.audio.audio_domain import signal_to_noise_db
from edgeflare.domains.audio.wav_file import decode_wav
from reproductions import reproduce, unpacked

pytestmark = pytest.mark.slow

WORDS, FACES = EXAMPLES / "spoken_words", EXAMPLES / "face_detection"
KINDS = {"object-vanished", "object-appeared", "object-moved"}
SEARCH = ("--first", "2", "--max-queries", "150", "--shrink", "5", "--strengthen", "5")


@dataclass(frozen=True)
class Searched:
    """A search of an example, and what it said."""

    run: Path
    said: Said


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """With further sounds beside the seeds, on a device with canaries."""
    folder = tmp_path_factory.mktemp("spoken_words")
    with np.load(WORDS / "seeds.npz") as seeds:
        np.savez(folder / "test.npz", waves=seeds["waves"][50:60], labels=seeds["labels"][50:60])
    (folder / "device_profiles").mkdir()
    profile = 'extends = "emulated-builtin"\ncanary_every = 3\n'
    (folder / "device_profiles" / "watched.toml").write_text(profile)
    options = ("--device", "watched", "--test", "test.npz", "--within", "none", "--out", "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return Searched(folder / "run", completed("search", WORDS, *SEARCH, *options, code=1))


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    run: Path = tmp_path_factory.mktemp("face_detection") / "run"
    options = ("--device", "emulated-builtin", "--within", "none", "--out", run)
    return Searched(run, completed("search", FACES, *SEARCH, *options, code=1))


@pytest.fixture(params=["words", "faces"])
def searched(request: pytest.FixtureRequest) -> Searched:
    either: Searched = request.getfixturevalue(request.param)
    return either


@pytest.mark.parametrize(
    ("example", "understood"),
    [
        (WORDS, "input sound: audio, sample_rate 8000, samples 8000, front_end log-mel"),
        (FACES, "task: detection, decoding anchors … seed 0: original 1 object: face ."),
    ],
    ids=["words", "faces"],
)
def test_the_dry_run_says_what_it_understood(
    example: Path, understood: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = " ".join(completed("search", example, "--first", "8", "--dry-run").out.split())
    assert all(part in said for part in understood.split(" … "))
    assert "0 of the first 8 seeds already deviate" in said
    assert "seed 3:" not in said
    assert list(tmp_path.iterdir()) == []


def test_the_findings_are_explained_reported_and_exported(
    searched: Searched, tmp_path: Path
) -> None:
    found = document_of(searched.run)["findings"]
    assert found
    assert all(one["verified"] and one["strength"] > 0.0 for one in found)
    first = str(found[0]["seed_id"])
    if document_of(searched.run)["pair"].get("domain") == "audio":  # layers of detectors are slow
        completed("explain", searched.run, first, "--device", "emulated-builtin")
        assert document_of(searched.run, "explain.json")["findings"].keys() == {first}
    completed("report", searched.run, "--html", "--junit", "--csv")
    assert (searched.run / "findings.csv").read_text().count("\n") == 1 + len(found)
    if document_of(searched.run)["pair"].get("domain") == "audio":
        assert (searched.run / "report.html").read_text().count("<audio") >= 2 * len(found)
    completed("export", searched.run, first, "--out", tmp_path / "one.zip")
    again = reproduce(unpacked(tmp_path / "one.zip", tmp_path / "one"))
    assert again.returncode == 0, again.stdout + again.stderr
    assert "It deviates here too." in again.stdout


def test_the_findings_deviate_still_when_tried_again(searched: Searched, tmp_path: Path) -> None:
    baseline = ("--device", "emulated-builtin", "--baseline", searched.run)
    completed("replay", searched.run, *baseline, "--out", tmp_path / "again")
    completed("compare", searched.run, tmp_path / "again")
    before, after = (document_of(run) for run in (searched.run, tmp_path / "again"))
    assert {(one["sha256"], one["kind"]) for one in after["findings"]} == {
        (one["sha256"], one["kind"]) for one in before["findings"]
    }


def sound(file: Path) -> NDArray[np.int16]:
    decoded = decode_wav(file.read_bytes())
    assert decoded is not None
    assert decoded.sample_rate == 8000
    return decoded.wave


def test_sounds_are_kept_and_further_ones_and_canaries_counted(words: Searched) -> None:
    document = document_of(words.run)
    for one in document["findings"]:
        trigger, seed = (sound(words.run / one[key]) for key in ("file", "seed_file"))
        assert signal_to_noise_db(trigger, seed) == pytest.approx(one["nearness_db"])
    assert document["nearness"]["measure"] == "SNR"
    assert document["unmutated"]["test"]["inputs"] == 10
    (health,) = document["health"]
    assert health["canaries"]["same"] > 0
    assert not health["failed"]
    assert "unmutated test sounds" in words.said.out


def test_objects_have_a_kind_and_boxes_on_seed_and_trigger(faces: Searched) -> None:
    for one in document_of(faces.run)["findings"]:
        assert one["kind"] in KINDS
        (view,) = one["answers"]
        marks = {box["difference"] for arm in ("original", "device") for box in view["boxes"][arm]}
        assert one["kind"] in marks
        (before,) = one["seed_answers"]
        assert not any(box["difference"] for boxes in before["boxes"].values() for box in boxes)


def test_anchors_of_a_file_give_the_findings_of_cells(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    shutil.copytree(FACES, folder)
    centres = [
        ((x + 0.5) / cells, (y + 0.5) / cells)
        for cells, repeats in ((16, 2), (8, 6))
        for y in range(cells)
        for x in range(cells)
        for _ in range(repeats)
    ]
    np.savez(folder / "anchors.npz", anchors=np.array(centres, np.float32))
    text = (folder / "pair.toml").read_text()
    changed = text.replace("cells = [[16, 2], [8, 6]]", 'anchors = "anchors.npz"')
    assert changed != text
    (folder / "pair.toml").write_text(changed)
    limits = ("--first", "1", "--max-queries", "60", "--shrink", "0", "--fail-on", "none")
    for name, pair in (("cells", FACES), ("anchors", folder)):
        completed("search", pair, *limits, "--out", tmp_path / name)
    (folder / "anchors.npz").unlink()
    cells, anchors = (document_of(tmp_path / name) for name in ("cells", "anchors"))
    assert [one["sha256"] for one in anchors["findings"]] == [
        one["sha256"] for one in cells["findings"]
    ]
    assert anchors["pair"]["fingerprint"] != cells["pair"]["fingerprint"]
    completed("report", tmp_path / "anchors")  # without the file
    assert "anchors.npz" in refused("search", folder, "--dry-run")


def test_compressions_of_a_detector_are_ranked(tmp_path: Path) -> None:
    other = tmp_path / "uncompressed"
    shutil.copytree(FACES, other)
    shutil.copy(other / "original.tflite", other / "compressed.tflite")
    text = (other / "pair.toml").read_text()
    (other / "pair.toml").write_text(text.replace('"face-detection"', '"uncompressed"'))
    limits = ("--first", "1", "--max-queries", "5", "--rng-seeds", "1", "--shrink", "0")
    said = completed("rank", FACES, other, *limits, "--out", tmp_path / "rank")
    assert "uncompressed" in said.out + said.err
