"""A fleet of devices without devices: events by their times, for `benchmarks/fleet_simulation.py`.

The head is one thread that makes passes, as `UnitRuns` does: it begins attempts on all free places,
takes the results that are there, and reads what the collector has of reports. Reports and backups
are flows, whose delays follow from mean-value analysis of one server and many attempts that ask it
now and then. Attempts, losses and results are events. What a step takes was measured. First all
devices evaluate their part of the seeds, as `screening_parts` says, then the head merges that, and
then they search.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from edgeflare.fleet.work_units import screening_parts
from edgeflare.run.merge.merge_runs import GROUP
from edgeflare.run.seed_ids import SeedIds

PATIENCE_SECONDS = 60.0
"""For which a session tries to have a lost device back before its command gives up."""

FINDINGS_A_MINUTE = 1.0
"""Of device time: 700 queries at 85 ms, as a network for pictures of cameras takes on a phone."""

FINDING_BYTES = 3.0e5
"""Of the three pictures of a finding, of 224 × 224 pixels."""


@dataclass(frozen=True, slots=True)
class ServiceTimes:
    """What the steps of a fleet's work take, in seconds, as measured on 2 cores, x86-64.

    Attributes:
        look: a pass that has nothing to begin; for each place.
        look_host: the same, for each place and each host, among which its own is looked for.
        nodes: asking Ray for its nodes; for each node.
        node_fixed: the same, whatever their number.
        begin: beginning an attempt in the head's thread, without what the collector takes.
        find_place: finding the device of an attempt, as it begins and ends; for each place.
        visit_unit: telling the collector of attempts, as each begins and in each pass; for each
            that is under way.
        wait: one look at whether an attempt has ended.
        keep: keeping the result of an attempt; without its findings.
        keep_finding: unpacking the files of one finding of a result, without their bytes.
        unpack_byte: unpacking one byte of them.
        take: a report, in the head's thread.
        keep_byte: writing one byte of a backup.
        collector: a report, at the collector.
        show: writing the state, for each unit.
        start: from the head to a running command, and until its search begins.
        start_seed: the same, for each seed of the screening.
        finish: from the last answer of the device to an archived run.
        merge_finding: of the merge at the end.
        merge_seed: of the merge of the screening.
        merge_part: of both merges, for each run that is merged.
        merge_pair: the same, for each pair of a group, whose names are compared.
        merge_part_seed: the same, for each run and each seed of all, whose labels each run has.

    """

    look: float = 5.0e-7
    look_host: float = 2.5e-8
    nodes: float = 5.5e-5
    node_fixed: float = 3.4e-4
    begin: float = 4.0e-3
    find_place: float = 3.5e-7
    visit_unit: float = 9.0e-7
    wait: float = 2.5e-6
    keep: float = 1.5e-3
    keep_finding: float = 1.9e-3
    unpack_byte: float = 3.6e-9
    take: float = 7.0e-5
    keep_byte: float = 4.0e-10
    collector: float = 1.0e-3
    show: float = 3.0e-5
    start: float = 4.0
    start_seed: float = 6.5e-5
    finish: float = 0.5
    merge_finding: float = 3.8e-3
    merge_seed: float = 1.1e-4
    merge_part: float = 4.5e-3
    merge_pair: float = 2.2e-6
    merge_part_seed: float = 2.6e-7


@dataclass(frozen=True, slots=True)
class FleetScenario:
    """What a fleet is, and what it has to do.

    Attributes:
        devices: how many.
        unit_seconds: of device time that a unit takes in the mean.
        units_of_a_device: units for each device.
        host_devices: devices of a host.
        findings_a_minute: of device time; each is from a seed of its own.
        finding_bytes: that a finding has in an archive.
        screening_seconds: of device time, to evaluate one seed.
        link_bytes: that the head's link carries in a second.
        device_hours: between two failures of a device, in the mean; 0 for none.
        device_away: seconds for which a device that failed is away.
        host_hours: between two losses of a host, in the mean; 0 for none.
        host_away: seconds for which a lost host is away.
        host_silence: seconds after which the head takes a host for lost.
        report_seconds: between two reports of an attempt.
        backup_seconds: between two backups of an attempt.
        wait_seconds: for which a pass waits for results.
        show_seconds: between two times that the state is written.
        show_share: of the head's time that writing the state may take.
        nodes_seconds: between two times that the nodes are asked for.
        seed: of all that is drawn.

    """

    devices: int
    unit_seconds: float = 300.0
    units_of_a_device: int = 24
    host_devices: int = 10
    findings_a_minute: float = FINDINGS_A_MINUTE
    finding_bytes: float = FINDING_BYTES
    screening_seconds: float = 0.085
    link_bytes: float = 1.25e8
    device_hours: float = 24.0
    device_away: float = 90.0
    host_hours: float = 72.0
    host_away: float = 300.0
    host_silence: float = 25.0
    report_seconds: float = 5.0
    backup_seconds: float = 60.0
    wait_seconds: float = 0.5
    show_seconds: float = 2.0
    show_share: float = 0.05
    nodes_seconds: float = 1.0
    seed: int = 0

    @property
    def findings(self) -> float:
        """How many the merged run has, in the mean."""
        minutes = self.devices * self.units_of_a_device * self.unit_seconds / 60
        return minutes * self.findings_a_minute


@dataclass(frozen=True, slots=True)
class FleetFigures:
    """What came of it.

    Attributes:
        screening: seconds in which the seeds were evaluated, and that was merged.
        screening_merge: of these, in which it was merged.
        seconds: from the first attempt of the search to its last result.
        busy: share of the device time of these seconds in which devices did what was kept.
        busy_in_all: the same of all seconds, with the screening.
        repeated: device seconds of work that was lost and made again.
        head: share of all seconds in which the head's thread worked.
        collector: share of them in which the collector took reports.
        link: share of what the head's link carries that backups and results ask for.
        merge: seconds of the merge behind it.
        lost: attempts that were lost or failed.
        quarantined: devices that got no further work.
        done: units that were done.

    """

    screening: float
    screening_merge: float
    seconds: float
    busy: float
    busy_in_all: float
    repeated: float
    head: float
    collector: float
    link: float
    merge: float
    lost: int
    quarantined: int
    done: int


class SharedServer:
    """A server that attempts ask, each again some seconds after its last answer."""

    def __init__(self, most: int, think: float, service: float) -> None:
        """Compute its delays for up to so many attempts, by mean-value analysis."""
        self._think, self._service = think, service
        self.delays = [service]
        queue = 0.0
        for asking in range(1, most + 1):
            delay = service * (1.0 + queue)
            queue = asking * delay / (think + delay)
            self.delays.append(delay)

    def rate(self, asking: int) -> float:
        """Return how many it answers in a second."""
        return asking / (self._think + self.delays[asking])

    def share(self, asking: int) -> float:
        """Return the share of its time in which it works."""
        return self.rate(asking) * self._service


@dataclass(slots=True)
class SimulatedUnit:
    """A unit.

    Attributes:
        seconds: it takes a device.
        left: of these, by its last backup.

    """

    seconds: float
    left: float


@dataclass(slots=True)
class SimulatedAttempt:
    """An attempt: what is left of its unit from the moment on at which its device searches.

    It is over once its end is known to the head, or its host was lost, even if that is back soon.
    """

    unit: SimulatedUnit
    begun: float
    searching: float
    left: float
    over: bool = False

    def left_at(self, now: float) -> float:
        """Return how much is left at a moment since the device searches."""
        return self.left - min(self.left, max(0.0, now - self.searching))


@dataclass(slots=True)
class SimulatedDevice:
    """A device.

    Attributes:
        attempt: what it works at; None for nothing.
        away: until when it is away.
        failures: attempts in a row that failed.
        quarantined: whether it gets no further work.

    """

    attempt: SimulatedAttempt | None = None
    away: float = 0.0
    failures: int = 0
    quarantined: bool = False


@dataclass(slots=True)
class SimulatedFleet:
    """A fleet that works until all units are done.

    Attributes:
        scenario: what it is.
        times: what its steps take.

    """

    scenario: FleetScenario
    times: ServiceTimes
    now: float = 0.0
    _work: float = 0.0
    _repeated: float = 0.0
    _collector_work: float = 0.0
    _link_bytes: float = 0.0
    _link_free: float = 0.0
    _lost: int = 0
    _done: int = 0
    _under_way: int = 0
    _at_work: int = 0
    _reported: float = 0.0
    _nodes_asked: float = -1e9
    _show_again: float = 0.0
    _searching: bool = False
    _shown: int = 0
    _order: count[int] = field(default_factory=count)
    _events: list[tuple[float, int, str, int, SimulatedAttempt | None]] = field(
        default_factory=list
    )
    _ended: deque[tuple[int, bool]] = field(default_factory=deque)
    _free: list[int] = field(default_factory=list)
    _parked: dict[int, list[int]] = field(default_factory=dict)
    _dead: set[int] = field(default_factory=set)
    _seen_dead: set[int] = field(default_factory=set)
    _devices: list[SimulatedDevice] = field(default_factory=list)
    _waiting: deque[SimulatedUnit] = field(default_factory=deque)
    _rng: random.Random = field(default_factory=random.Random)
    _collector: SharedServer = field(default_factory=lambda: SharedServer(0, 1.0, 1.0))

    def run(self) -> FleetFigures:
        """Work until all is done; return what it took.

        Raises:
            RuntimeError: all devices are quarantined.

        """
        asked, times = self.scenario, self.times
        self._prepare()
        parts = screening_parts(SeedIds.first(round(asked.findings)), asked.devices)
        screened = self._work_through([len(part) * asked.screening_seconds for part in parts])
        merge = asked.findings * times.merge_seed * self._merges(len(parts))
        merge += self._merge_seconds(len(parts))
        merge = merge if len(parts) > 1 else 0.0
        self._spend(merge)
        screening = self._reported = self.now
        self._searching = True
        count = asked.devices * asked.units_of_a_device
        drawn = [asked.unit_seconds * self._rng.uniform(0.8, 1.2) for _ in range(count)]
        useful = self._work_through(drawn)
        searched = self.now - screening
        return FleetFigures(
            screening=screening,
            screening_merge=merge,
            seconds=searched,
            busy=useful / (asked.devices * searched),
            busy_in_all=(useful + screened) / (asked.devices * self.now),
            repeated=self._repeated,
            head=self._work / self.now,
            collector=self._collector_work / self.now,
            link=self._link_bytes / (asked.link_bytes * self.now),
            merge=asked.findings * times.merge_finding * self._merges(len(parts) + count)
            + self._merge_seconds(len(parts) + count),
            lost=self._lost,
            quarantined=sum(one.quarantined for one in self._devices),
            done=self._done,
        )

    def _merge_seconds(self, runs: int) -> float:
        """Return for how long so many runs are merged, without what they have of their seeds."""
        labels = self.times.merge_part_seed * self.scenario.findings
        of_one = self.times.merge_part + labels + self.times.merge_pair * min(runs, GROUP)
        groups = -(-runs // GROUP)
        return runs * of_one + (self._merge_seconds(groups) if groups > 1 else 0.0)

    @staticmethod
    def _merges(runs: int) -> int:
        """Return how often a seed is merged: in its group, and again with those of other groups."""
        return 1 + (SimulatedFleet._merges(-(-runs // GROUP)) if runs > GROUP else 0)

    def _prepare(self) -> None:
        asked = self.scenario
        self._rng.seed(asked.seed)
        self._collector = SharedServer(asked.devices, asked.report_seconds, self.times.collector)
        self._devices = [SimulatedDevice() for _ in range(asked.devices)]
        self._free = list(range(asked.devices))
        for at in range(asked.devices if asked.device_hours else 0):
            self._in(self._rng.expovariate(1 / (3600 * asked.device_hours)), "fail", at)
        hosts = -(-asked.devices // asked.host_devices)
        for host in range(hosts if asked.host_hours else 0):
            self._in(self._rng.expovariate(1 / (3600 * asked.host_hours)), "lose", host)

    def _work_through(self, seconds: Sequence[float]) -> float:
        """Do units that take a device so long each; return the sum of that."""
        self._waiting.extend(SimulatedUnit(one, one) for one in seconds)
        self._shown += len(seconds)
        while self._waiting or self._under_way:
            self._pass()
            if not self._under_way and all(one.quarantined for one in self._devices):
                raise RuntimeError("all devices are quarantined")
        return sum(seconds)

    def _pass(self) -> None:
        """Make one pass of `UnitRuns`."""
        asked, times = self.scenario, self.times
        self._look()
        while self._free and self._waiting:
            at = heappop(self._free)
            host = at // asked.host_devices
            if host in self._seen_dead:
                self._parked.setdefault(host, []).append(at)
            elif not self._devices[at].quarantined:
                self._begin(at)
        self._spend(times.wait * self._under_way)
        if not self._ended:
            self._idle(asked.wait_seconds)
        for _ in range(self._most_collected()):
            self._collect(*self._ended.popleft())
        self._take_reports()
        if self.now >= self._show_again:
            seconds = times.show * self._shown
            self._spend(seconds)
            rest = seconds / asked.show_share if asked.show_share else 0.0
            self._show_again = self.now + max(asked.show_seconds, rest)

    def _look(self) -> None:
        asked, times = self.scenario, self.times
        each = times.look + times.look_host * -(-asked.devices // asked.host_devices)
        self._spend(each * asked.devices)
        if self.now - self._nodes_asked >= asked.nodes_seconds:
            self._spend(self._nodes_seconds())
            self._nodes_asked = self.now

    def _nodes_seconds(self) -> float:
        hosts = -(-self.scenario.devices // self.scenario.host_devices)
        return self.times.node_fixed + self.times.nodes * hosts

    def _most_collected(self) -> int:
        return len(self._ended)

    def _begin(self, at: int) -> None:
        """Begin an attempt on a place, which may have been lost without the head's knowledge."""
        unit = self._waiting.popleft()
        self._spend(self.times.begin + self.times.find_place * self.scenario.devices)
        self._visit()
        self._under_way += 1
        self._at_work += 1
        searching = self.now + self._start_seconds()
        device = self._devices[at]
        device.attempt = attempt = SimulatedAttempt(unit, self.now, searching, unit.left)
        if at // self.scenario.host_devices in self._dead:
            attempt.over = True
            self._at_work -= 1
            return
        if device.away > self.now:
            self._wait_for_device(at, self.now)
        else:
            self._in(searching + attempt.left - self.now, "search", at, attempt)

    def _collect(self, at: int, done: bool) -> None:
        """Take the end of an attempt, of which it is known whether its unit is done."""
        asked, times, device = self.scenario, self.times, self._devices[at]
        attempt = device.attempt
        assert attempt is not None
        unit, device.attempt = attempt.unit, None
        self._under_way -= 1
        found = asked.findings_a_minute if self._searching else 0.0
        kept = (unit.seconds - unit.left) / 60 * found
        each = times.keep_finding + asked.finding_bytes * times.unpack_byte
        self._spend(times.keep + times.find_place * asked.devices + kept * each)
        if done:
            self._done += 1
            device.failures = 0
        else:
            self._lost += 1
            device.failures += 1
            device.quarantined = device.failures >= 2
            self._waiting.appendleft(unit)
        heappush(self._free, at)

    def _take_reports(self) -> None:
        asked, times = self.scenario, self.times
        seconds, self._reported = self.now - self._reported, self.now
        reports = self._collector.rate(self._at_work) * seconds
        self._collector_work += reports * times.collector
        backups = self._at_work * seconds / asked.backup_seconds
        size = backups * self._run_bytes(asked.unit_seconds / 2)
        self._link_bytes += size
        spent = reports * times.take + size * times.keep_byte
        self._spend(spent)
        self._visit()

    def _visit(self) -> None:
        """Tell the collector of all attempts, for which head and collector work both."""
        told = self.times.visit_unit * self._at_work
        self._collector_work += told
        self._spend(told + self._collector.delays[self._at_work])

    def _run_bytes(self, seconds: float) -> float:
        """Return the bytes of the run of a unit after so many seconds of device time."""
        if not self._searching:
            return 0.0
        return seconds / 60 * self.scenario.findings_a_minute * self.scenario.finding_bytes

    def _start_seconds(self) -> float:
        read = self.scenario.findings if self._searching else 0.0
        return self.times.start + self.times.start_seed * read

    # The clock, and what happens meanwhile.

    def _spend(self, seconds: float) -> None:
        self._work += seconds
        self._go_on(self.now + seconds)

    def _idle(self, seconds: float) -> None:
        """Wait for the first result, so many seconds at most."""
        end = self.now + seconds
        while not self._ended and self._events and self._events[0][0] <= end:
            self._happen()
        if not self._ended:
            self.now = end

    def _go_on(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self._happen()
        self.now = end

    def _in(self, seconds: float, what: str, at: int, of: SimulatedAttempt | None = None) -> None:
        heappush(self._events, (self.now + seconds, next(self._order), what, at, of))

    def _happen(self) -> None:
        self.now, _, what, at, attempt = heappop(self._events)
        if what in ("search", "give_up", "arrive"):
            device = self._devices[at]
            if attempt is None or device.attempt is not attempt or attempt.over:
                return
            if what == "search":
                self._searched(at, attempt)
            elif what == "give_up":
                self._send(at, attempt)
            else:
                self._arrived(at, attempt)
        elif what == "fail":
            self._fail(at)
        elif what == "lose":
            self._lose(at)
        elif what == "silence":
            self._see_lost(at)
        else:
            self._return(at)

    def _searched(self, at: int, attempt: SimulatedAttempt) -> None:
        """End a search, unless it was held up meanwhile."""
        if attempt.left_at(self.now) > 1e-6:
            return
        attempt.left = 0.0
        self._send(at, attempt)

    def _send(self, at: int, attempt: SimulatedAttempt) -> None:
        """Send a run to the head over the link, of which backups leave a part."""
        asked = self.scenario
        size = self._run_bytes(attempt.unit.seconds - attempt.left)
        backups = self._at_work * self._run_bytes(asked.unit_seconds / 2) / asked.backup_seconds
        results = self._at_work * self._run_bytes(1.0)
        # Where the link is too slow for both, each has of it what it asks for in proportion.
        share = results / (results + backups) if results else 1.0
        left = max(asked.link_bytes - backups, share * asked.link_bytes)
        self._link_bytes += size
        archived = self.now + self.times.finish
        self._link_free = max(archived, self._link_free) + size / left
        attempt.searching = float("inf")  # it searches no more
        self._in(self._link_free - self.now, "arrive", at, attempt)

    def _arrived(self, at: int, attempt: SimulatedAttempt) -> None:
        self._at_work -= 1
        attempt.over = True
        attempt.unit.left = attempt.left
        self._ended.append((at, attempt.left <= 0.0))

    def _fail(self, at: int) -> None:
        """Have a device away for a while; its command waits for it, and gives up."""
        asked, device = self.scenario, self._devices[at]
        attempt = device.attempt
        device.away = self.now + asked.device_away
        again = self._rng.expovariate(1 / (3600 * asked.device_hours))
        self._in(asked.device_away + again, "fail", at)
        if attempt is None or attempt.over or attempt.searching == float("inf"):
            return
        attempt.left = attempt.left_at(self.now)
        self._wait_for_device(at, max(self.now, attempt.begun))

    def _wait_for_device(self, at: int, since: float) -> None:
        """Go on with an attempt once its device is back, or give it up."""
        device = self._devices[at]
        attempt = device.attempt
        assert attempt is not None
        if device.away <= since + PATIENCE_SECONDS:
            attempt.searching = max(device.away, attempt.searching)
            self._in(attempt.searching + attempt.left - self.now, "search", at, attempt)
        else:
            attempt.searching = float("inf")
            self._in(since + PATIENCE_SECONDS - self.now, "give_up", at, attempt)

    def _lose(self, host: int) -> None:
        self._dead.add(host)
        for at in self._places(host):
            attempt = self._devices[at].attempt
            if attempt is not None and not attempt.over:
                self._back_up(attempt)
                attempt.over = True
                self._at_work -= 1
        self._in(self.scenario.host_silence, "silence", host)
        self._in(self.scenario.host_away, "return", host)

    def _back_up(self, attempt: SimulatedAttempt) -> None:
        """Have of a lost attempt what its last backup has."""
        every = self.scenario.backup_seconds
        backup = attempt.begun + (self.now - attempt.begun) // every * every
        left = attempt.left_at(self.now)
        unsaved = min(self.now - max(backup, attempt.searching), attempt.unit.left - left)
        unsaved = max(0.0, unsaved)
        self._repeated += unsaved
        attempt.unit.left = attempt.left = left + unsaved

    def _see_lost(self, host: int) -> None:
        self._seen_dead.add(host)
        known = {at for at, _ in self._ended}
        for at in self._places(host):
            if self._devices[at].attempt is not None and at not in known:
                self._ended.append((at, False))

    def _return(self, host: int) -> None:
        self._dead.discard(host)
        self._seen_dead.discard(host)
        for at in self._parked.pop(host, ()):
            heappush(self._free, at)
        again = self._rng.expovariate(1 / (3600 * self.scenario.host_hours))
        self._in(again, "lose", host)

    def _places(self, host: int) -> range:
        size = self.scenario.host_devices
        return range(host * size, min((host + 1) * size, self.scenario.devices))
