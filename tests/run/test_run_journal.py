"""What a run's journal keeps, of a search and of a survey, and what it refuses to read."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.errors import UserError
from edgeflare.record.folder_lock import lock_folder
from edgeflare.run.journal_notes import noted_coverage
from edgeflare.run.journal_rows import (
    AnswerRow,
    ChainRow,
    RefinementRow,
    Times,
    TriggerRow,
    screening_sha256,
    white_box_spent,
)
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.survey_rows import DeviceRow, HostRow

blobs = st.none() | st.binary(min_size=1, max_size=12)

answers = st.builds(
    AnswerRow,
    role=st.sampled_from(["seed", "step", "verify"]),
    seed_id=st.integers(0, 5),
    n=st.integers(0, 20),
    image_crc32=st.integers(0, 2**32 - 1),
    original=blobs,
    twin=blobs,
    device=blobs,
    members=blobs,
    failures=st.dictionaries(st.sampled_from(["twin", "device"]), st.just("crash")),
    seconds=st.floats(0, 10),
)


@pytest.mark.slow
@given(rows=st.lists(answers, unique_by=lambda row: (row.role, row.seed_id, row.n)))
def test_what_is_written_is_read_in_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[AnswerRow]
) -> None:
    journal = RunJournal.create(tmp_path_factory.mktemp("run") / "run.db", {"name": "x"})
    with journal.transaction():
        journal.write_answers(rows)
    for role in ("seed", "step", "verify"):
        read = journal.answers(role)
        expected = sorted(
            (row for row in rows if row.role == role), key=lambda row: (row.seed_id, row.n)
        )
        assert [row for part in read.values() for row in part] == expected
    journal.close()


def test_the_end_of_a_chain_replaces_its_steps(tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "run.db", {})
    end = ChainRow(1, "finding", 2, 2, 2, 0, 0, 0, 0.5)
    with journal.transaction():
        journal.write_answers(
            [
                AnswerRow("step", seed, n, 0, b"a", None, b"b", None, {}, 0.1)
                for seed in (1, 2)
                for n in (1, 2)
            ]
        )
        journal.end_chain(end)
    assert journal.steps("step", 1) == []
    assert len(journal.steps("step", 2)) == 2
    assert journal.chains() == {1: end}


def test_what_white_box_queries_cost_is_kept_of_each_chain(tmp_path: Path) -> None:
    plain = ChainRow.nothing_spent(1)
    asking = replace(plain, seed_id=2, host_gradients=8, translated_evaluations=20)
    journal = RunJournal.create(tmp_path / "run.db", {}, chains=[plain, asking])
    assert journal.chains() == {1: plain, 2: asking}
    with journal.transaction():
        journal.drop_unreliable(lambda seed_id: seed_id == 2, lambda _: b"")
    assert journal.chains() == {1: plain}
    journal.end_chain(asking)  # as it ends again once the device answers right
    assert journal.chains() == {1: plain, 2: asking}
    assert white_box_spent([plain]) == {}
    spent = {"host_gradients": 8, "translated_evaluations": 20}
    assert white_box_spent([plain, asking]) == spent
    journal.close()


def test_triggers_and_times_survive_reopening(tmp_path: Path) -> None:
    journal = RunJournal.create(tmp_path / "run.db", {"pair": {"name": "p"}})
    trigger = TriggerRow(
        3, "deviation", ("blur", "noise"), "a.png", "0" * 64, "s.png", 1.5, 2.0, 0.1, 7
    )
    with journal.transaction():
        journal.write_trigger(trigger)
        journal.write_times(Times(1.0, 2.0, 3.0, 4.0))
    journal.close()
    again = RunJournal.reopen(tmp_path / "run.db")
    with again.transaction():
        again.write_times(Times(wall=10.0))
        again.write_times(Times(wall=11.0))
    assert again.about() == {"pair": {"name": "p"}}
    assert again.triggers() == {3: trigger}
    assert again.times() == Times(1.0, 13.0, 3.0, 4.0)


@pytest.mark.parametrize("db", [21.5, -inf, None])
def test_the_nearness_of_a_stored_input_is_that_of_its_file(
    tmp_path: Path, db: float | None
) -> None:
    found = TriggerRow(3, "deviation", (), "found.wav", "0", "s.wav", 1.5, 2.0, 0.1, 7, 10.25)
    refined = replace(found, image="refined.wav", nearness_db=db)
    journal = RunJournal.create(tmp_path / "run.db", {})
    journal.write_trigger(found)
    journal.write_trigger(refined)
    journal.close()
    again = RunJournal.reopen(tmp_path / "run.db")
    assert again.triggers() == {3: refined}
    again.write_trigger(replace(refined, image="found.wav", nearness_db=None))
    assert again.triggers() == {3: found}


def test_a_folder_without_a_journal_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no run directory"):
        RunJournal.open(tmp_path / "run.db")


def test_another_version_of_the_journal_is_refused(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "run.db").execute("PRAGMA user_version = 99").connection.close()
    (tmp_path / "run.db").touch()
    with pytest.raises(UserError, match="another version"):
        RunJournal.open(tmp_path / "run.db")


def test_a_rollback_journal_beside_a_run_is_refused_and_deletes_nothing(tmp_path: Path) -> None:
    """SQLite deletes the file that a rollback journal names as the one above it."""
    run, target = tmp_path / "run", tmp_path / "precious"
    run.mkdir()
    target.write_text("mine")
    RunJournal.create(run / "run.db", {}).close()
    with sqlite3.connect(run / "run.db") as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    (run / "run.db-journal").write_bytes(rollback_journal(run / "run.db", target))
    with pytest.raises(UserError, match=r"run\.db-journal is there.*--overwrite"):
        RunJournal.open(run / "run.db")
    assert target.read_text() == "mine"


def rollback_journal(of: Path, above: Path) -> bytes:
    """Return a journal of no pages that names the one above it; see SQLite's file format."""
    name = str(above).encode()
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 0, of.stat().st_size // 4096, 512, 4096)
    page = struct.pack(">I", 2**30 // 4096 + 1)
    return header.ljust(512, b"\0") + page + name + struct.pack(">2I", len(name), sum(name)) + magic


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE about; CREATE VIEW about AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i FROM n) SELECT i AS key, i AS value FROM n",
        "CREATE TRIGGER other AFTER INSERT ON about BEGIN DELETE FROM chains; END",
    ],
)
def test_views_and_triggers_are_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "run.db"
    RunJournal.create(path, {}).close()
    db = sqlite3.connect(path)
    db.executescript(statement)
    db.close()
    with pytest.raises(UserError, match=r"run\.db is damaged \(it has (no table about|other)"):
        RunJournal.open(path)


def test_a_journal_begins_with_all_its_triggers_or_not_at_all(tmp_path: Path) -> None:
    row = TriggerRow(3, "deviation", (), "a.png", "0", "b.png", 1.0, 1.0, 1.0, 1)
    ended = ChainRow(3, "finding", 0, 0, 0, 0, 0, 0, 0.0)
    journal = RunJournal.create(tmp_path / "whole.db", {}, [row], [ended])
    assert journal.triggers() == {3: row}
    assert journal.chains() == {3: ended}
    journal.close()

    def killed() -> Iterator[TriggerRow]:
        yield row
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RunJournal.create(tmp_path / "run.db", {}, killed())
    with pytest.raises(UserError, match="killed before it began"):
        RunJournal.open(tmp_path / "run.db")


def test_what_is_written_ahead_stays_small(tmp_path: Path) -> None:
    """A run on a nearly full disk needs little more room than its journal takes in the end."""
    journal = RunJournal.create(tmp_path / "run.db", {})
    ahead = tmp_path / "run.db-wal"
    for batch in range(100):
        rows = [
            AnswerRow("step", n, batch, 0, bytes(4000), bytes(4000), None, None, {}, 0.0)
            for n in range(32)
        ]
        with journal.transaction():
            journal.write_answers(rows)
        assert ahead.stat().st_size < 12 * 2**20
    assert (tmp_path / "run.db").stat().st_size > 20 * 2**20
    journal.close()


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("answers", "original", "text"),
        ("answers", "seconds", float("inf")),
        ("answers", "failures", "[" * 5000),
        ("answers", "failures", '{"twin": 1}'),
        ("answers", "image_crc32", 0.5),
        ("chains", "queries", -1),
        ("chains", "ended", "never"),
        ("chains", "ties", 2**62),
        ("triggers", "operators", "3"),
        ("triggers", "l2", "far"),
        ("triggers", "changed", b"1"),
        ("refinements", "strength", "strong"),
        ("stints", "wall_seconds", float("inf")),
    ],
)
def test_a_value_that_no_run_writes_is_refused(
    tmp_path: Path, table: str, column: str, value: object
) -> None:
    path = tmp_path / "run.db"
    chain = ChainRow(1, "gave-up", 2, 1, 2, 2, 0, 0, 0.5)
    trigger = TriggerRow(1, "deviation", ("blur",), "a.png", "ab", "b.png", 1.0, 2.0, 0.5, 3)
    with closing(RunJournal.create(path, {}, [trigger], [chain])) as journal:
        journal.write_answers([AnswerRow("seed", 1, 0, 0, b"a", None, None, None, {}, 0.0)])
        journal.end_refinement(RefinementRow(1, 2, 1, 2, 2, 0, 0.5, "c.png", 1.0, 2.0, 0.5, 3))
        journal.write_times(Times())
        read_all(journal)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"UPDATE {table} SET {column} = ?", [value])  # noqa: S608 - names above
    with (
        closing(RunJournal.open(path)) as journal,
        pytest.raises(UserError, match=r"run.db is damaged"),
    ):
        read_all(journal)


def read_all(journal: RunJournal) -> None:
    journal.answers("seed")
    for read in (journal.chains, journal.triggers, journal.refinements, journal.times):
        read()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seeds", "3"),
        ("notes", [1]),
        ("other_hosts", None),
        ("health", {"devices": [{}], "warnings": []}),
        ("health", []),
        ("replay", []),
        ("replay", {"run": {}}),
        ("test", {"path": "a"}),
        ("screening", 3),
        ("stopped_by", []),
    ],
)
def test_what_no_run_notes_is_refused(tmp_path: Path, key: str, value: object) -> None:
    with (
        closing(RunJournal.create(tmp_path / "run.db", {key: value})) as journal,
        pytest.raises(UserError, match=r"run\.db is damaged .*" + key),
    ):
        journal.about()


def test_rows_that_are_left_unread_may_end_after_the_journal(tmp_path: Path) -> None:
    chains = [ChainRow(seed_id, "gave-up", 2, 1, 2, 2, 0, 0, 0.5) for seed_id in range(3)]
    with closing(RunJournal.create(tmp_path / "run.db", {}, chains=chains)) as journal:
        rows = journal.seed_rows.each("chains")
        assert next(rows)[0] == 0
    rows.close()  # type: ignore[attr-defined]


def test_a_journal_that_cannot_be_begun_leaves_its_folder_to_others(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        RunJournal.create(tmp_path / "a.db", {"seeds": object()})
    os.close(lock_folder(tmp_path))


_numbers = st.floats(allow_nan=False, width=32)
_whole = st.integers(-1, 2**31)
_items = st.integers(0, 2**31)
_seconds = st.floats(0, allow_infinity=False, width=32)
_distances = st.none() | _numbers

hosts = st.builds(
    HostRow, item=_items, input_crc32=_whole, margin=_numbers, seconds=_seconds,
    original_decision=_whole, twin_decision=_whole, twin_distance=_distances,
    original_truth_distance=_distances, twin_truth_distance=_distances,
)  # fmt: skip

devices = st.builds(
    DeviceRow, item=_items, kind=st.none() | st.sampled_from(["deviation", "crash"]),
    strength=_distances, device_decision=_whole, device_distance=_distances, seconds=_seconds,
    device_truth_distance=_distances,
)  # fmt: skip


@pytest.mark.slow
@given(
    st.lists(hosts, unique_by=lambda row: row.item, max_size=5),
    st.lists(devices, unique_by=lambda row: row.item, max_size=5),
)
def test_rows_of_a_survey_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, host: list[HostRow], device: list[DeviceRow]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    journal = RunJournal.create(folder / "run.db", {})
    with journal.transaction():
        journal.survey.write_host(host)
        journal.survey.write_device(device)
    journal.close()
    again = RunJournal.open(folder / "run.db")
    assert again.survey.host() == sorted(host, key=lambda row: row.item)
    assert again.survey.device() == sorted(device, key=lambda row: row.item)
    assert again.survey.host_items() == {row.item for row in host}
    assert again.survey.device_items() == {row.item for row in device}
    assert again.survey.checksums() == {row.item: row.input_crc32 for row in host}
    assert (again.survey.host_count(), again.survey.device_count()) == (len(host), len(device))
    again.close()
    again = RunJournal.reopen(folder / "run.db")
    again.survey.drop_device([*(row.item for row in device[:2]), 2**31 + 1])
    assert again.survey.device_items() == {row.item for row in device[2:]}
    again.close()


def test_a_journal_without_a_survey_has_no_rows(tmp_path: Path) -> None:
    with closing(RunJournal.create(tmp_path / "run.db", {})) as journal:
        assert not journal.survey.host()
        assert not journal.survey.device_items()
        assert journal.survey.host_count() == journal.survey.device_count() == 0


ROW = AnswerRow(
    role="seed", seed_id=0, n=0, image_crc32=7, original=b"one", twin=b"two", device=b"three",
    members=None, failures={}, seconds=0.5,
)  # fmt: skip


def screened(count: int = 3) -> dict[int, AnswerRow]:
    return {seed_id: msgspec.structs.replace(ROW, seed_id=seed_id) for seed_id in range(count)}


@given(order=st.permutations(range(5)), seconds=st.floats(0, 1e6))
def test_neither_order_nor_time_changes_what_identifies_a_screening(
    order: list[int], seconds: float
) -> None:
    rows = screened(5)
    other = {seed_id: msgspec.structs.replace(rows[seed_id], seconds=seconds) for seed_id in order}
    assert screening_sha256(other) == screening_sha256(rows)


@pytest.mark.parametrize(
    "change",
    [
        {"image_crc32": 8},
        {"original": b"onf"},
        {"twin": None},
        {"twin": b""},
        {"device": b"thref"},
        {"members": b"four"},
        {"failures": {"device": "timeout"}},
        # The same bytes, shared out otherwise.
        {"original": b"onet", "twin": b"wo"},
        {"original": b"onetwo", "twin": b""},
    ],
)
def test_any_other_answer_changes_it(change: dict[str, Any]) -> None:
    rows = screened()
    assert screening_sha256(
        {**rows, 1: msgspec.structs.replace(rows[1], **change)}
    ) != screening_sha256(rows)


def test_answers_to_more_or_fewer_or_other_seeds_change_it() -> None:
    rows = screened(2)
    swapped = {0: rows[0], 2: msgspec.structs.replace(rows[1], seed_id=2)}
    told = [*map(screened, range(4)), swapped]
    assert len(set(map(screening_sha256, told))) == 5


def test_coverage_is_read_as_it_was_noted_or_refused(refusal: Callable[..., str]) -> None:
    arm = {
        "arm": "twin",
        "neurons": 4,
        "seeds": [0.5],
        "with_findings": [0.75],
        "with_others": None,
    }
    noted = {
        "thresholds": [0.5], "seeds": 2, "findings": 2, "others": 0, "device_queries": 4,
        "arms": [arm], "notes": ["the pair has 0 other seeds, fewer than the 2 findings"],
    }  # fmt: skip
    assert json.loads(msgspec.json.encode(noted_coverage({"coverage": noted}))) == noted
    for about in ({}, {"coverage": None}):  # that was not asked for, and of what was stopped
        assert noted_coverage(about) is None
    damages: list[object] = [[], {}, {**noted, "arms": 1}]
    for damaged in damages:
        assert "run.db is damaged" in refusal(noted_coverage, {"coverage": damaged})
