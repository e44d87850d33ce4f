"""`edgeflare replay` and `compare`: stored inputs tried again, and runs beside one another."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgeflare.record.atomic_file import write_atomically
from edgeflare.replay import replay_run
from edgeflare.replay.past_run import PastRun
from edgeflare.replay.replay_header import replay_note
from edgeflare.run import run_document as report_document
from laboratory import untimed

UNREFINED = ("--shrink", "0", "--within", "none", "--fail-on", "none")

pytestmark = pytest.mark.slow

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
    example: Path, biased: Path, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A search of a compressed model with a fault in its last layer."""
    run = tmp_path_factory.mktemp("broken") / "run"
    options = ("--compressed", biased, "--first", "4", *UNREFINED)
    assert call("search", example, *options, "--out", run).code == 0
    assert document_of(run)["deviating_seeds"]
    return run


@pytest.fixture(scope="module")
def mended(
    broken: Path, example: Path, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A replay of that search with the sound model, of which nothing deviates."""
    replay = tmp_path_factory.mktemp("mended") / "replay"
    good = example / "compressed.tflite"
    assert call("replay", broken, "--compressed", good, "--out", replay).code == 0
    return replay


@dataclass(frozen=True)
class Replayed:
    """A replay of the finished search on its own device, and what it said."""

    folder: Path
    said: Any


@pytest.fixture(scope="module")
def replayed(finished: Any, call: Call, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    folder = tmp_path_factory.mktemp("replayed") / "replay"
    return Replayed(folder, call("replay", finished.folder, "--out", folder))


@pytest.fixture
def out(replayed: Replayed, tmp_path: Path) -> Path:
    """That replay, for the test to cut off."""
    return Path(shutil.copytree(replayed.folder, tmp_path / "replay"))


def test_on_the_same_device_everything_deviates_still(finished: Any, replayed: Replayed) -> None:
    before, after = document_of(finished.folder), document_of(replayed.folder)
    assert replayed.said.code == 1
    assert after["strategy"] == "replay"
    assert stored(after["findings"]) == stored(before["findings"])
    assert after["totals"]["duplicates"] == before["totals"]["duplicates"]
    assert after["totals"]["duplicates"]["triggers"] == len(after["findings"])
    for was, now in zip(before["findings"], after["findings"], strict=True):
        for key in ("seed_id", "seed_label", "labels", "strength", "distortion", "verified"):
            assert was[key] == now[key]
        assert (replayed.folder / now["image"]).is_file()
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
        "changed_kind": [],
    }
    said = " ".join(replayed.said.out.split())
    assert f"deviating now {len(before['findings'])} of" in said
    assert after["totals"]["device_queries"] == 0
    assert after["totals"]["overhead_device_queries"] == 4 * len(before["findings"])


def test_what_deviated_in_the_baseline_may_deviate_still(
    finished: Any, replayed: Replayed, call: Call, tmp_path: Path
) -> None:
    said = call(
        *("replay", finished.folder, "--out", tmp_path / "after"),
        *("--device", "emulated-reference", "--baseline", replayed.folder),
    )

    assert said.code == 0
    document = document_of(tmp_path / "after")
    assert document["replay"]["new"] == []
    assert [device["name"] for device in document["devices"]] == ["emulated-reference"]


def test_a_new_model_mends_and_the_old_one_is_new_again(
    broken: Path, mended: Path, biased: Path, call: Call, tmp_path: Path
) -> None:
    before = document_of(broken)
    count = len(before["deviating_seeds"]) + len(before["findings"])

    again = call(
        *("replay", broken, "--compressed", biased, "--out", tmp_path / "again"),
        *("--baseline", mended),
    )

    now = document_of(mended)
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


def test_a_replay_that_was_cut_off_goes_on(finished: Any, out: Path, call: Call) -> None:
    whole = document_of(out)
    with sqlite3.connect(out / "run.db") as journal:
        journal.execute("DELETE FROM answers WHERE role = 'verify' AND n > 0")
        journal.execute("DELETE FROM answers WHERE role = 'seed' AND seed_id > 2")
    (out / "run.json").unlink()

    said = call("replay", finished.folder, "--out", out, "--resume")

    assert said.code == 1
    assert untimed(document_of(out)) == untimed(whole)


@pytest.fixture
def pair(example: Path, tmp_path: Path) -> Path:
    """A pair that a test may damage."""
    pair = tmp_path / "pair"
    return Path(shutil.copytree(example, pair, ignore=shutil.ignore_patterns("*.py")))


@pytest.fixture
def copied(finished: Any, tmp_path: Path) -> Path:
    """A run that a test may damage; its pair stays as it is."""
    run = tmp_path / "copied"
    shutil.copytree(finished.folder, run)
    return run


ONE = ("--first", "1", "--max-queries", "150", *UNREFINED)


def test_a_model_that_is_not_what_it_was(
    pair: Path, biased: Path, call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert call("search", pair, *ONE, "--out", run).code == 0
    shutil.copy(biased, pair / "compressed.tflite")

    said = call("replay", run, "--out", tmp_path / "replay")

    assert said.code == 2
    assert said.complaint() == (
        f"{pair / 'compressed.tflite'} is not the compressed model of {run} (its sha256 is"
        " another): put that file back, or say where it is with --compressed"
    )
    assert not (tmp_path / "replay").exists()


def test_an_image_that_is_not_what_it_was(copied: Path, call: Call, tmp_path: Path) -> None:
    image, *_ = sorted((copied / "findings").iterdir())
    image.write_bytes((copied / "seeds" / image.name).read_bytes())

    said = call("replay", copied, "--out", tmp_path / "replay")

    assert said.code == 2
    assert said.complaint() == f"{image} is not what was stored there: its sha256 is another"
    assert not (tmp_path / "replay").exists()


def test_what_is_no_run_or_found_nothing(
    example: Path, finished: Any, call: Call, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    options = ("--first", "1", "--max-queries", "1", "--shrink", "0", "--fail-on", "none")
    assert call("search", example, *options, "--out", empty).code == 0

    assert call("replay", empty).complaint() == (
        f"{empty} found nothing: there is nothing to try again"
    )
    assert call("replay", tmp_path / "nowhere").code == 2
    assert call("replay", finished.folder, "--resume").complaint() == (
        "--resume has to know which run: add --out RUN"
    )


def test_replays_beside_their_run(finished: Any, replayed: Replayed, call: Call) -> None:
    count = document_of(finished.folder)["totals"]["findings"]

    said = call("compare", finished.folder, replayed.folder, "--json")

    assert said.code == 0
    compared = json.loads(said.out)
    assert compared["schema"] == "edgeflare.compare/v1"
    assert len(compared["shared_inputs"]) == len(compared["shared_seeds"]) == count
    search, replay = compared["columns"]
    assert (search["findings"], replay["findings"]) == (count, count)
    assert (search["unique"], replay["unique"]) == (0, 0)
    assert search["mean_queries"] > 1
    assert replay["mean_queries"] is None
    table = call("compare", finished.folder, replayed.folder).out
    assert f"{count} stored inputs deviate in every run" in table
    assert max(map(len, table.splitlines())) <= 80
    assert "…/fashion_lenet4/" in table


def test_searches_with_other_run_seeds_find_inputs_of_their_own(
    example: Path, finished: Any, small: tuple[str, ...], call: Call, tmp_path: Path
) -> None:
    call("search", example, *small, "--first", "3", "--rng-seed", "5", "--out", tmp_path / "other")

    compared = json.loads(call("compare", finished.folder, tmp_path / "other", "--json").out)

    assert not compared["shared_inputs"]
    assert compared["shared_seeds"]
    for column in compared["columns"]:
        assert column["unique"] == column["findings"] + column["deviating_seeds"]


def test_one_run_alone(finished: Any, call: Call) -> None:
    said = call("compare", finished.folder)

    assert said.code == 2
    assert said.complaint() == "one run cannot be compared: name two run directories or more"


def rewrite(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the document of a run says."""
    document = json.loads((run / "run.json").read_bytes())
    change(document)
    (run / "run.json").write_text(json.dumps(document))


def test_a_replay_without_its_inputs_is_not_gone_on_with(
    finished: Any, out: Path, call: Call
) -> None:
    with sqlite3.connect(out / "run.db") as journal:
        journal.execute("DELETE FROM triggers")

    said = call("replay", finished.folder, "--out", out, "--resume")

    assert said.code == 2
    assert f"{out} has 0 of its" in said.complaint()


def test_a_replay_cut_off_while_images_are_copied_goes_on(
    finished: Any, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "replay"

    def full(path: Path, data: bytes) -> None:
        if any(out.glob("findings/*")):
            raise OSError(28, "No space left on device")
        write_atomically(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(replay_run, "write_atomically", full)
        assert call("replay", finished.folder, "--out", out).code == 3
    assert len(list(out.glob("findings/*"))) == 1

    said = call("replay", finished.folder, "--out", out, "--resume")

    assert said.code == 1
    before, after = document_of(finished.folder), document_of(out)
    assert stored(after["findings"]) == stored(before["findings"])
    assert all((out / entry["seed_image"]).is_file() for entry in after["findings"])


def test_a_replay_does_not_take_the_place_of_what_it_needs(
    finished: Any, copied: Path, call: Call
) -> None:
    before = document_of(copied)
    for needs in ((copied,), (finished.folder, "--baseline", copied)):
        said = call("replay", *needs, "--out", copied, "--overwrite")
        assert said.code == 2
        assert said.complaint() == (
            f"{copied} is what is replayed, or its baseline: name another --out"
        )
    assert document_of(copied) == before


def test_a_replay_of_a_replay_tries_the_whole_suite(
    broken: Path, mended: Path, biased: Path, call: Call, tmp_path: Path
) -> None:
    assert document_of(mended)["replay"]["mended"]

    said = call("replay", mended, "--compressed", biased, "--out", tmp_path / "again")

    assert said.code == 1
    before, after = document_of(broken), document_of(tmp_path / "again")
    for key in ("deviating_seeds", "findings"):
        assert stored(after[key]) == stored(before[key])


def test_a_replay_goes_on_with_the_same_run_and_baseline_only(
    finished: Any, copied: Path, call: Call, tmp_path: Path
) -> None:
    out = tmp_path / "replay"
    call("replay", finished.folder, "--baseline", copied, "--out", out)
    options = ("--out", out, "--resume")

    other_run = call("replay", copied, "--baseline", copied, *options)
    no_baseline = call("replay", finished.folder, *options)
    rewrite(copied, lambda document: document["findings"].pop())
    less_known = call("replay", finished.folder, "--baseline", copied, *options)

    assert other_run.code == no_baseline.code == less_known.code == 2
    assert f"was begun with RUN {finished.folder}, not {copied}" in other_run.complaint()
    assert f"was begun with --baseline {copied}, not without" in no_baseline.complaint()
    assert "has changed since" in less_known.complaint()
    assert call("replay", finished.folder, "--out", finished.folder.parent, "--resume").code == 2


def test_seeds_that_deviated_in_a_search_are_known(finished: Any, broken: Path) -> None:
    past, baseline = PastRun.open(finished.folder), PastRun.open(broken)
    ids = {entry["seed_id"] for entry in document_of(broken)["deviating_seeds"]}

    replay = replay_note(past, baseline)["replay"]

    shared = {sha256 for key, sha256 in replay["seed_sha256"].items() if int(key) in ids}
    assert shared
    assert shared <= set(replay["baseline"]["sha256"])


def test_a_baseline_of_something_else_is_refused(
    finished: Any, copied: Path, call: Call, tmp_path: Path
) -> None:
    replay = ("replay", finished.folder, "--baseline", copied, "--out", tmp_path / "replay")
    rewrite(copied, lambda document: document.update(find="kernel"))
    other_find = call(*replay)
    shutil.copy(finished.folder / "run.json", copied)
    with sqlite3.connect(copied / "run.db") as journal:
        ((pair,),) = journal.execute("SELECT value FROM about WHERE key = 'pair'")
        pair = json.loads(pair)
        pair["sha256"]["original"] = "0"
        journal.execute("UPDATE about SET value = ? WHERE key = 'pair'", [json.dumps(pair)])
    other_original = call(*replay)

    assert other_find.code == other_original.code == 2
    assert "it looked for kernel, and" in other_find.complaint()
    assert "its original model is not that of" in other_original.complaint()
    assert not (tmp_path / "replay").exists()


def test_what_is_not_verified_yet_is_not_called_nothing(copied: Path, call: Call) -> None:
    count = len(document_of(copied)["findings"])

    def change(document: dict[str, Any]) -> None:
        document |= {"unverified": document["findings"], "findings": []}

    rewrite(copied, change)

    said = call("replay", copied)

    assert said.code == 2
    assert said.complaint() == (
        f"{copied} has {count} findings that are not verified yet: go on with"
        " `edgeflare search … --resume`"
    )


def test_a_deviation_of_another_kind_is_steady_all_the_same(
    copied: Path, call: Call, tmp_path: Path
) -> None:
    rewrite(copied, lambda document: document["findings"][0].update(kind="crash"))
    seed_id = document_of(copied)["findings"][0]["seed_id"]

    said = call("replay", copied, "--out", tmp_path / "replay")

    after = document_of(tmp_path / "replay")
    assert not after["flaky"]
    assert len(after["findings"]) == len(document_of(copied)["findings"])
    change = {"seed_id": seed_id, "before": "crash", "now": "deviation"}
    assert after["replay"]["changed_kind"] == [change]
    assert f"seed {seed_id}: crash → deviation" in said.out


def test_a_seed_that_is_not_what_it_was(copied: Path, call: Call, tmp_path: Path) -> None:
    first, second, *_ = sorted((copied / "seeds").iterdir())
    whole = first.read_bytes()
    complaints = []
    for contents in (second.read_bytes(), whole[: len(whole) // 2], b"", b"no image"):
        first.write_bytes(contents)
        said = call("replay", copied, "--out", tmp_path / "replay")
        assert said.code == 2
        complaints.append(said.complaint())
    assert f"{first} is not what was stored there: it is not as far from" in complaints[0]
    assert all(str(first) in complaint for complaint in complaints)


def test_a_damaged_document(copied: Path, call: Call) -> None:
    rewrite(copied, lambda document: document.pop("findings"))

    said = call("replay", copied)

    assert said.code == 2
    assert said.complaint() == (
        f"{copied / 'run.json'} is damaged: it has no findings; remove it, and it is derived anew"
        " from run.db"
    )
    (copied / "run.json").unlink()
    assert call("report", copied).code == 0


def test_a_run_is_replayed_from_another_folder_and_finds_a_moved_original(
    pair: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("search", pair.name, *ONE, "--out", "near").code == 0
    run = tmp_path / "near"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert call("replay", run, "--out", "one").code == 1
    (pair / "original.tflite").rename("moved.tflite")
    gone = call("replay", run, "--out", "two")
    wrong = call("replay", run, "--original", pair / "compressed.tflite", "--out", "two")
    assert gone.code == wrong.code == 2
    assert f"{pair / 'original.tflite'} cannot be read" in gone.complaint()
    assert "--original" in gone.complaint()
    assert "is not the original model" in wrong.complaint()
    assert call("replay", run, "--original", "moved.tflite", "--out", "two").code == 1


def test_a_new_model_may_have_outputs_of_another_kind(finished: Any, biased: Path) -> None:
    past = PastRun.open(finished.folder)
    assert "outputs" in past.pair().interface.task_settings
    assert not past.pair(instead=biased).interface.task_settings
    said = replace(
        past, header=replace(past.header, pair={**past.header.pair, "outputs": "logits"})
    )
    assert said.pair(instead=biased).interface.task_settings == {"outputs": "logits"}
