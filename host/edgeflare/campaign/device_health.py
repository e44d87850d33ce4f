"""What watches over the devices of a campaign.

Canaries: an input whose answer is known, asked again every so often. A *canary* is the first seed
of a device that the device answered. It is asked again every so many device queries, in the batch
that is due anyway; its answer must not change. Since canaries change no strategy's answers, they
change no finding.

A good canary vouches for what its device answered before it. When a canary fails for good, what its
device answered since the last good one is dropped from the journal, so that a resumed run asks
again; of the chains that ended since, whose answers are not kept, all is dropped.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edgeflare.campaign.device_readings import (
    HealthRecord,
    MonitoredDevice,
    Thermometer,
    WarningSink,
)
from edgeflare.core.query import Arm, EvaluatedQuery, Query
from edgeflare.core.raw_output_rows import OutputDecoders
from edgeflare.core.seeds import Seeds
from edgeflare.errors import InfrastructureError
from edgeflare.pages.facts import count_of
from edgeflare.record.folder import remove_files
from edgeflare.run.answer_rows import from_rows, to_row
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import device_of

_Ask = Callable[[int], EvaluatedQuery]
"""Asks the device of a seed, given its id, about the seed, on its own."""


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """What watches over the devices of a campaign.

    Attributes:
        thermometer: holds up the searches of a device while it is too hot.
        canaries: end it where the answers of a device have changed.
        record: keeps what was seen of each device.

    """

    thermometer: Thermometer
    canaries: Canaries
    record: HealthRecord

    @classmethod
    def of(
        cls,
        devices: Sequence[MonitoredDevice],
        seeds: Seeds,
        journal: RunJournal,
        sink: WarningSink,
        stopped: Callable[[], bool],
    ) -> DeviceHealth:
        """Watch over devices.

        Args:
            devices: the devices, in their order in the panel; with none, nothing is watched.
            seeds: seeds of the campaign.
            journal: where what was seen is noted.
            sink: is told of pauses and of what looks wrong.
            stopped: whether the user wants to stop; ends a pause.

        """
        record = HealthRecord(devices, journal, sink)
        thermometer = Thermometer(record, stopped)
        return cls(thermometer, Canaries(record, thermometer, journal, seeds), record)


@dataclass(frozen=True, slots=True)
class _Canary:
    """A canary under way.

    Attributes:
        index: index of the canary's device.
        seed_id: id of its seed.
        n: number of the canary on that device.
        extra: it is asked only because the last one failed; its answer is not kept.

    """

    index: int
    seed_id: int
    n: int
    extra: bool = False


class Canaries:
    """Asks each device of a campaign again for an answer that it gave before."""

    def __init__(
        self,
        record: HealthRecord,
        thermometer: Thermometer,
        journal: RunJournal,
        seeds: Seeds,
    ) -> None:
        """Watch over the devices of a record; with none, nothing is watched.

        Args:
            record: where what is seen is kept.
            thermometer: read with each canary.
            journal: where their answers are written.
            seeds: seeds of the campaign.

        """
        self._record = record
        self._thermometer = thermometer
        self._journal = journal
        self._seeds = seeds
        self._asked: Counter[int] = Counter()
        self._references: dict[int, tuple[int, EvaluatedQuery]] = {}
        self._under_way: list[deque[tuple[list[_Canary], set[int]]]] = [
            deque() for _ in record.devices
        ]
        self._changed_seeds: set[int] = set()
        self._asked_if_well: set[int] = set()
        self._answered: list[tuple[_Canary, EvaluatedQuery]] = []

    def load_references(self, reading: OutputDecoders) -> None:
        """Load the first answers of the canaries, and how much each device was asked since.

        Where a process was killed between an answer that has changed and what follows from it, that
        is made up for: the device counts as failed, and what it answered is dropped.
        """
        if not self._record.devices:
            return
        rows = [rows[0] for rows in self._journal.answers("seed").values()]
        for row, query in zip(rows, from_rows(reading, rows), strict=True):
            index = self._index(row.seed_id)
            if query.outcome[Arm.DEVICE].failure is None:
                self._references.setdefault(index, (row.seed_id, query))
        self._reading = reading
        self._changed_seeds = set(self._seeds.seed_ids)
        self._count_asked()
        for index in self._references:
            every = self._record.devices[index].profile.canary_every
            if every and self._left_failing(index, reading):
                self._fail(index)

    def _count_asked(self) -> None:
        self._asked.clear()
        for seed_id, asked in self._journal.device_queries().items():
            self._asked[self._index(seed_id)] += asked

    def _left_failing(self, index: int, reading: OutputDecoders) -> bool:
        """Whether a canary's decision has changed, and it was not seen to be right since."""
        seed_id, reference = self._references[index]
        rows = self._journal.steps("canary", seed_id)
        changed = {
            row.n: query.repeated(reference) == "changed"
            for row, query in zip(rows, from_rows(reading, rows), strict=True)
        }
        return any(n > 0 and now and changed.get(-n, True) for n, now in changed.items())

    def due(
        self, queries: Sequence[Query], seed_ids: Sequence[int]
    ) -> tuple[list[Query], list[int]]:
        """Return canaries to ask together with a batch of one device, and their seeds' ids."""
        index = self._index(seed_ids[0])
        count = sum(Arm.DEVICE in query.arms for query in queries)
        due = self._due(index, count) if count and index in self._references else []
        self._under_way[index].append((due, set(seed_ids)))
        asked = [Query(self._seeds.input_of(canary.seed_id), (Arm.DEVICE,)) for canary in due]
        return asked, [canary.seed_id for canary in due]

    def record(self, seed_id: int, evaluated: Sequence[EvaluatedQuery]) -> None:
        """Record what the canaries of the oldest batch on the device of a seed answered."""
        canaries, seed_ids = self._under_way[self._index(seed_id)].popleft()
        self._changed_seeds |= seed_ids
        self._answered = list(zip(canaries, evaluated, strict=True))
        for canary, query in self._answered:
            self._write(canary.n, canary, query)

    def check(self, ask: _Ask) -> None:
        """Compare the answers that were written last with the first ones.

        Args:
            ask: asks again where one has changed.

        Raises:
            InfrastructureError: one has changed, and stays so.

        """
        for canary, query in self._answered:
            self._check(canary, query, ask)
        for index in {canary.index for canary, _ in self._answered}:
            self._vouch(index)

    def _due(self, index: int, count: int) -> list[_Canary]:
        every = self._record.devices[index].profile.canary_every
        if not every:
            return []
        first = self._asked[index] // every
        self._asked[index] += count
        readings = self._record.readings[index]
        seed_id = self._references[index][0]
        # Failed in the part of the run before this one: is it well now?
        extra = []
        if readings.failed and index not in self._asked_if_well:
            self._asked_if_well.add(index)
            extra = [_Canary(index, seed_id, first + 1, extra=True)]
        last = self._asked[index] // every
        return extra + [_Canary(index, seed_id, n) for n in range(first + 1, last + 1)]

    def _check(self, canary: _Canary, query: EvaluatedQuery, ask: _Ask) -> None:
        record, reference = self._record, self._references[canary.index][1]
        readings, name = record.readings[canary.index], record.devices[canary.index].profile.name
        self._thermometer.read_unless_recent(canary.index)
        repetition = query.repeated(reference)
        readings.count_canary(repetition)
        if repetition == "varied":
            record.warn(
                f"{name} does not repeat its answers to the bit: the label of its canary, seed"
                f" {canary.seed_id}, held, and its outputs varied"
            )
        elif repetition == "changed":
            again = ask(canary.seed_id)
            self._write(-canary.n, canary, again)
            if again.repeated(reference) == "changed":
                line = self._changed(canary, reference, again)
                record.warn(line)
                self._fail(canary.index)
                raise InfrastructureError(line)
            record.warn(
                f"{name} answered its canary, seed {canary.seed_id}, with {self._decided(query)}"
                f" instead of {self._decided(reference)} once, and rightly when asked again"
            )
        record.keep()

    def _vouch(self, index: int) -> None:
        """Mark what a device has answered as reliable."""
        changed = {seed_id for seed_id in self._changed_seeds if self._index(seed_id) == index}
        with self._journal.transaction():
            self._journal.mark_reliable(lambda seed_id: self._index(seed_id) == index, changed)
        self._changed_seeds -= changed
        if self._record.readings[index].failed:
            self._record.readings[index].failed = False
            self._record.keep()

    def _fail(self, index: int) -> None:
        """Drop what a device answered since its last good canary, and keep that it has failed."""
        record, directory = self._record, RunDirectory(self._journal.path.parent)
        profile = record.devices[index].profile
        record.readings[index].failed = True
        with self._journal.transaction():
            dropped = self._journal.drop_unreliable(
                lambda seed_id: self._index(seed_id) == index, directory.read
            )
            self._count_asked()
            last = self._asked[index] // profile.canary_every
            self._journal.drop_canaries(self._references[index][0], last)
            record.warn(
                f"{profile.name}: what it answered since its last good canary was dropped, and is"
                f" asked again on --resume: {count_of(dropped.chains, 'search', 'searches')} and"
                f" {count_of(dropped.refinements, 'refinement')} that had ended, and"
                f" {count_of(dropped.answers, 'answer')} in others that had not"
            )
            record.keep()
        # After the transaction: what a kill leaves here, no row of the journal names.
        remove_files(directory.path, *dropped.inputs)

    def _changed(self, canary: _Canary, reference: EvaluatedQuery, now: EvaluatedQuery) -> str:
        profile = self._record.devices[canary.index].profile
        before = (canary.n - 1) * profile.canary_every
        return (
            f"{profile.name}: its answer to seed {canary.seed_id} has changed from"
            f" {self._decided(reference)} to {self._decided(now)}, somewhere after {before} device"
            " queries: what it answered since then is not to be trusted; look after the device"
        )

    def _decided(self, query: EvaluatedQuery) -> str:
        answer = query.outcome[Arm.DEVICE]
        if answer.failure is not None or answer.decision is None:
            return answer.failure or "no decision"
        decoder = self._reading.decoders[Arm.DEVICE]
        if not answer.counted:
            return decoder.describe_answer(answer) if decoder.shows_seeds else "certain values"
        return f"class {decoder.describe(answer.decision)}"

    def _write(self, n: int, canary: _Canary, query: EvaluatedQuery) -> None:
        if canary.extra:
            return
        asked = self._seeds.input_of(canary.seed_id)
        row = to_row(self._reading, "canary", canary.seed_id, n, asked, query)
        self._journal.write_answers([row])

    def _index(self, seed_id: int) -> int:
        return device_of(seed_id, len(self._record.devices))
