"""The example detector from its dry run to a replay and a ranking, as its user meets it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

FACES = Path(__file__).parents[2] / "examples" / "face_detection"
SMALL = ("--first", "4", "--max-queries", "150", "--shrink", "20", "--strengthen", "20")
KINDS = {"object-vanished", "object-appeared", "object-moved"}


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return document


@pytest.fixture(scope="module")
def searched(start: Call, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run: Path = tmp_path_factory.mktemp("face_detection") / "run"
    said = start("search", FACES, *SMALL, "--device", "emulated-builtin", "--out", run)
    assert said.code == 1, said.err
    return run


def test_the_dry_run_says_what_it_understood(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = call("search", FACES, "--first", "8", "--dry-run")
    words = " ".join(said.out.split())
    assert said.code == 0, said.err
    assert "task: detection, decoding anchors" in words
    assert "0 of the first 8 seeds already deviate" in words
    assert "seed 0: original 1 object: face ." in words
    assert "seed 3:" not in words
    assert list(tmp_path.iterdir()) == []


def test_findings_have_a_kind_and_boxes_on_seed_and_trigger(searched: Path) -> None:
    document = document_of(searched)
    assert document["findings"]
    for one in document["findings"]:
        assert one["verified"]
        assert one["kind"] in KINDS
        assert one["strength"] > 0.0
        (view,) = one["answers"]
        marks = {box["difference"] for arm in ("original", "device") for box in view["boxes"][arm]}
        assert one["kind"] in marks
        (before,) = one["seed_answers"]
        assert not any(box["difference"] for boxes in before["boxes"].values() for box in boxes)


def test_the_findings_are_explained_reported_and_exported(
    searched: Path, call: Call, tmp_path: Path
) -> None:
    said = call("explain", searched, "--device", "emulated-builtin")
    assert said.code == 0, said.err
    explained = json.loads((searched / "explain.json").read_bytes())["findings"]
    findings = document_of(searched)["findings"]
    assert explained.keys() == {str(one["seed_id"]) for one in findings}

    said = call("report", searched, "--html", "--junit", "--csv")
    assert said.code == 0, said.err
    assert (searched / "findings.csv").read_text().count("\n") == 1 + len(findings)
    seed = str(findings[0]["seed_id"])
    archive = tmp_path / "one.zip"
    said = call("export", searched, seed, "--out", archive)
    assert said.code == 0, said.err
    shutil.unpack_archive(archive, tmp_path / "one")
    script = [sys.executable, str(tmp_path / "one" / "reproduce.py")]
    again = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "It deviates here too." in again.stdout


def test_the_findings_deviate_still_when_tried_again(
    searched: Path, call: Call, tmp_path: Path
) -> None:
    options = ("--device", "emulated-builtin", "--baseline", searched, "--out", tmp_path / "again")
    said = call("replay", searched, *options)
    assert said.code == 0, said.err
    assert call("compare", searched, tmp_path / "again").code == 0
    before, after = (document_of(run) for run in (searched, tmp_path / "again"))
    assert {(one["sha256"], one["kind"]) for one in after["findings"]} == {
        (one["sha256"], one["kind"]) for one in before["findings"]
    }


@pytest.mark.parametrize("find", ["compression", "kernel"])
def test_other_deviations_are_searched_for(find: str, call: Call, tmp_path: Path) -> None:
    limits = ("--first", "2", "--max-queries", "40", "--shrink", "0")
    options = ("--find", find, "--fail-on", "none", "--out", tmp_path / "run")
    said = call("search", FACES, *limits, *options)
    assert said.code == 0, said.err
    findings = document_of(tmp_path / "run")["findings"]
    assert {one["kind"] for one in findings} <= KINDS
    assert findings or find == "kernel"


def test_anchors_of_a_file_give_the_findings_of_cells(call: Call, tmp_path: Path) -> None:
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
        assert call("search", pair, *limits, "--out", tmp_path / name).code == 0
    (folder / "anchors.npz").unlink()
    cells, anchors = (document_of(tmp_path / name) for name in ("cells", "anchors"))
    assert [one["sha256"] for one in anchors["findings"]] == [
        one["sha256"] for one in cells["findings"]
    ]
    assert anchors["pair"]["fingerprint"] != cells["pair"]["fingerprint"]
    assert call("report", tmp_path / "anchors").code == 0  # without the file
    said = call("search", folder, "--dry-run")
    assert said.code == 2
    assert "anchors.npz" in said.complaint()


def test_strategies_are_compared_and_compressions_ranked(call: Call, tmp_path: Path) -> None:
    limits = ("--first", "2", "--max-queries", "30", "--rng-seeds", "1")
    strategies = ("--strategies", "boundary,random,dflare")
    said = call("bench", FACES, *strategies, *limits, "--out", tmp_path / "bench")
    assert said.code == 0, said.err
    runs = json.loads((tmp_path / "bench" / "bench.json").read_bytes())["runs"]
    assert [one["strategy"] for one in runs] == ["boundary", "random", "dflare"]

    other = tmp_path / "uncompressed"
    shutil.copytree(FACES, other)
    shutil.copy(other / "original.tflite", other / "compressed.tflite")
    text = (other / "pair.toml").read_text()
    (other / "pair.toml").write_text(text.replace('"face-detection"', '"uncompressed"'))
    said = call("rank", FACES, other, *limits, "--shrink", "0", "--out", tmp_path / "rank")
    assert said.code == 0, said.err
    assert "uncompressed" in said.out + said.err
