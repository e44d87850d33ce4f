"""`edgeflare replay` and `compare`: stored inputs tried again, and runs beside one another."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgeflare.report import document as report_document
from laboratory import untimed

Call = Callable[..., Any]


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    schema = Path(report_document.__file__).with_name("run.schema.json").read_bytes()
    jsonschema.Draft202012Validator(json.loads(schema)).validate(document)
    return document


def stored(entries: list[dict[str, Any]]) -> list[str]:
    return sorted(entry["sha256"] for entry in entries)


@pytest.fixture(scope="module")
def broken(
    example: Path, biased: Path, start: Call, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A search of a compressed model with a fault in its last layer."""
    run = tmp_path_factory.mktemp("broken") / "run"
    options = ("--compressed", biased, "--limit", "8", "--fail-on", "none")
    assert start("search", example, *options, "--out", run).code == 0
    assert document_of(run)["deviating_seeds"]
    return run


def test_on_the_same_device_everything_deviates_still(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    before = document_of(finished.folder)

    said = call("replay", finished.folder, "--out", tmp_path / "replay")

    assert said.code == 1
    after = document_of(tmp_path / "replay")
    assert after["strategy"] == "replay"
    assert stored(after["findings"]) == stored(before["findings"])
    for was, now in zip(before["findings"], after["findings"], strict=True):
        for key in ("seed_id", "seed_label", "labels", "strength", "distortion", "verified"):
            assert was[key] == now[key]
        assert (tmp_path / "replay" / now["image"]).is_file()
    assert after["replay"] == {
        "of": {
            "run": str(finished.folder),
            "devices": ["emulated-builtin"],
            "compressed": before["pair"]["compressed"],
        },
        "baseline": None,
        "mended": [],
        "deviating_seeds": [],
        "new": [],
    }
    assert f"still deviating {len(before['findings'])} of" in " ".join(said.out.split())
    assert after["totals"]["device_queries"] == 0
    assert after["totals"]["overhead_device_queries"] == 4 * len(before["findings"])


def test_what_deviated_in_the_baseline_may_deviate_still(
    finished: Any, call: Call, tmp_path: Path
) -> None:
    assert call("replay", finished.folder, "--out", tmp_path / "before").code == 1

    said = call(
        *("replay", finished.folder, "--out", tmp_path / "after"),
        *("--device", "emulated-reference", "--baseline", tmp_path / "before"),
    )

    assert said.code == 0
    document = document_of(tmp_path / "after")
    assert document["replay"]["new"] == []
    assert [device["name"] for device in document["devices"]] == ["emulated-reference"]


def test_a_new_model_mends_and_the_old_one_is_new_again(
    broken: Path, example: Path, biased: Path, call: Call, tmp_path: Path
) -> None:
    good = example / "compressed.tflite"
    before = document_of(broken)
    count = len(before["deviating_seeds"]) + len(before["findings"])

    mended = call("replay", broken, "--compressed", good, "--out", tmp_path / "mended")
    again = call(
        *("replay", broken, "--compressed", biased, "--out", tmp_path / "again"),
        *("--baseline", tmp_path / "mended"),
    )

    assert mended.code == 0
    now = document_of(tmp_path / "mended")
    assert len(now["replay"]["mended"]) == count
    assert not now["deviating_seeds"]
    assert not now["findings"]
    assert all(not entry["verified"] and entry["seen"] for entry in now["replay"]["mended"])
    assert again.code == 1
    back = document_of(tmp_path / "again")
    assert len(back["replay"]["new"]) == count
    assert stored(back["deviating_seeds"]) == stored(before["deviating_seeds"])


def test_a_worse_model_shows_on_the_seeds(
    finished: Any, biased: Path, call: Call, tmp_path: Path
) -> None:
    said = call("replay", finished.folder, "--compressed", biased, "--out", tmp_path / "worse")

    assert said.code == 1
    replay = document_of(tmp_path / "worse")["replay"]
    assert replay["deviating_seeds"]
    assert replay["new"] == replay["deviating_seeds"]
    assert "seeds that deviate only now" in said.out


def test_a_replay_that_was_cut_off_goes_on(finished: Any, call: Call, tmp_path: Path) -> None:
    out = tmp_path / "replay"
    call("replay", finished.folder, "--out", out)
    whole = document_of(out)
    with sqlite3.connect(out / "run.db") as journal:
        journal.execute("DELETE FROM answers WHERE role = 'verify' AND n > 0")
        journal.execute("DELETE FROM answers WHERE role = 'seed' AND seed_id > 2")
    (out / "run.json").unlink()

    said = call("replay", finished.folder, "--out", out, "--resume")

    assert said.code == 1
    assert untimed(document_of(out)) == untimed(whole)


@pytest.fixture
def own(example: Path, finished: Any, call: Call, tmp_path: Path) -> tuple[Path, Path]:
    """A pair and a run of it that a test may damage."""
    pair, run = tmp_path / "pair", tmp_path / "run"
    shutil.copytree(example, pair, ignore=shutil.ignore_patterns("*.py"))
    options = ("--limit", "2", "--max-queries", "150", "--fail-on", "none")
    assert call("search", pair, *options, "--out", run).code == 0
    return pair, run


def test_a_model_that_is_not_what_it_was(
    own: tuple[Path, Path], biased: Path, call: Call, tmp_path: Path
) -> None:
    pair, run = own
    shutil.copy(biased, pair / "compressed.tflite")

    said = call("replay", run, "--out", tmp_path / "replay")

    assert said.code == 2
    assert said.complaint() == (
        f"{pair / 'compressed.tflite'} is not the compressed model of {run} any more: put that"
        " file back, or name the new one with --compressed"
    )
    assert not (tmp_path / "replay").exists()


def test_an_image_that_is_not_what_it_was(
    own: tuple[Path, Path], call: Call, tmp_path: Path
) -> None:
    _, run = own
    image, *_ = sorted((run / "findings").iterdir())
    image.write_bytes((run / "seeds" / image.name).read_bytes())

    said = call("replay", run, "--out", tmp_path / "replay")

    assert said.code == 2
    assert said.complaint() == f"{image} is not what was stored there: its sha256 is another"
    assert not (tmp_path / "replay").exists()


def test_what_is_no_run_or_found_nothing(
    example: Path, finished: Any, call: Call, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    options = ("--limit", "2", "--max-queries", "1", "--fail-on", "none")
    assert call("search", example, *options, "--out", empty).code == 0

    assert call("replay", empty).complaint() == (
        f"{empty} found nothing: there is nothing to try again"
    )
    assert call("replay", tmp_path / "nowhere").code == 2
    assert call("replay", finished.folder, "--resume").complaint() == (
        "--resume has to know which replay: add --out REPLAY"
    )


def test_replays_beside_their_run(finished: Any, call: Call, tmp_path: Path) -> None:
    call("replay", finished.folder, "--out", tmp_path / "replay")
    count = document_of(finished.folder)["totals"]["findings"]

    said = call("compare", finished.folder, tmp_path / "replay", "--json")

    assert said.code == 0
    compared = json.loads(said.out)
    assert compared["schema"] == "edgeflare.compare/v1"
    assert len(compared["shared_inputs"]) == len(compared["shared_seeds"]) == count
    search, replay = compared["columns"]
    assert (search["findings"], replay["findings"]) == (count, count)
    assert (search["unique"], replay["unique"]) == (0, 0)
    assert search["mean_queries"] > 1
    assert replay["mean_queries"] is None
    assert (
        f"{count} stored inputs deviate in every run"
        in call("compare", finished.folder, tmp_path / "replay").out
    )


def test_searches_with_other_run_seeds_find_inputs_of_their_own(
    example: Path, finished: Any, small: tuple[str, ...], call: Call, tmp_path: Path
) -> None:
    call("search", example, *small, "--rng-seed", "5", "--out", tmp_path / "other")

    compared = json.loads(call("compare", finished.folder, tmp_path / "other", "--json").out)

    assert not compared["shared_inputs"]
    assert compared["shared_seeds"]
    for column in compared["columns"]:
        assert column["unique"] == column["findings"] + column["deviating_seeds"]


def test_one_run_alone(finished: Any, call: Call) -> None:
    said = call("compare", finished.folder)

    assert said.code == 2
    assert said.complaint() == "one run cannot be compared: name two run directories or more"
