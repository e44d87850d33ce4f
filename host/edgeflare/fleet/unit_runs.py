"""The units of a fleet's work, each tried until it is done or no device is left."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeflare.errors import InfrastructureError, UserError
from edgeflare.fleet.cluster.attempt_engine import AttemptEngine, EndedAttempt
from edgeflare.fleet.fleet_file import DevicePlace
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_state import (
    AttemptState,
    FleetState,
    PlaceState,
    UnitState,
)
from edgeflare.fleet.work.folder_archive import NotARunError
from edgeflare.fleet.work.unit_attempt import AttemptOrder, AttemptResult
from edgeflare.fleet.work_units import WorkUnit
from edgeflare.pages.facts import count_of
from edgeflare.record.folder import ClaimedFolder
from edgeflare.untrusted_text import printable

FAILURES = 2
"""Attempts in a row that fail on a device before it gets no further work: one may be the link's."""

LAST_FAILURES = 8
"""Attempts in a row that fail on the last device of its class before it gets no further work, as
long as there are units that have not failed: those that did may be what is wrong."""

MOST_FAILURES = 4
"""Attempts at a unit that fail, on whatever devices, before it is given up: it is the unit."""

MOST_LOSSES = 6
"""Attempts at a unit that are lost before it is given up: it may kill whatever runs it."""

BACKUP_SECONDS = 60.0
"""Interval between backups of a unit's run to the head."""

SILENT_SECONDS = 600.0
"""Time without a report after which an attempt is given up, though its host is there. Attempts
report every few seconds, but for while a large run is packed and sent."""

WAIT_SECONDS = 1.0
_SHOW_SECONDS = 2.0
SHOW_SHARE = 0.05
"""Largest share of the time spent writing the state: with very many units that takes seconds."""

_DONE, _USAGE = (0, 1), 2
"""Exit codes of commands; see docs/exit-codes.md."""


@dataclass(slots=True)
class _UnderWay:
    """An attempt that runs: its unit, its place, what is shown of both, and when it was heard last.

    Nothing is heard as long as it waits for a device of its class, which another command has.
    """

    unit: WorkUnit
    place: DevicePlace
    shown: AttemptState
    of: UnitState
    heard: float | None = None


@dataclass(slots=True)
class UnitRuns:
    """Runs units on the places of a fleet.

    Attributes:
        engine: carries attempts.
        folder: keeps what comes of them.
        state: what people see.
        places: the devices.
        cwd: the folder that commands run in, so that the paths that they name are found.
        outputs: the folders that what comes of the units is put into, claimed, by their paths.
        given: archived run directories, by the word that stands for each in commands.
        stopped: whether the user wants to stop.
        urgent: whether the user wants to stop at once.
        shown: is called after each change of the state.
        goes_on: what the user types to go on once a device is back.

    """

    engine: AttemptEngine
    folder: FleetFolder
    state: FleetState
    places: Sequence[DevicePlace]
    cwd: str
    stopped: Callable[[], bool]
    shown: Callable[[FleetState], None]
    outputs: Mapping[Path, ClaimedFolder] = field(default_factory=dict)
    given: dict[str, bytes] = field(default_factory=dict)
    _waiting: list[WorkUnit] = field(default_factory=list)
    _under_way: dict[str, _UnderWay] = field(default_factory=dict)
    _before: Mapping[str, list[AttemptState]] = field(init=False)
    _failed: Counter[str] = field(default_factory=Counter)
    _lost: Counter[str] = field(default_factory=Counter)
    _going_on: set[str] = field(default_factory=set)
    _refusal: str = ""
    _refusing: set[str] = field(default_factory=set)
    _given_up: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)
    _show_again: float = _SHOW_SECONDS
    urgent: Callable[[], bool] = lambda: False
    goes_on: str = "the same command with --resume"
    _units: dict[str, UnitState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look for attempts of earlier commands, before anything is shown."""
        self._before = self.folder.attempts_before()

    def run(self, units: Sequence[WorkUnit]) -> bool:
        """Run units; return whether all are done, which the user may have stopped before.

        Raises:
            UserError: a command has to be corrected; says what it said.
            InfrastructureError: no device is left that units could run on, or a unit was given up;
                all others are done then.

        """
        known = {place.place: place for place in self.state.places}
        self.state.places = [
            known.get(str(place)) or PlaceState(str(place), place.host) for place in self.places
        ]
        self.announce(units)
        self._waiting += [unit for unit in units if self._units[unit.name].status != "done"]
        asked = False
        while self._waiting or self._under_way:
            if (self.stopped() or self._refusal) and not asked:
                asked = True
                self.engine.stop()
            if asked:
                self._waiting.clear()  # also what was lost meanwhile
            if self.urgent():
                break
            self._begin_attempts()
            ended = self.engine.ended(WAIT_SECONDS)
            self._take_reports()  # the last backup of what was lost among them
            for attempt in ended:
                self._end(attempt)
            for attempt in self._silent():
                self._end(attempt)
            self._show()
        self._show(at_once=True)
        if self._refusal:
            raise UserError(self._refusal)
        if self._given_up and not asked:
            raise InfrastructureError("; ".join(self._given_up))
        return all(self._units[unit.name].status == "done" for unit in units)

    def announce(self, units: Sequence[WorkUnit]) -> None:
        """Show units before they are run, so that people see how many there will be."""
        for unit in units:
            if unit.name in self._units:
                continue
            ids = str(unit.seed_ids or "")
            shown = UnitState(unit.name, unit.device_class, ids, unit.seeds)
            shown.attempts = list(self._before.get(unit.name, ()))
            if (ending := self.folder.ending(unit.name)) is not None:
                shown.status, shown.ended = "done", shown.seeds
                shown.found = ending.found
                self.state.ended_before += shown.seeds
            elif shown.seeds and self.folder.backup(unit.name) is not None:
                self._going_on.add(unit.name)  # what it has by now is told by its first report
            self.state.units.append(shown)
            self._units[unit.name] = shown

    def end(self) -> None:
        """Show that nothing more is done."""
        self.state.ended = True
        for place in self.state.places:
            place.unit = ""
        self._show(at_once=True)

    def _begin_attempts(self) -> None:
        """Begin an attempt on each device that is free, as long as units wait."""
        busy = {running.place for running in self._under_way.values()}
        self.state.drained = self.folder.drained(place.host for place in self.places)
        for place, shown in zip(self.places, self.state.places, strict=True):
            shown.away = not self.engine.is_up(place)
        usable = [place for place, _ in self._usable()]
        for place in usable:
            if place not in busy and (unit := self._next_of({place.device_class})) is not None:
                self._waiting.remove(unit)
                self._begin(unit, place)
        offered = {place.device_class for place in usable}
        if self._waiting and not self._under_way and self._next_of(offered) is None:
            refused = len(self._refusing) == len(self.state.places)
            raise (UserError if refused else InfrastructureError)(
                f"no device of the fleet is left for {count_of(len(self._waiting), 'unit')}:"
                f" {self._why_none()}; once one is back, {self.goes_on} goes on"
            )

    def _usable(self) -> Iterator[tuple[DevicePlace, PlaceState]]:
        """Yield the devices that get work, with what is shown of them."""
        for place, shown in zip(self.places, self.state.places, strict=True):
            if not self.state.why_idle(shown):
                yield place, shown

    def _next_of(self, classes: Container[str]) -> WorkUnit | None:
        return next(
            (work_unit for work_unit in self._waiting if work_unit.device_class in classes), None
        )

    def _begin(self, unit: WorkUnit, place: DevicePlace) -> None:
        shown = self._units[unit.name]
        number = len(shown.attempts) + 1
        attempt = AttemptState(number, place.host, place.device, self._now())
        shown.attempts.append(attempt)
        shown.status = "running"
        self._under_way[unit.name] = _UnderWay(unit, place, attempt, shown)
        self._place(place).unit = unit.name
        order = AttemptOrder(
            campaign=self.state.fingerprint,
            unit=unit.name,
            number=number,
            command=unit.command,
            folder=self.cwd,
            device=place.device,
            backup_seconds=BACKUP_SECONDS if unit.backed_up else math.inf,
        )
        given = {word: run for word, run in self.given.items() if word in unit.command}
        self.engine.start(place, order, given, self.folder.backup(unit.name))

    def _silent(self) -> list[EndedAttempt]:
        """Give up the attempts of which nothing was heard for long, such as a stopped process's."""
        now = time.monotonic()
        silent = [
            name
            for name, running in self._under_way.items()
            if running.heard is not None and now - running.heard > SILENT_SECONDS
        ]
        for name in silent:
            self.engine.give_up(name)
        why = f"nothing was heard of it for {SILENT_SECONDS:.0f} s"
        return [
            EndedAttempt(name, self._under_way[name].shown.number, None, why) for name in silent
        ]

    def _end(self, ended: EndedAttempt) -> None:
        """Note how an attempt ended; one that was given up before is not listened to any more."""
        one = self._under_way.get(ended.unit)
        if one is None or one.shown.number != ended.number:
            return
        del self._under_way[ended.unit]
        shown, place = one.of, self._place(one.place)
        one.shown.seconds = self._now() - one.shown.began_seconds
        place.busy_seconds += one.shown.seconds
        place.unit = ""
        shown.status = "waiting"
        if ended.result is None:
            self._note_loss(one, ended)
        else:
            self._note_result(one, ended, ended.result)

    def _note_loss(self, running: _UnderWay, ended: EndedAttempt) -> None:
        """Have a unit wait again whose attempt was lost, or refused by its host."""
        place = self._place(running.place)
        if ended.refused:
            self._waiting.append(running.unit)
            running.shown.outcome = f"refused ({ended.why})"
            place.quarantine_reason = ended.why
            self._refusing.add(place.place)
            return
        running.shown.outcome = f"lost ({ended.why})"
        self._count_failure(place, f"its host or the process was lost ({ended.why})")
        self._lost[ended.unit] += 1
        if self._lost[ended.unit] >= MOST_LOSSES:
            self._give_up(running, f"was lost {MOST_LOSSES} times", ended.why)
        else:
            self._waiting.append(running.unit)

    def _note_result(self, running: _UnderWay, ended: EndedAttempt, result: AttemptResult) -> None:
        """Keep what an attempt has come to; have its unit wait again where it failed."""
        running.shown.outcome = f"exit code {result.exit_code}"
        self.folder.keep_log(ended.unit, ended.number, result.said)
        try:
            self._keep_result(running, ended, result)
        except NotARunError as error:
            running.shown.outcome = f"sent no run ({printable(str(error))})"
            self._note_failure(running, ended, printable(str(error)))

    def _keep_result(self, running: _UnderWay, ended: EndedAttempt, result: AttemptResult) -> None:
        """Keep the run of an attempt, as that of its unit or as what the next one goes on with.

        Raises:
            NotARunError: it has sent none.

        """
        shown, place = running.of, self._place(running.place)
        if result.exit_code in _DONE and result.run is not None:
            ending = UnitEnding(result.exit_code, result.found, result.printed)
            self.folder.keep_unit(ended.unit, result.run, ending)
            shown.status, shown.ended, shown.found = "done", shown.seeds, result.found
            place.units += 1
            place.failures = 0
            return
        if result.exit_code == _USAGE:
            self._refusal = self._refusal or f"{running.place}: {_last_line(result)}"
            return
        if result.run is not None:
            self.folder.keep_backup(ended.unit, result.run)
        if self.stopped() or self._refusal:
            if result.run is not None:
                self.folder.keep_unit(ended.unit, result.run, None)
            return
        self._note_failure(running, ended, _last_line(result))

    def _note_failure(self, running: _UnderWay, ended: EndedAttempt, why: str) -> None:
        """Have a unit wait again whose attempt failed."""
        self._count_failure(self._place(running.place), why)
        self._failed[ended.unit] += 1
        if self._failed[ended.unit] >= MOST_FAILURES:
            self._give_up(running, f"failed {MOST_FAILURES} times", why)
        else:
            self._waiting.append(
                running.unit
            )  # others first: they may show whether it is the device

    def _give_up(self, running: _UnderWay, how_often: str, why: str) -> None:
        """Try a unit no more; the others go on, and the command says it at its end."""
        running.of.status = "given-up"
        self._given_up.append(
            f"{running.unit.name} {how_often}, at last on {running.place} ({why})"
        )

    def _count_failure(self, place: PlaceState, why: str) -> None:
        place.failures += 1
        if place.failures >= (LAST_FAILURES if self._is_last(place) else FAILURES):
            place.quarantine_reason = why

    def _is_last(self, state: PlaceState) -> bool:
        """Whether no other device could do a unit that has not failed yet."""
        device_class = self.places[self.state.places.index(state)].device_class
        if any(
            of is not state and device_place.device_class == device_class
            for device_place, of in self._usable()
        ):
            return False
        return any(
            work_unit.device_class == device_class
            and not (self._failed[work_unit.name] or self._lost[work_unit.name])
            for work_unit in self._waiting
        )

    def _take_reports(self) -> None:
        for report in self.engine.reports():
            unit = self._units.get(report.unit)
            if unit is None or report.unit not in self._under_way:
                continue
            if unit.attempts[-1].number != report.number:
                continue  # of an attempt that was given up
            one = self._under_way[report.unit]
            one.heard = time.monotonic()
            if unit.name in self._going_on:
                self._going_on.remove(unit.name)
                self.state.ended_before += report.ended
            unit.ended, unit.found = report.ended, report.found
            if report.backup is not None:
                try:
                    self.folder.keep_backup(one.unit.name, report.backup)
                except NotARunError as error:  # it goes on, and its device fails
                    self._count_failure(self._place(one.place), printable(str(error)))

    def _show(self, *, at_once: bool = False) -> None:
        now = self._now()
        if not at_once and now < self._show_again:
            return
        self.state.seconds = now
        for running in self._under_way.values():
            running.shown.seconds = now - running.shown.began_seconds
        self.folder.show(self.state)
        self.shown(self.state)
        ended = self._now()
        self._show_again = max(now + _SHOW_SECONDS, ended + (ended - now) / SHOW_SHARE)

    def _place(self, place: DevicePlace) -> PlaceState:
        return self.state.places[list(self.places).index(place)]

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _why_none(self) -> str:
        why = [
            f"{place.place}: {place.quarantine_reason}"
            for place in self.state.places
            if place.quarantine_reason
        ]
        down = sorted({place.host for place in self.state.places if place.away})
        return "; ".join([*why, *(f"{host} takes no part in the cluster" for host in down)]) or (
            "all hosts are drained (`edgeflare fleet drain RUN HOST --undo` gives one work again)"
        )


def _last_line(result: AttemptResult) -> str:
    lines = [line for line in result.said.splitlines() if line.strip()]
    return lines[-1].removeprefix("edgeflare: ") if lines else f"exit code {result.exit_code}"
