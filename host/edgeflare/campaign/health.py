"""The health of the devices over hours: canaries, temperature, and pauses to cool down."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.journal import Journal
from edgeflare.campaign.panel import Evaluated, device_of
from edgeflare.campaign.recall import from_rows, to_row
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Telemetry
from edgeflare.errors import InfrastructureError
from edgeflare.search.outcome import Arm
from edgeflare.search.strategy import Query

if TYPE_CHECKING:
    from edgeflare.campaign.setting import Setting

LOOK_SECONDS = 5.0
"""Between two looks at the thermometer of a device that has a limit. Silicon warms up within
seconds, a board within minutes."""

COOLER_BY_CELSIUS = 5.0
"""Below its limit, before a device goes on; else it would stop again at once."""

COOLING_SECONDS = 1800.0
"""The longest pause. What is too hot for longer does not cool down by waiting."""

_NO_THERMOMETERS = ("PMIC-Die*", "lmh-dcvs*", "vbat*", "ibat*", "soc")
"""Thermal zones that tell a constant, a threshold, or volts, amperes and charge of a battery, as on
Jetsons and on phones of Qualcomm's."""

KEY = "health"
"""Of the journal, for what `health_of` returns."""


class Patient(Protocol):
    """A device, as far as its health is concerned."""

    @property
    def profile(self) -> Profile:
        """Its name and limits."""

    def telemetry(self) -> Telemetry:
        """Ask for its state right now; raises InfrastructureError."""


class Nurse(Protocol):
    """Whoever is to be told."""

    def warned(self, line: str) -> None:
        """See that something is not as it should be."""


@dataclass(slots=True)
class _Vitals:
    """What was seen of one device.

    Attributes:
        temperatures: degrees Celsius by thermal zone, each as first, min, max and last.
        frequencies: the same in MHz by core.
        canaries: how often its canary was asked, and with what result.
        pauses: how often it was left to cool.
        paused_seconds: for how long in all.
        failed: a canary has failed, and none was good since.

    """

    temperatures: dict[str, dict[str, float]] = field(default_factory=dict)
    frequencies: dict[str, dict[str, float]] = field(default_factory=dict)
    canaries: Counter[str] = field(default_factory=Counter)
    pauses: int = 0
    paused_seconds: float = 0.0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class _Canary:
    """A canary under way: the how-manieth of which device, and the seed whose image it is."""

    index: int
    seed_id: int
    n: int


class Health:
    """Watches over the devices of a campaign.

    A *canary* is the first seed of a device that the device answered. It is asked again every so
    many device queries, in the batch that is due anyway; its answer must not change. Since canaries
    change no strategy's answers, they change no finding.
    """

    def __init__(
        self,
        patients: Sequence[Patient],
        journal: Journal,
        nurse: Nurse,
        stopped: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Watch over devices, in their order in the panel.

        Args:
            patients: the devices; with none, nothing is watched.
            journal: where what was seen is noted.
            nurse: is told of pauses and of what looks wrong.
            stopped: whether the user wants to stop; ends a pause.
            clock: seconds that never go back.
            sleep: waits so many seconds.

        """
        self._patients = tuple(patients)
        self._journal = journal
        self._nurse = nurse
        self._stopped = stopped
        self._clock = clock
        self._sleep = sleep
        noted = journal.about().get(KEY, {"devices": [], "warnings": []})
        self._warnings: list[str] = noted["warnings"]
        self._vitals = [_vitals(fields) for fields in noted["devices"]] or [
            _Vitals() for _ in self._patients
        ]
        self._looked = [float("-inf")] * len(self._patients)
        self._asked: Counter[int] = Counter()
        self._references: dict[int, tuple[int, Evaluated]] = {}
        self._under_way: deque[list[_Canary]] = deque()
        self._landed: list[tuple[_Canary, Evaluated]] = []

    # Temperature.

    def look(self) -> None:
        """Note temperatures and frequencies of all devices."""
        for index in range(len(self._patients)):
            self._look(index)

    def breathe(self) -> None:
        """Wait until no device is too hot; called before each batch.

        Raises:
            InfrastructureError: a device does not cool down.

        """
        for index, patient in enumerate(self._patients):
            limit = patient.profile.pause_above_celsius
            if limit is None or self._clock() < self._looked[index] + LOOK_SECONDS:
                continue
            hottest = self._look(index)
            if hottest is None:
                self._warn(
                    f"{patient.profile.name} does not tell its temperature, so that"
                    f" pause_above_celsius = {limit:g} has no effect"
                )
            elif hottest > limit:
                self._cool(index, limit, hottest)

    def _cool(self, index: int, limit: float, hottest: float) -> None:
        name, vitals = self._patients[index].profile.name, self._vitals[index]
        enough, since = limit - COOLER_BY_CELSIUS, self._clock()
        self._nurse.warned(
            f"{name} is at {hottest:.0f} °C ({self._hottest_zone(index)}), above the {limit:g} of"
            f" its profile: waiting until it is at {enough:g}"
        )
        vitals.pauses += 1
        while hottest > enough and not self._stopped():
            if self._clock() - since >= COOLING_SECONDS:
                self._note()
                raise InfrastructureError(
                    f"{name}: still at {hottest:.0f} °C after {COOLING_SECONDS / 60:.0f} minutes of"
                    f" rest, where {enough:g} were expected; cool it, or raise"
                    f" pause_above_celsius in its profile"
                )
            self._sleep(LOOK_SECONDS)
            now = self._look(index)
            if now is None or isnan(now):
                break  # it was lost meanwhile; whoever asks it next notices
            hottest = now
        vitals.paused_seconds += self._clock() - since
        self._note()

    def _look(self, index: int) -> float | None:
        """Note a device's state; return its highest temperature.

        None where it tells none, NaN where it does not answer: that is for whoever asks it next to
        find out, who knows how to get it back.
        """
        self._looked[index] = self._clock()
        try:
            state = self._patients[index].telemetry()
        except InfrastructureError:
            return nan
        vitals = self._vitals[index]
        for seen, readings in (
            (vitals.temperatures, state.temperatures),
            (vitals.frequencies, state.frequencies),
        ):
            for name, value in readings.items():
                _add(seen, name, value)
        self._note()
        return max(
            _watched(self._patients[index].profile, state.temperatures).values(), default=None
        )

    def _hottest_zone(self, index: int) -> str:
        """Return the zone that was hottest when the device was looked at last."""
        last = {name: seen["last"] for name, seen in self._vitals[index].temperatures.items()}
        watched = _watched(self._patients[index].profile, last)
        return max(watched, key=watched.__getitem__)

    # Canaries.

    def begin(self, setting: Setting) -> None:
        """Learn what the canaries answered in the beginning, and where the search stands."""
        if not self._patients:
            return
        rows = [rows[0] for rows in setting.journal.answers("seed").values()]
        answered = from_rows(setting.panel.reading, rows)
        for row, one in zip(rows, answered, strict=True):
            index = self._index(row.seed_id)
            if one.outcome[Arm.DEVICE].failure is None:
                self._references.setdefault(index, (row.seed_id, one))
        for seed_id, asked in setting.journal.device_queries().items():
            self._asked[self._index(seed_id)] += asked
        for seed_id, refinement in setting.journal.refinements().items():
            self._asked[self._index(seed_id)] += refinement.device_queries

    def canaries(
        self, queries: Sequence[Query], seed_ids: Sequence[int], images: NDArray[np.uint8]
    ) -> tuple[list[Query], list[int]]:
        """Return what is to be asked together with a batch: canaries, and their seeds' ids."""
        due = [
            canary
            for index, count in sorted(self._counts(queries, seed_ids).items())
            for canary in self._due(index, count)
        ]
        self._under_way.append(due)
        asked = [Query(images[canary.seed_id], (Arm.DEVICE,)) for canary in due]
        return asked, [canary.seed_id for canary in due]

    def record(self, evaluated: Sequence[Evaluated], setting: Setting) -> None:
        """Write down what the canaries of the oldest batch under way answered."""
        self._landed = list(zip(self._under_way.popleft(), evaluated, strict=True))
        for canary, one in self._landed:
            self._write(canary.n, canary, one, setting)

    def judge(self, setting: Setting) -> None:
        """Hold the answers that were recorded last to the first ones.

        Raises:
            InfrastructureError: one has changed, and stays so.

        """
        for canary, one in self._landed:
            self._judge(canary, one, setting)

    def _counts(self, queries: Iterable[Query], seed_ids: Iterable[int]) -> Mapping[int, int]:
        """Return how many of a batch's queries go to each device that has a canary."""
        if not self._references:
            return {}
        indexes = (
            self._index(seed_id)
            for query, seed_id in zip(queries, seed_ids, strict=True)
            if Arm.DEVICE in query.arms
        )
        return {i: n for i, n in Counter(indexes).items() if i in self._references}

    def _due(self, index: int, count: int) -> list[_Canary]:
        every = self._patients[index].profile.canary_every
        if not every:
            return []
        first = self._asked[index] // every
        self._asked[index] += count
        vitals = self._vitals[index]
        if vitals.failed:  # in the part of the run before this one: is it well now?
            vitals.failed, first = False, max(0, first - 1)
        last = self._asked[index] // every
        seed_id = self._references[index][0]
        return [_Canary(index, seed_id, n) for n in range(first + 1, last + 1)]

    def _judge(self, canary: _Canary, one: Evaluated, setting: Setting) -> None:
        vitals, reference = self._vitals[canary.index], self._references[canary.index][1]
        name = self._patients[canary.index].profile.name
        if self._clock() >= self._looked[canary.index] + LOOK_SECONDS:
            self._look(canary.index)
        if one.raw[Arm.DEVICE] == reference.raw[Arm.DEVICE]:
            vitals.canaries["same"] += 1
        elif _label(one) == _label(reference):
            vitals.canaries["varied"] += 1
            self._warn(
                f"{name} does not repeat its answers to the bit: the label of its canary, seed"
                f" {canary.seed_id}, held, and its outputs varied"
            )
        else:
            vitals.canaries["changed"] += 1
            again = self._ask(canary, setting)
            if _label(again) != _label(reference):
                vitals.failed = True
                line = self._changed(canary, reference, again)
                self._warn(line)
                self._note()
                raise InfrastructureError(line)
            self._warn(
                f"{name} answered its canary, seed {canary.seed_id}, with {_label(one)} instead of"
                f" {_label(reference)} once, and rightly when asked again"
            )
        self._note()

    def _ask(self, canary: _Canary, setting: Setting) -> Evaluated:
        """Ask a canary again, on its own."""
        pipeline = setting.pipeline()
        query = Query(setting.images[canary.seed_id], (Arm.DEVICE,))
        pipeline.put(None, [query], [canary.seed_id])
        (one,) = pipeline.take().evaluated
        self._write(-canary.n, canary, one, setting)
        return one

    def _changed(self, canary: _Canary, reference: Evaluated, now: Evaluated) -> str:
        profile = self._patients[canary.index].profile
        before = (canary.n - 1) * profile.canary_every
        return (
            f"{profile.name}: its answer to seed {canary.seed_id} has changed from"
            f" {_label(reference)} to {_label(now)}, somewhere after {before} device queries: what"
            " it answered since then is not to be trusted; look after the device"
        )

    def _write(self, n: int, canary: _Canary, one: Evaluated, setting: Setting) -> None:
        row = to_row("canary", canary.seed_id, n, setting.images[canary.seed_id], one)
        self._journal.write_answers([row])

    def _index(self, seed_id: int) -> int:
        return device_of(seed_id, len(self._patients))

    # What is kept.

    def _warn(self, line: str) -> None:
        if line not in self._warnings:
            self._warnings.append(line)
            self._nurse.warned(line)
            self._note()

    def _note(self) -> None:
        devices = [
            {
                "temperatures": vitals.temperatures,
                "frequencies": vitals.frequencies,
                "canaries": dict(vitals.canaries),
                "pauses": vitals.pauses,
                "paused_seconds": vitals.paused_seconds,
                "failed": vitals.failed,
            }
            for vitals in self._vitals
        ]
        self._journal.note(KEY, {"devices": devices, "warnings": self._warnings})


def _vitals(fields: Mapping[str, Any]) -> _Vitals:
    return _Vitals(**{**fields, "canaries": Counter(fields["canaries"])})


def _add(seen: dict[str, dict[str, float]], name: str, value: float) -> None:
    known = seen.setdefault(name, {"first": value, "min": value, "max": value, "last": value})
    known.update(min=min(known["min"], value), max=max(known["max"], value), last=value)


def _watched(profile: Profile, temperatures: Mapping[str, float]) -> Mapping[str, float]:
    """Return the temperatures that a profile's limit is about."""
    if profile.thermal_zones:
        return {
            zone: value
            for zone, value in temperatures.items()
            if _like(zone, profile.thermal_zones)
        }
    return {
        zone: value for zone, value in temperatures.items() if not _like(zone, _NO_THERMOMETERS)
    }


def _like(zone: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(zone, pattern) for pattern in patterns)


def _label(one: Evaluated) -> str:
    answer = one.outcome[Arm.DEVICE]
    return answer.failure or f"class {answer.label}"
