"""`edgeflare replay` and `compare`: stored inputs tried again, and runs beside one another."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from called_commands import EXAMPLE, call_here, completed, document_of, refused
from edgeflare.pages.facts import count_of
from edgeflare.record.atomic_file import write_atomically
from edgeflare.replay import replay_run
from edgeflare.replay.past_run import PastRun
from edgeflare.replay.replay_run import replay_note
from laboratory import untimed

UNREFINED = ("--shrink", "0", "--within", "none", "--fail-on", "none")

pytestmark = pytest.mark.slow


def stored(entries: list[dict[str, Any]]) -> list[str]:
    return sorted(entry["sha256"] for entry in entries)


@pytest.fixture(scope="module")
def broken(biased: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search of a compressed model with a fault in its last layer."""
    run = tmp_path_factory.mktemp("broken") / "run"
    options = ("--compressed", biased, "--first", "4", *UNREFINED)
    completed("search", EXAMPLE, *options, "--out", run)
    assert document_of(run)["deviating_seeds"]
    return run


@pytest.fixture(scope="module")
def mended(broken: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A replay of that search with the sound model, of which nothing deviates."""
    replay = tmp_path_factory.mktemp("mended") / "replay"
    good = EXAMPLE / "compressed.tflite"
    completed("replay", broken, "--compressed", good, "--out", replay)
    return replay


@dataclass(frozen=True)
class Replayed:
    """A replay of the finished search on its own device, and what it said."""

    folder: Path
    said: Any


@pytest.fixture(scope="module")
def replayed(finished: Any, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    folder = tmp_path_factory.mktemp("replayed") / "replay"
    return Replayed(folder, call_here("replay", finished.folder, "--out", folder))


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
        assert (replayed.folder / now["file"]).is_file()
    assert after["replay"] == {
        "run": {
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
    finished: Any, replayed: Replayed, tmp_path: Path
) -> None:
    completed(
        *("replay", finished.folder, "--out", tmp_path / "after"),
        *("--device", "emulated-reference", "--baseline", replayed.folder),
    )

    document = document_of(tmp_path / "after")
    assert document["replay"]["new"] == []
    assert [device["name"] for device in document["devices"]] == ["emulated-reference"]


def test_a_new_model_mends_and_the_old_one_is_new_again(
    broken: Path, mended: Path, biased: Path, tmp_path: Path
) -> None:
    before = document_of(broken)
    count = len(before["deviating_seeds"]) + len(before["findings"])

    completed(
        *("replay", broken, "--compressed", biased, "--out", tmp_path / "again"),
        *("--baseline", mended),
        code=1,
    )

    now = document_of(mended)
    assert len(now["replay"]["mended"]) == count
    assert not now["deviating_seeds"]
    assert not now["findings"]
    assert all(not entry["verified"] and entry["seen"] for entry in now["replay"]["mended"])
    back = document_of(tmp_path / "again")
    assert len(back["replay"]["new"]) == count
    assert stored(back["deviating_seeds"]) == stored(before["deviating_seeds"])


def test_a_worse_model_shows_on_the_seeds(finished: Any, biased: Path, tmp_path: Path) -> None:
    said = completed(
        "replay", finished.folder, "--compressed", biased, "--out", tmp_path / "worse", code=1
    )

    replay = document_of(tmp_path / "worse")["replay"]
    assert replay["deviating_seeds"]
    assert replay["new"] == replay["deviating_seeds"]
    assert "seeds that deviate only now" in said.out


def test_a_replay_that_was_cut_off_goes_on(finished: Any, out: Path) -> None:
    whole = document_of(out)
    with sqlite3.connect(out / "run.db") as journal:
        journal.execute("DELETE FROM answers WHERE role = 'verify' AND n > 0")
        journal.execute("DELETE FROM answers WHERE role = 'seed' AND seed_id > 2")
    (out / "run.json").unlink()

    completed("replay", finished.folder, "--out", out, "--resume", code=1)

    assert untimed(document_of(out)) == untimed(whole)


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A pair that a test may damage."""
    pair = tmp_path / "pair"
    return Path(shutil.copytree(EXAMPLE, pair, ignore=shutil.ignore_patterns("*.py")))


@pytest.fixture
def copied(finished: Any, tmp_path: Path) -> Path:
    """A run that a test may damage; its pair stays as it is."""
    run = tmp_path / "copied"
    shutil.copytree(finished.folder, run)
    return run


ONE = ("--first", "1", "--max-queries", "150", *UNREFINED)


def test_a_run_that_found_nothing_has_nothing_to_replay(tmp_path: Path) -> None:
    options = ("--first", "1", "--max-queries", "1", "--shrink", "0", "--fail-on", "none")
    completed("search", EXAMPLE, *options, "--out", tmp_path / "empty")
    said = refused("replay", tmp_path / "empty")
    assert said == f"{tmp_path / 'empty'} found nothing: there is nothing to try again"


def test_replays_beside_their_run(finished: Any, replayed: Replayed) -> None:
    count = document_of(finished.folder)["totals"]["findings"]

    said = completed("compare", finished.folder, replayed.folder, "--json")

    compared = json.loads(said.out)
    assert compared["schema"] == "edgeflare.compare/v1"
    assert len(compared["shared_inputs"]) == len(compared["shared_seeds"]) == count
    search, replay = compared["columns"]
    assert (search["findings"], replay["findings"]) == (count, count)
    assert (search["unique"], replay["unique"]) == (0, 0)
    assert search["mean_queries"] > 1
    assert replay["mean_queries"] is None
    table = call_here("compare", finished.folder, replayed.folder).out
    assert f"{count} stored inputs deviate in every run" in table
    assert max(map(len, table.splitlines())) <= 80
    assert "…/fashion_lenet4/" in table


def rewrite(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what the document of a run says."""
    document = json.loads((run / "run.json").read_bytes())
    change(document)
    (run / "run.json").write_text(json.dumps(document))


def test_a_replay_without_its_inputs_is_not_gone_on_with(finished: Any, out: Path) -> None:
    with sqlite3.connect(out / "run.db") as journal:
        journal.execute("DELETE FROM triggers")

    assert f"{out} has 0 of its" in refused("replay", finished.folder, "--out", out, "--resume")


def test_a_replay_cut_off_while_images_are_copied_goes_on(
    finished: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "replay"

    def full(path: Path, data: bytes) -> None:
        if any(out.glob("findings/*")):
            raise OSError(28, "No space left on device")
        write_atomically(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(replay_run, "write_atomically", full)
        completed("replay", finished.folder, "--out", out, code=3)
    assert len(list(out.glob("findings/*"))) == 1

    completed("replay", finished.folder, "--out", out, "--resume", code=1)

    before, after = document_of(finished.folder), document_of(out)
    assert stored(after["findings"]) == stored(before["findings"])
    assert all((out / entry["seed_file"]).is_file() for entry in after["findings"])


def test_a_replay_of_a_replay_tries_the_whole_suite(
    broken: Path, mended: Path, biased: Path, tmp_path: Path
) -> None:
    assert document_of(mended)["replay"]["mended"]

    completed("replay", mended, "--compressed", biased, "--out", tmp_path / "again", code=1)

    before, after = document_of(broken), document_of(tmp_path / "again")
    for key in ("deviating_seeds", "findings"):
        assert stored(after[key]) == stored(before[key])


def test_a_replay_goes_on_with_the_same_run_and_baseline_only(
    finished: Any, copied: Path, tmp_path: Path
) -> None:
    out = tmp_path / "replay"
    call_here("replay", finished.folder, "--baseline", copied, "--out", out)
    options = ("--out", out, "--resume")

    other_run = refused("replay", copied, "--baseline", copied, *options)
    no_baseline = refused("replay", finished.folder, *options)
    rewrite(copied, lambda document: document["findings"].pop())
    less_known = refused("replay", finished.folder, "--baseline", copied, *options)

    assert f"was begun with RUN {finished.folder}, not {copied}" in other_run
    assert f"was begun with --baseline {copied}, not without" in no_baseline
    assert "has changed since" in less_known
    completed("replay", finished.folder, "--out", finished.folder.parent, "--resume", code=2)


def test_seeds_that_deviated_in_a_search_are_known(finished: Any, broken: Path) -> None:
    past, baseline = PastRun.open(finished.folder), PastRun.open(broken)
    ids = {entry["seed_id"] for entry in document_of(broken)["deviating_seeds"]}

    replay = replay_note(past, baseline)["replay"]

    shared = {sha256 for key, sha256 in replay["seed_sha256"].items() if int(key) in ids}
    assert shared
    assert shared <= set(replay["baseline"]["sha256"])


def test_a_baseline_of_something_else_is_refused(
    finished: Any, copied: Path, tmp_path: Path
) -> None:
    replay = ("replay", finished.folder, "--baseline", copied, "--out", tmp_path / "replay")
    rewrite(copied, lambda document: document.update(find="kernel"))
    other_find = refused(*replay)
    shutil.copy(finished.folder / "run.json", copied)
    with sqlite3.connect(copied / "run.db") as journal:
        ((pair,),) = journal.execute("SELECT value FROM about WHERE key = 'pair'")
        pair = json.loads(pair)
        pair["sha256"]["original"] = 64 * "0"
        journal.execute("UPDATE about SET value = ? WHERE key = 'pair'", [json.dumps(pair)])
    other_original = refused(*replay)

    assert "it looked for kernel, and" in other_find
    assert "its original model is not that of" in other_original
    assert not (tmp_path / "replay").exists()


def test_what_is_not_verified_yet_is_not_called_nothing(copied: Path) -> None:
    count = len(document_of(copied)["findings"])
    rewrite(copied, lambda one: one.update(unverified=one["findings"], findings=[]))
    assert refused("replay", copied) == (
        f"{copied} has {count_of(count, 'finding')} not verified yet: go on with"
        " `edgeflare search … --resume`"
    )


def test_a_deviation_of_another_kind_is_steady_all_the_same(copied: Path, tmp_path: Path) -> None:
    rewrite(copied, lambda document: document["findings"][0].update(kind="crash"))
    seed_id = document_of(copied)["findings"][0]["seed_id"]

    said = call_here("replay", copied, "--out", tmp_path / "replay")

    after = document_of(tmp_path / "replay")
    assert not after["flaky"]
    assert len(after["findings"]) == len(document_of(copied)["findings"])
    change = {"seed_id": seed_id, "before": "crash", "now": "deviation"}
    assert after["replay"]["changed_kind"] == [change]
    assert f"seed {seed_id}: crash → deviation" in said.out


def test_a_seed_that_is_not_what_it_was(copied: Path, tmp_path: Path) -> None:
    first, second, *_ = sorted((copied / "seeds").iterdir())
    whole = first.read_bytes()
    for contents in (second.read_bytes(), whole[: len(whole) // 2], b"", b"no image"):
        first.write_bytes(contents)
        said = refused("replay", copied, "--out", tmp_path / "replay")
        assert str(first) in said
        if contents == second.read_bytes():
            assert f"{first} is not what was stored there: it is not as far from" in said


def test_a_run_is_replayed_from_another_folder_and_finds_a_moved_original(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    completed("search", pair.name, *ONE, "--out", "near")
    run = tmp_path / "near"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    completed("replay", run, "--out", "one", code=1)
    (pair / "original.tflite").rename("moved.tflite")
    gone = refused("replay", run, "--out", "two")
    wrong = refused("replay", run, "--original", pair / "compressed.tflite", "--out", "two")
    assert f"{pair / 'original.tflite'} cannot be read" in gone
    assert "--original" in gone
    assert "is not the original model" in wrong
    completed("replay", run, "--original", "moved.tflite", "--out", "two", code=1)


def test_a_new_model_may_have_outputs_of_another_kind(finished: Any, biased: Path) -> None:
    past = PastRun.open(finished.folder)
    assert "outputs" in past.pair().interface.task_settings
    assert not past.pair(instead=biased).interface.task_settings
    pair = structs.replace(past.header.pair, outputs="logits")
    said = replace(past, header=replace(past.header, pair=pair))
    assert said.pair(instead=biased).interface.task_settings == {"outputs": "logits"}
