"""Units whose attempts fail, are lost and come back late; a fake stands in for the cluster only."""

from __future__ import annotations

import io
import random
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attempts_in_memory import BegunAttempt, EngineInMemory
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet import unit_runs
from edgeflare.fleet.cluster.attempt_engine import EndedAttempt
from edgeflare.fleet.fleet_file import DevicePlace
from edgeflare.fleet.record.fleet_folder import FleetFolder
from edgeflare.fleet.record.fleet_state import FleetState
from edgeflare.fleet.unit_runs import FAILURES, LAST_FAILURES, MOST_FAILURES, UnitRuns
from edgeflare.fleet.work.unit_attempt import AttemptReport, AttemptResult
from edgeflare.fleet.work_units import WorkUnit, given_run, search_parts
from edgeflare.run.run_directory import DOCUMENT
from edgeflare.run.seed_ids import SeedIds

PLACES = tuple(DevicePlace(f"host{at // 2}", "class", f"device{at}") for at in range(4))


def archive(text: str, name: str = DOCUMENT) -> bytes:
    """Return a run as an archive, told from others by its document alone."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written:
        written.writestr(zipfile.ZipInfo(name), text)
    return data.getvalue()


def ended(code: int, attempt: BegunAttempt, said: str = "") -> AttemptResult:
    order = attempt.order
    return AttemptResult(code, said, archive(f"{order.unit} {order.number}"), 1.0)


def done(attempt: BegunAttempt) -> AttemptResult:
    return ended(0, attempt)


def lost_at_first(attempt: BegunAttempt) -> AttemptResult | str:
    return "NodeDied" if attempt.order.number == 1 else ended(0, attempt)


def units_runs(
    folder: Path, engine: EngineInMemory, stopped: Callable[[], bool] = lambda: False
) -> UnitRuns:
    return UnitRuns(
        engine=engine,
        folder=FleetFolder(folder),
        state=FleetState("c"),
        places=PLACES,
        cwd="/",
        stopped=stopped,
        shown=lambda _: None,
    )


def kept(runs: UnitRuns, unit: str) -> str:
    return (runs.folder.unit(unit) / DOCUMENT).read_text()


def units_of(seeds: int, size: int) -> list[WorkUnit]:
    parts = search_parts(SeedIds.first(seeds), 1, size)
    return [WorkUnit(f"unit-{at:04d}", "class", (), ids) for at, ids in enumerate(parts)]


UNITS = units_of(12, 2)


def test_searches_that_ended_before_the_command_began_are_none_of_its_pace(tmp_path: Path) -> None:
    """Those of a unit that goes on from a backup are told by its first report."""
    FleetFolder(tmp_path).keep_backup(UNITS[1].name, archive("half of it"))

    def told(begun: Sequence[BegunAttempt]) -> list[AttemptReport]:
        return [AttemptReport(one.order.unit, one.order.number, 1, 0, 1.0) for one in begun]

    runs = units_runs(tmp_path, EngineInMemory(done, told=told))
    assert runs.run(UNITS)
    assert runs.state.ended_before == 1
    runs.state.seconds = 3600.0
    assert runs.state.hourly == 11.0


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.integers(0, 70))
def test_every_unit_is_done_exactly_once_whatever_is_lost(rng: random.Random, bad: int) -> None:
    done: list[str] = []
    in_row: dict[DevicePlace, int] = {}
    failed: Counter[str] = Counter()

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        failing = rng.randrange(100) < bad and in_row.get(attempt.place, 0) < FAILURES - 1
        in_row[attempt.place] = in_row.get(attempt.place, 0) + 1 if failing else 0
        if failing:
            # The unit's own command does not fail so often that the fleet gives up.
            lost = rng.randrange(2) or failed[attempt.order.unit] == MOST_FAILURES - 1
            failed[attempt.order.unit] += not lost
            return "WorkerCrashed" if lost else ended(3, attempt, "edgeflare: the device is lost")
        done.append(attempt.order.unit)
        return ended(rng.choice([0, 1]), attempt)

    def told(begun: Sequence[BegunAttempt]) -> list[AttemptReport]:
        """Reports of any attempt ever made, also of those that were given up long ago."""
        some = rng.sample(list(begun), rng.randint(0, min(3, len(begun))))
        return [
            AttemptReport(one.order.unit, one.order.number, 2, 1, 1.0, backup_of(one))
            for one in some
        ]

    def backup_of(one: BegunAttempt) -> bytes:
        return archive(f"backup {one.order.unit} {one.order.number}")

    with TemporaryDirectory() as folder:
        engine = EngineInMemory(outcome, told=told)
        runs = units_runs(Path(folder), engine)
        assert runs.run(UNITS)
        assert sorted(done) == [unit.name for unit in UNITS]
        for unit in UNITS:
            numbers = [one.order.number for one in engine.begun if one.order.unit == unit.name]
            assert numbers == list(range(1, len(numbers) + 1))
            assert kept(runs, unit.name) == f"{unit.name} {numbers[-1]}"
            assert runs.folder.ending(unit.name) is not None
            assert runs.folder.backup(unit.name) is None
        # What an attempt goes on with is of the attempts before it, at the same unit.
        for one in engine.begun:
            if one.backup is not None:
                (text,) = [zipfile.ZipFile(io.BytesIO(one.backup)).read(DOCUMENT).decode()]
                *_, name, number = text.split()
                assert name == one.order.unit
                assert int(number) < one.order.number
        assert engine.most_at_once <= len(PLACES)
        assert all(unit.status == "done" for unit in runs.state.units)


def test_an_attempt_that_was_given_up_changes_nothing(tmp_path: Path) -> None:
    def told(begun: Sequence[BegunAttempt]) -> list[AttemptReport]:
        if begun[-1].order.number < 2:
            return []
        return [AttemptReport("unit-0000", 1, 99, 99, 1.0, archive("of the lost one"))]

    engine = EngineInMemory(lost_at_first, told=told)
    runs = units_runs(tmp_path, engine)
    assert runs.run(UNITS[:1])

    assert engine.begun[1].backup is None
    assert runs.state.unit("unit-0000").found == 0
    assert kept(runs, "unit-0000") == "unit-0000 2"
    assert runs.folder.backup("unit-0000") is None


def test_the_last_backup_of_an_attempt_that_is_lost_is_gone_on_with(tmp_path: Path) -> None:
    def told(begun: Sequence[BegunAttempt]) -> list[AttemptReport]:
        return [AttemptReport("unit-0000", 1, 1, 1, 1.0, archive("last")) for _ in begun[:1]]

    engine = EngineInMemory(lost_at_first, told=told)
    assert units_runs(tmp_path, engine).run(UNITS[:1])
    assert engine.begun[1].backup == archive("last")


def test_a_device_that_fails_twice_in_a_row_gets_nothing_new(tmp_path: Path) -> None:
    broken = PLACES[1]

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        if attempt.place == broken:
            return ended(3, attempt, "something\nedgeflare: the device does not answer\n")
        return ended(0, attempt)

    engine = EngineInMemory(outcome)
    runs = units_runs(tmp_path, engine)
    assert runs.run(UNITS)
    assert [one.place for one in engine.begun].count(broken) == FAILURES
    assert [one.quarantine_reason for one in runs.state.places] == [
        *("", "the device does not answer", "", "")
    ]


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        (0, archive("evil", "../outside.json")),
        (0, archive("evil", "hello.txt")),
        (0, b"no archive"),
        (3, b"no archive"),
    ],
    ids=["a name that leads out", "another file", "no zip", "failed too"],
)
def test_a_device_that_sends_no_runs_gets_nothing_new_and_nothing_goes_on_with_them(
    tmp_path: Path, code: int, sent: bytes
) -> None:
    hostile = PLACES[1]

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        if attempt.place == hostile:
            return AttemptResult(code, "", sent, 1.0)
        return AttemptResult(0, "", archive("good"), 1.0)

    engine = EngineInMemory(outcome)
    runs = units_runs(tmp_path / "out.fleet", engine)
    assert runs.run(UNITS)
    assert [one.place for one in engine.begun].count(hostile) == FAILURES
    assert all(one.backup is None for one in engine.begun)
    assert [bool(one.quarantine_reason) for one in runs.state.places] == [False, True, False, False]
    assert code or "an archived run" in runs.state.places[1].quarantine_reason
    assert {kept(runs, unit.name) for unit in UNITS} == {"good"}
    assert [one.name for one in tmp_path.iterdir()] == ["out.fleet"]
    assert not list(tmp_path.rglob("outside.json"))


def test_a_backup_that_is_no_run_is_its_sender_s_failure(tmp_path: Path) -> None:
    def told(begun: Sequence[BegunAttempt]) -> list[AttemptReport]:
        """The first attempt sends one at each look."""
        return [AttemptReport(begun[0].order.unit, 1, 1, 0, 1.0, b"no archive")] if begun else []

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        first = attempt.order.unit == UNITS[0].name and attempt.order.number == 1
        return "lost" if first else ended(0, attempt)

    engine = EngineInMemory(outcome, told=told)
    runs = units_runs(tmp_path, engine)
    assert runs.run(UNITS)
    assert all(one.backup is None for one in engine.begun)
    assert runs.state.places[0].failures
    assert not any(one.failures for one in runs.state.places[1:])


@pytest.mark.parametrize("code", [3, 130])
def test_ctrl_c_ends_it_though_what_is_sent_is_no_run(code: int, tmp_path: Path) -> None:
    engine = EngineInMemory(lambda _: AttemptResult(code, "", b"no archive", 1.0))
    runs = units_runs(tmp_path, engine, lambda: bool(engine.begun))
    assert not runs.run(UNITS)
    assert not runs.folder.unit("unit-0000").exists()


def test_failures_that_are_not_in_a_row_are_forgiven(tmp_path: Path) -> None:
    many = units_of(40, 1)
    count: dict[DevicePlace, int] = {}

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        at = count[attempt.place] = count.get(attempt.place, 0) + 1
        return "lost" if at % 2 else ended(0, attempt)

    runs = units_runs(tmp_path, EngineInMemory(outcome))
    assert runs.run(many)
    assert not any(one.quarantine_reason for one in runs.state.places)


def test_a_drained_host_gets_nothing_new(tmp_path: Path) -> None:
    engine = EngineInMemory(done)
    runs = units_runs(tmp_path, engine)
    runs.folder.drain("host0")
    assert runs.run(UNITS)
    assert {one.place.host for one in engine.begun} == {"host1"}
    assert runs.state.drained == ["host0"]
    runs.folder.drain("host1")
    with pytest.raises(InfrastructureError, match="all hosts are drained"):
        runs.run([WorkUnit("another", "class", ())])


def test_a_host_that_is_down_is_skipped_and_used_once_it_is_back(tmp_path: Path) -> None:
    engine = EngineInMemory(done)
    engine.up = lambda host: host == "host0" or len(engine.begun) >= 4
    assert units_runs(tmp_path, engine).run(units_of(10, 1))
    assert {one.place.host for one in engine.begun[:4]} == {"host0"}
    assert "host1" in {one.place.host for one in engine.begun[4:]}


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        (EngineInMemory(lambda _: "", up=lambda _: False), "host0 takes no part in the cluster"),
        (EngineInMemory(lambda one: ended(3, one, "edgeflare: gone")), "device0 on host0: gone"),
    ],
)
def test_without_a_place_it_ends_with_the_reason(
    tmp_path: Path, engine: EngineInMemory, why: str
) -> None:
    with pytest.raises(InfrastructureError, match="no device of the fleet is left") as caught:
        units_runs(tmp_path, engine).run(UNITS)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ctrl_c_keeps_units_that_are_stopped_and_begins_nothing(tmp_path: Path) -> None:
    engine = EngineInMemory(lambda _: "")

    def outcome(attempt: BegunAttempt) -> AttemptResult | str:
        return "lost" if attempt.order.unit == "unit-0001" else ended(130, attempt)

    engine.outcome = outcome
    runs = units_runs(tmp_path, engine, lambda: len(engine.begun) == len(PLACES))
    assert not runs.run(UNITS)

    assert engine.stopped
    assert len(engine.begun) == len(PLACES)
    stopped = runs.folder.unit("unit-0000")
    assert (stopped / DOCUMENT).is_file()
    assert runs.folder.ending("unit-0000") is None
    assert runs.folder.backup("unit-0000") is not None
    assert not runs.folder.unit("unit-0001").exists()


def test_a_command_that_has_to_be_corrected_ends_all(tmp_path: Path) -> None:
    def outcome(attempt: BegunAttempt) -> AttemptResult:
        if attempt.order.unit == "unit-0000":
            return ended(2, attempt, "noise\nedgeflare: no such operator\n")
        return ended(130 if engine.stopped else 0, attempt)

    engine = EngineInMemory(outcome)
    runs = units_runs(tmp_path, engine)
    with pytest.raises(UserError, match=r"^device0 on host0: no such operator$"):
        runs.run(UNITS)
    assert engine.stopped
    assert len(engine.begun) == len(PLACES)
    assert all(runs.folder.unit(unit.name).is_dir() for unit in UNITS[1:4])


def test_resume_skips_what_is_done_and_counts_attempts_on(tmp_path: Path) -> None:
    failing = EngineInMemory(
        lambda one: done(one) if one.order.unit < "unit-0002" else ended(3, one, "gone")
    )
    before = units_runs(tmp_path, failing)
    with pytest.raises(InfrastructureError):
        before.run(UNITS)
    before.end()
    made = {unit.name: sum(one.order.unit == unit.name for one in failing.begun) for unit in UNITS}

    engine = EngineInMemory(done)
    runs = units_runs(tmp_path, engine)
    assert runs.run(UNITS)
    assert {one.order.unit for one in engine.begun} == {unit.name for unit in UNITS[2:]}
    for one in engine.begun:
        assert one.order.number == made[one.order.unit] + 1
        assert (one.backup is not None) == (made[one.order.unit] > 0)
    assert all(unit.status == "done" for unit in runs.state.units)
    assert kept(runs, "unit-0000") == "unit-0000 1"


def test_units_run_on_devices_of_their_class(tmp_path: Path) -> None:
    others = tuple(DevicePlace("host2", "other", f"other{at}") for at in range(2))
    engine = EngineInMemory(done)
    runs = units_runs(tmp_path / "some", engine)
    runs.places = (*PLACES, *others)
    assert runs.run([*UNITS, WorkUnit("odd", "other", ())])
    classes = {one.order.unit: one.place.device_class for one in engine.begun}
    assert classes == {"odd": "other", **{unit.name: "class" for unit in UNITS}}

    none = units_runs(tmp_path / "none", engine)
    with pytest.raises(InfrastructureError, match="left for 1 unit:"):
        none.run([WorkUnit("odd", "other", ()), *UNITS])
    assert all(unit.status == "done" for unit in none.state.units[1:])


def test_only_what_a_command_takes_is_given_to_it(tmp_path: Path) -> None:
    given = given_run("screening")
    engine = EngineInMemory(done)
    runs = units_runs(tmp_path, engine)
    runs.given[given] = b"archived"
    assert runs.run([*UNITS, WorkUnit("taking", "class", ("--screening", given))])
    taken = {one.order.unit: dict(one.given) for one in engine.begun if one.given}
    assert taken == {"taking": {given: b"archived"}}


def test_an_attempt_that_is_silent_for_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_runs, "SILENT_SECONDS", 0.05)

    first = [AttemptReport("unit-0000", 1, 0, 0, 0.0)]

    def told(begun: Sequence[BegunAttempt]) -> list[AttemptReport]:
        return [first.pop()] if first and begun else []

    engine = EngineInMemory(done, told=told)
    late: list[EndedAttempt] = []

    def at_last(seconds: float) -> Sequence[EndedAttempt]:
        """The first attempt ends only once another one has begun."""
        time.sleep(0.06)
        if engine.begun[-1].order.number == 1:
            return ()
        first, second = engine.begun[0], engine.begun[-1]
        late.append(EndedAttempt(first.order.unit, 1, ended(0, first)))
        return (late[-1], EndedAttempt(second.order.unit, 2, ended(0, second)))

    monkeypatch.setattr(engine, "ended", at_last)
    engine.running = _Unheeded()
    runs = units_runs(tmp_path, engine)
    assert runs.run(UNITS[:1])
    assert engine.given_up == ["unit-0000"]
    assert kept(runs, "unit-0000") == "unit-0000 2"
    assert "nothing was heard" in runs.state.unit("unit-0000").attempts[0].outcome


class _Unheeded(list[BegunAttempt]):
    """Forgets what runs: an attempt that was given up may run beside the next one."""

    def append(self, one: BegunAttempt) -> None:
        del one


def test_a_host_that_refuses_gets_nothing_new(tmp_path: Path) -> None:
    def refused(one: BegunAttempt) -> EndedAttempt:
        return EndedAttempt(one.order.unit, one.order.number, None, "no such folder", refused=True)

    engine = EngineInMemory(lambda one: refused(one) if one.place == PLACES[0] else ended(0, one))
    runs = units_runs(tmp_path, engine)
    assert runs.run(UNITS)
    assert [one.place for one in engine.begun].count(PLACES[0]) == 1
    assert runs.state.places[0].quarantine_reason == "no such folder"

    none = units_runs(tmp_path / "none", EngineInMemory(refused))
    with pytest.raises(UserError, match="no such folder"):
        none.run(UNITS)


@pytest.mark.parametrize(
    ("places", "drained", "bad"),
    [(PLACES, "", 8), (PLACES[:1], "", 5), ((PLACES[0], PLACES[-1]), PLACES[-1].host, 2)],
    ids=["four", "one", "one that is not drained"],
)
def test_many_units_that_nothing_can_do_leave_a_device_for_the_others(
    places: tuple[DevicePlace, ...], drained: str, bad: int, tmp_path: Path
) -> None:
    refused = {f"unit-{at:04d}" for at in range(bad)}
    engine = EngineInMemory(lambda one: ended(3 if one.order.unit in refused else 0, one, "bad"))
    runs = units_runs(tmp_path, engine)
    runs.places = places
    if drained:
        runs.folder.drain(drained)
    with pytest.raises(InfrastructureError):
        runs.run(units_of(60, 1))
    assert Counter(unit.status for unit in runs.state.units)["done"] == 60 - bad


def test_a_device_that_does_nothing_is_quarantined_though_it_is_the_last(tmp_path: Path) -> None:
    engine = EngineInMemory(lambda one: ended(3, one, "edgeflare: unplugged"))
    runs = units_runs(tmp_path, engine)
    runs.places = PLACES[:1]
    with pytest.raises(InfrastructureError, match="unplugged"):
        runs.run(units_of(60, 1))
    assert len(engine.begun) == LAST_FAILURES


def test_units_are_shown_before_they_are_run_and_their_attempts_counted_on(tmp_path: Path) -> None:
    later = units_of(4, 2)
    first = WorkUnit("screening-0000", "class", ())

    def begun() -> UnitRuns:
        runs = units_runs(tmp_path, EngineInMemory(done))
        runs.announce([first, *later])
        return runs

    runs = begun()
    assert runs.run([first])
    assert [unit.status for unit in runs.state.units] == ["done", "waiting", "waiting"]
    runs.folder.show(runs.state)
    assert runs.run(later[:1])
    again = begun()
    assert again.run([first])
    last = begun()
    assert last.run(later)
    assert [len(unit.attempts) for unit in last.state.units] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("lost", [True, False])
def test_a_unit_that_nothing_can_do_is_given_up_and_the_others_are_done(
    lost: bool, tmp_path: Path
) -> None:
    def outcome(one: BegunAttempt) -> AttemptResult | str:
        if one.order.unit != "unit-0000":
            return ended(0, one)
        return "killed" if lost else ended(3, one, "edgeflare: it has run out of memory\n")

    runs = units_runs(tmp_path, EngineInMemory(outcome))
    with pytest.raises(InfrastructureError, match=r"unit-0000 (was lost 6|failed 4) times") as said:
        runs.run(units_of(80, 1))
    assert "killed" in str(said.value) if lost else "out of memory" in str(said.value)
    assert Counter(unit.status for unit in runs.state.units) == {"done": 79, "given-up": 1}
    assert "1 given up" in runs.state.summary()
