"""What a fleet is asked, and the state of its work: units, attempts at them, and devices."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec

import edgeflare_protos
from edgeflare.record.json_types import Amount, Count, CountFromOne, Number, plain_json
from edgeflare.record.request import DERIVED, Option, require_same_request
from edgeflare.run.plan import Plan


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """What decides what the units of a fleet do.

    Attributes:
        classes: the classes of devices that units run on.
        command: the words of the command; of a search its name alone, since its plan has the rest.
        files: digests of the pairs, models and runs that it reads.
        plan: what is searched; None of other commands.
        version: the version of EdgeFlare, which all hosts have.
        cwd: the folder that the command was typed in, where relative paths begin.

    """

    classes: Annotated[tuple[str, ...], Option("--device", ", ".join)]
    command: Annotated[tuple[str, ...], Option("the words", " ".join)]
    files: Annotated[tuple[str, ...], Option("the files", " ".join)] = ()
    plan: Annotated[Plan | None, DERIVED] = None
    version: Annotated[str, Option("edgeflare")] = edgeflare_protos.__version__
    cwd: Annotated[str, Option("the folder")] = field(default_factory=os.getcwd)

    @property
    def campaign(self) -> str:
        """A digest of all that, by which hosts know the work."""
        told = json.dumps(plain_json(self), sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def require_goes_on_with(self, begun: FleetRequest, folder: Path) -> None:
        """Refuse to go on with what was asked for otherwise.

        Args:
            begun: what the command was asked that began the folder.
            folder: the folder, for the message.

        """
        require_same_request(begun, self, folder)
        if begun.plan is not None and self.plan is not None:
            require_same_request(begun.plan, self.plan, folder)


_NO_FAILURES = ("", "exit code 0", "exit code 1", "exit code 130")
"""Outcomes of attempts that run, are done or were stopped."""

UnitStatus = Literal["waiting", "running", "done", "given-up"]


class AttemptState(msgspec.Struct):
    """An attempt at a unit.

    Attributes:
        number: the attempt's number, from 1.
        host: name of the host that it runs on, or ran.
        device: name of the device that it runs on, or ran.
        began_seconds: seconds since the fleet began.
        seconds: time that it took, or takes until now.
        outcome: how it ended; empty while it runs.

    """

    number: CountFromOne
    host: str
    device: str
    began_seconds: Number
    seconds: Amount = 0.0
    outcome: str = ""


class UnitState(msgspec.Struct):
    """A unit of work.

    Attributes:
        name: name of the unit.
        device_class: class of the device on which it is done.
        seed_ids: ids of its seeds, as `--seed-ids` takes them.
        seeds: number of its seeds.
        status: whether it waits, runs, is done or is tried no more.
        ended: searches that have ended.
        found: searches that have ended with a finding.
        attempts: attempts at the unit, in their order.

    """

    name: str
    device_class: str
    seed_ids: str
    seeds: Count
    status: UnitStatus = "waiting"
    ended: Count = 0
    found: Count = 0
    attempts: list[AttemptState] = msgspec.field(default_factory=list)


class PlaceState(msgspec.Struct):
    """A device of the fleet, or one that an emulation starts.

    Attributes:
        place: what people call it.
        host: name of its host.
        unit: what it works on; empty for nothing.
        units: units that it has done.
        busy_seconds: time that it spent working.
        failures: attempts in a row that its host could not do with it.
        quarantine_reason: why it gets no further work; empty while it does.
        away: whether its host takes no part in the cluster right now.

    """

    place: str
    host: str
    unit: str = ""
    units: Count = 0
    busy_seconds: Amount = 0.0
    failures: Count = 0
    quarantine_reason: str = ""
    away: bool = False


class FleetState(msgspec.Struct, tag_field="schema", tag="edgeflare.fleet/v1"):
    """The work of a fleet: `fleet.json`, schema `edgeflare.fleet/v1`.

    Attributes:
        fingerprint: the fingerprint of what is done.
        seconds: time since the command began.
        units: units in the order of their seeds.
        places: devices in the order of the fleet's file.
        drained: hosts that get no further work, as somebody asked.
        ended: whether the command has ended.
        ended_before: searches that had ended when it began.

    """

    fingerprint: str
    seconds: Amount = 0.0
    units: list[UnitState] = msgspec.field(default_factory=list)
    places: list[PlaceState] = msgspec.field(default_factory=list)
    drained: list[str] = msgspec.field(default_factory=list)
    ended: bool = False
    ended_before: Count = 0

    @property
    def hourly(self) -> float:
        """Searches that end in an hour, of those of this command."""
        ended = sum(unit.ended for unit in self.searched) - self.ended_before
        # Fewer than before they are where what was kept of a unit is damaged, and it is begun anew.
        return max(0, ended) / self.seconds * 3600 if self.seconds else 0.0

    def summary(self) -> str:
        """Return how far it is, in a line."""
        done = sum(unit.status == "done" for unit in self.units)
        units = f"{done} of {len(self.units)} units done"
        outcomes = [attempt.outcome for unit in self.units for attempt in unit.attempts]
        if again := sum(outcome not in _NO_FAILURES for outcome in outcomes):
            units += f", {again} attempts lost or failed"
        if given_up := sum(unit.status == "given-up" for unit in self.units):
            units += f", {given_up} given up"
        if not self.searched:
            return units
        ended, found, seeds = (
            sum(getattr(unit, what) for unit in self.searched)
            for what in ("ended", "found", "seeds")
        )
        searched = f"{ended:,} of {seeds:,} seeds searched, {found:,} findings"
        return f"{units}, {searched}, {self.hourly:,.0f} seeds per hour"

    @property
    def searched(self) -> list[UnitState]:
        """The units that search; others only evaluate."""
        return [unit for unit in self.units if unit.seeds]

    def busy_share(self, place: PlaceState) -> float:
        """Return the share of the time for which a device has worked, until now."""
        seconds = place.busy_seconds
        if place.unit:
            seconds += self.unit(place.unit).attempts[-1].seconds
        return seconds / self.seconds if self.seconds else 0.0

    def why_idle(self, place: PlaceState) -> str:
        """Return why a device gets no further work; empty while it does."""
        if place.quarantine_reason:
            return place.quarantine_reason
        if place.host in self.drained:
            return "drained"
        return "its host takes no part in the cluster" if place.away else ""

    def unit(self, name: str) -> UnitState:
        """Return the unit of that name."""
        return next(unit for unit in self.units if unit.name == name)
