from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from conforming import ExactArm, PlantedFault
from edgeflare.conform import kernel_table as kernel_table_room
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.kernel_table import (
    KernelCell,
    KernelColumn,
    KernelTable,
    TableArm,
    kernel_table,
    table_csv,
    table_sections,
)
from edgeflare.errors import InfrastructureError
from edgeflare.outside_text import json_value
from edgeflare.pages.markdown import markdown_section

CELLS = (("ADD", "int8"), ("NEG", "float32"))
PUBLISHED = Path(__file__).parents[2] / "docs" / "kernels"


def column(kernels: str, version: str) -> KernelColumn:
    return KernelColumn(
        name=f"{kernels}@{version}",
        kernels=kernels,
        runtime="ai-edge-litert",
        runtime_version=version,
    )


@pytest.fixture(scope="module")
def table() -> KernelTable:
    """A kernel set whose ADD clamps wrongly until its second version, in which NEG dies."""
    clamps = PlantedFault("ADD", lambda settings: settings["activation"] == "RELU6")
    dies = PlantedFault("NEG", failure="crash")
    arms = [
        TableArm(column("builtin", "2.1.6"), ExactArm(faults=(clamps,))),
        TableArm(column("builtin", "2.2.0"), ExactArm(faults=(dies,))),
    ]
    return kernel_table(CELLS, 48, 0, arms, command="edgeflare conform --models {}".format)[0]


def test_a_table_says_how_far_each_kernel_set_is_right(table: KernelTable) -> None:
    add, negation = table.rows
    assert table.models == add.models + negation.models == 48
    assert 0 < add.buckets <= add.buckets_total
    (before,) = add.kernels.values()
    assert set(add.kernels) == {"builtin@2.1.6"}
    assert before.wrong > 0
    assert before.exact + before.step + before.wrong == add.models
    assert before.when == ("wrong values where activation is RELU6",)
    (dead,) = negation.kernels.values()
    assert (dead.crashed, dead.state) == (negation.models, "crash")


def test_the_same_is_in_the_csv_and_on_the_page(table: KernelTable) -> None:
    head, add, negation = csv.reader(table_csv(table).splitlines())
    assert head == ["operator", "type", "models", "builtin@2.1.6", "builtin@2.2.0"]
    assert add[3].startswith("wrong in ")
    assert add[4] == negation[3] == "exact"
    page = "\n".join(map(markdown_section, table_sections(table)))
    assert "| ADD int8 | right from 2.2.0 on |" in page
    assert "| NEG float32 | wrong from 2.2.0 on: crash |" in page


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (KernelCell(exact=3, step=1), "a step off"),
        (KernelCell(exact=3, refused=1), "exact, 1 of 4 refused"),
        (KernelCell(refused=4), "refused"),
        (KernelCell(exact=1, crashed=2, when=("crash",)), "crash in 2 of 3: crash"),
    ],
)
def test_a_cell_in_words(cell: KernelCell, words: str) -> None:
    assert cell.words == words


def test_each_kernel_set_runs_one_round_where_no_time_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_table_room, "_ROUND", 25)
    arms = [TableArm(column("builtin", version), ExactArm()) for version in ("2.1.6", "2.2.0")]
    told: list[int] = []
    table, stop = kernel_table(CELLS, 100, 0, arms, lambda: True, told.append)
    assert (table.models, stop) == (told[0], None)
    assert [column.models for column in table.columns] == [told[0], told[1] - told[0]]
    assert told[1] == 2 * told[0]


class TimedArm(ExactArm):
    """Kernels that take some seconds for each round, by a clock of the test's."""

    def __init__(self, seconds: float, clock: list[float], faults: Sequence[PlantedFault]) -> None:
        super().__init__(faults=faults)
        self.seconds, self.clock = seconds, clock

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Answer after so many seconds."""
        self.clock[0] += self.seconds
        return super().run(models)


def timed_table(
    monkeypatch: pytest.MonkeyPatch, seconds: Sequence[float], fault: PlantedFault
) -> KernelTable:
    """Return the table of kernel sets that take some seconds a round, in 100 seconds."""
    clock = [0.0]
    monkeypatch.setattr(kernel_table_room, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(kernel_table_room, "_ROUND", 5)
    arms = [
        TableArm(column("builtin", f"2.{at}.0"), TimedArm(each, clock, (fault,)))
        for at, each in enumerate(seconds)
    ]
    return kernel_table(CELLS, 200, 0, arms, lambda: clock[0] >= 100)[0]


@pytest.mark.slow
def test_kernel_sets_share_the_time_and_not_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    table = timed_table(monkeypatch, (1.0, 25.0), PlantedFault("NONE"))
    fast, slow = (column.models for column in table.columns)
    assert fast > 10 * slow > 0
    assert table.models == fast
    page = "\n".join(map(markdown_section, table_sections(table)))
    assert f"| {fast} |" in page
    assert f"| {slow} |" in page
    assert " tried)" in table_csv(table)


@pytest.mark.slow
def test_no_more_models_are_run_of_what_is_never_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    table = timed_table(monkeypatch, (1.0,), PlantedFault("NEG", failure="crash"))
    ((_, dead),) = table.rows[1].kernels.items()
    assert 3 <= dead.crashed == dead.total < table.rows[1].models
    assert table.columns[0].models == table.rows[0].models + dead.total


class LostArm(ExactArm):
    """Kernels that answer one round, and then end what asks them."""

    def __init__(self, stop: BaseException, rounds: int = 1) -> None:
        super().__init__()
        self.stop, self.rounds = stop, rounds

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Answer as long as it lives."""
        if not self.rounds:
            raise self.stop
        self.rounds -= 1
        return super().run(models)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [KeyboardInterrupt(), InfrastructureError("gone")])
def test_what_ran_is_kept_where_a_kernel_set_is_lost(
    stop: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_table_room, "_ROUND", 25)

    def arms(rounds: int) -> list[TableArm]:
        first = TableArm(column("builtin", "2.1.6"), ExactArm())
        return [first, TableArm(column("builtin", "2.2.0"), LostArm(stop, rounds))]

    table, ended = kernel_table(CELLS, 30, 0, arms(1))
    assert ended is stop
    assert table.columns[1].models == 25
    assert sum(row.models for row in table.rows) == table.models == table.columns[0].models
    with pytest.raises(type(stop)):
        kernel_table(CELLS, 30, 0, arms(0))


def test_a_round_that_is_stopped_while_it_is_judged_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_table_room, "_ROUND", 25)
    kind, calls = kernel_table_room._kind, count()

    def stopped(*arguments: Any) -> Any:
        if next(calls) == 60:  # in the third round that is run
            raise KeyboardInterrupt
        return kind(*arguments)

    monkeypatch.setattr(kernel_table_room, "_kind", stopped)
    arms = [TableArm(column("builtin", version), ExactArm()) for version in ("2.1.6", "2.2.0")]
    table, ended = kernel_table(CELLS, 75, 0, arms)
    assert isinstance(ended, KeyboardInterrupt)
    assert [column.models for column in table.columns] == [25, 25]


@pytest.mark.parametrize("name", ["kernels", "accelerators"])
def test_a_published_table_is_one_of_todays_command(name: str) -> None:
    content = json_value((PUBLISHED / f"{name}.json").read_bytes())
    table = msgspec.convert(content, KernelTable)
    assert (PUBLISHED / f"{name}.csv").read_text(encoding="utf-8") == table_csv(table)
    page = (PUBLISHED / f"{name}.md").read_text(encoding="utf-8")
    assert f"```bash\n{table.command}\n```" in page
    assert all(markdown_section(section) in page for section in table_sections(table))
