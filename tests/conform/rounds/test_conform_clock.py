"""How long a run has taken, and what of it counts to its limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.rounds import conform_clock
from edgeflare.conform.rounds.conform_clock import ConformClock


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let time pass, which stands still otherwise."""
    now = [50.0]
    monkeypatch.setattr(conform_clock, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


def test_all_processes_are_added_up(tmp_path: Path, wait: Callable[[float], None]) -> None:
    journal = ConformJournal.create(tmp_path / "conform.db", {})
    first = ConformClock(journal)
    wait(30)
    journal.keep(0, "", [], first.spent)
    wait(12)  # for shrinking, say
    first.note()
    wait(5)  # which is lost where the process is killed
    second = ConformClock(journal)
    wait(8)
    assert (first.total, second.total) == (55, 50)
    journal.close()


def test_what_is_done_again_counts_nothing(tmp_path: Path, wait: Callable[[float], None]) -> None:
    journal = ConformJournal.create(tmp_path / "conform.db", {})
    first = ConformClock(journal)
    wait(30)
    journal.keep(0, "", [], first.spent)
    wait(12)
    first.note()
    second = ConformClock(journal)
    wait(8)
    second.leave_out()
    assert (second.spent, second.total) == (30, 50)
    wait(4)
    assert (second.spent, second.total) == (34, 54)
    journal.close()
