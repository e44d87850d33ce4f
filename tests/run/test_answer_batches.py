"""Batches of answers: read wherever answers are, by all who open the journal, and moved in time."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.run import run_journal
from edgeflare.run.journal_rows import AnswerRow, ChainRow, Role
from edgeflare.run.run_journal import RunJournal


def answer(seed_id: int, n: int, role: Role = "step", output: bytes = b"a") -> AnswerRow:
    return AnswerRow(role, seed_id, n, n, output, None, b"b", b"cc", {"twin": "crash"}, 0.5)


def batched(path: Path) -> RunJournal:
    """Begin a journal with two batches of three chains, one of which has ended."""
    journal = RunJournal.create(path, {})
    for n in (1, 2):
        with journal.transaction():
            journal.write_batch([answer(seed_id, n) for seed_id in (3, 1, 2)])
    journal.end_chain(ChainRow(1, "gave-up", 2, 1, 2, 2, 0, 0, 0.5))
    return journal


LEFT = {seed_id: [answer(seed_id, 1), answer(seed_id, 2)] for seed_id in (2, 3)}


def killed(path: Path) -> Path:
    """Return a copy of the files of a journal that is open, as a kill would leave them."""
    copy = path.parent / "killed" / path.name
    copy.parent.mkdir()
    for file in (path, Path(f"{path}-wal")):
        shutil.copy(file, copy.parent / file.name)
    return copy


def test_all_who_open_a_journal_read_its_batches(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    journal = batched(path)
    left = killed(path)
    with closing(RunJournal.open(path)) as reader:
        assert reader.answers("step") == LEFT
        assert reader.steps("step", 3) == LEFT[3]
        assert reader.device_queries() == {1: 1, 2: 2, 3: 2}
        assert sorted(reader.seed_rows.stages(1)) == [(1, 3), (2, 2), (3, 2)]
    with closing(RunJournal.reopen(left)) as resumed:
        assert resumed.steps("step", 1) == []
        assert resumed.steps("step", 3) == LEFT[3]
    assert journal.steps("step", 2) == LEFT[2]
    journal.close()
    with closing(RunJournal.open(path)) as reader:
        assert reader.answers("step") == LEFT


def test_a_chain_that_is_dropped_begins_without_answers(tmp_path: Path) -> None:
    with closing(batched(tmp_path / "run.db")) as journal:
        with journal.transaction():
            journal.drop_unreliable(lambda seed_id: seed_id != 2, lambda _: b"")
        assert journal.chains() == {}
        assert journal.answers("step") == {2: LEFT[2]}


def test_a_chain_that_is_searched_again_has_the_gradients_of_that_alone(tmp_path: Path) -> None:
    with closing(RunJournal.create(tmp_path / "run.db", {})) as journal:
        journal.end_chain(ChainRow(1, "gave-up", 2, 1, 2, 2, 0, 0, 0.5, 40, 9))
        with journal.transaction():
            journal.drop_unreliable(lambda _: True, lambda _: b"")
        again = ChainRow(1, "gave-up", 1, 1, 1, 1, 0, 0, 0.5)
        journal.end_chain(again)
        assert journal.chains() == {1: again}


def test_a_transaction_that_fails_keeps_nothing_of_its_batch(tmp_path: Path) -> None:
    with closing(batched(tmp_path / "run.db")) as journal:
        with suppress(UserError), journal.transaction():
            journal.write_batch([answer(2, 3)])
            raise UserError("stopped")
        assert journal.answers("step") == LEFT


@pytest.mark.parametrize(("bound", "most"), [("MOST_WAITING", 10), ("MOST_WAITING_BYTES", 300)])
def test_batches_are_moved_before_they_are_many_or_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(run_journal, bound, most)
    path = tmp_path / "run.db"
    with closing(RunJournal.create(path, {})) as journal:
        for n in range(8):
            with journal.transaction():
                journal.write_batch([answer(seed_id, n, "refine") for seed_id in range(3)])
        with closing(sqlite3.connect(path)) as db:
            (rows,) = db.execute("SELECT count(*) FROM batches").fetchone()
        assert rows < 4
        assert sum(map(len, journal.answers("refine").values())) == 24


@pytest.mark.parametrize("content", [b"\xc1", b"\x91\x93\x01\x02\x03", "text"])
def test_a_batch_that_no_run_writes_is_damage(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "run.db"
    RunJournal.create(path, {}).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("INSERT INTO batches VALUES (1, ?)", [content])
    with pytest.raises(UserError, match=r"run\.db is damaged"):
        RunJournal.open(path)
