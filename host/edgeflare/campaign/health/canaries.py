"""Canaries: an input whose answer is known, asked again every so often.

A *canary* is the first seed of a device that the device answered. It is asked again every so many
device queries, in the batch that is due anyway; its answer must not change. Since canaries change
no strategy's answers, they change no finding.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.health.health_record import HealthRecord
from edgeflare.campaign.health.thermometer import Thermometer
from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.query import Query
from edgeflare.errors import InfrastructureError
from edgeflare.models.output_decoders import OutputDecoders
from edgeflare.run.device_assignment import device_of
from edgeflare.run.journal import Journal
from edgeflare.run.stored_answers import from_rows, to_row

Ask = Callable[[int], EvaluatedQuery]
"""Asks the device of a seed, given its id, about the seed's image, on its own."""


@dataclass(frozen=True, slots=True)
class _Canary:
    """A canary under way: the index of its device, its seed, and its number on that device."""

    index: int
    seed_id: int
    n: int


class Canaries:
    """Asks each device of a campaign again for an answer that it gave before."""

    def __init__(
        self,
        record: HealthRecord,
        thermometer: Thermometer,
        journal: Journal,
        images: NDArray[np.uint8],
    ) -> None:
        """Watch over the devices of a record; with none, nothing is watched.

        Args:
            record: where what is seen is kept.
            thermometer: read with each canary.
            journal: where their answers are written.
            images: (seeds, H, W, C), the seeds of the campaign.

        """
        self._record = record
        self._thermometer = thermometer
        self._journal = journal
        self._images = images
        self._asked: Counter[int] = Counter()
        self._references: dict[int, tuple[int, EvaluatedQuery]] = {}
        self._under_way: list[deque[list[_Canary]]] = [deque() for _ in record.devices]
        self._answered: list[tuple[_Canary, EvaluatedQuery]] = []

    def load_references(self, reading: OutputDecoders) -> None:
        """Load the first answers of the canaries, and how much each device was asked since."""
        if not self._record.devices:
            return
        rows = [rows[0] for rows in self._journal.answers("seed").values()]
        for row, one in zip(rows, from_rows(reading, rows), strict=True):
            index = self._index(row.seed_id)
            if one.outcome[Arm.DEVICE].failure is None:
                self._references.setdefault(index, (row.seed_id, one))
        for seed_id, asked in self._journal.device_queries().items():
            self._asked[self._index(seed_id)] += asked

    def due(
        self, queries: Sequence[Query], seed_ids: Sequence[int]
    ) -> tuple[list[Query], list[int]]:
        """Return canaries to ask together with a batch of one device, and their seeds' ids."""
        index = self._index(seed_ids[0])
        count = sum(Arm.DEVICE in query.arms for query in queries)
        due = self._due(index, count) if count and index in self._references else []
        self._under_way[index].append(due)
        asked = [Query(self._images[canary.seed_id], (Arm.DEVICE,)) for canary in due]
        return asked, [canary.seed_id for canary in due]

    def record(self, seed_id: int, evaluated: Sequence[EvaluatedQuery]) -> None:
        """Record what the canaries of the oldest batch on the device of a seed answered."""
        asked = self._under_way[self._index(seed_id)].popleft()
        self._answered = list(zip(asked, evaluated, strict=True))
        for canary, one in self._answered:
            self._write(canary.n, canary, one)

    def check(self, ask: Ask) -> None:
        """Compare the answers that were written last with the first ones.

        Args:
            ask: asks again where one has changed.

        Raises:
            InfrastructureError: one has changed, and stays so.

        """
        for canary, one in self._answered:
            self._check(canary, one, ask)

    def _due(self, index: int, count: int) -> list[_Canary]:
        every = self._record.devices[index].profile.canary_every
        if not every:
            return []
        first = self._asked[index] // every
        self._asked[index] += count
        readings = self._record.readings[index]
        if readings.failed:  # in the part of the run before this one: is it well now?
            readings.failed, first = False, max(0, first - 1)
        last = self._asked[index] // every
        seed_id = self._references[index][0]
        return [_Canary(index, seed_id, n) for n in range(first + 1, last + 1)]

    def _check(self, canary: _Canary, one: EvaluatedQuery, ask: Ask) -> None:
        record, reference = self._record, self._references[canary.index][1]
        readings, name = record.readings[canary.index], record.devices[canary.index].profile.name
        self._thermometer.read_unless_recent(canary.index)
        if one.raw[Arm.DEVICE] == reference.raw[Arm.DEVICE]:
            readings.canaries["same"] += 1
        elif _label(one) == _label(reference):
            readings.canaries["varied"] += 1
            record.warn(
                f"{name} does not repeat its answers to the bit: the label of its canary, seed"
                f" {canary.seed_id}, held, and its outputs varied"
            )
        else:
            readings.canaries["changed"] += 1
            again = ask(canary.seed_id)
            self._write(-canary.n, canary, again)
            if _label(again) != _label(reference):
                readings.failed = True
                line = self._changed(canary, reference, again)
                record.warn(line)
                record.keep()
                raise InfrastructureError(line)
            record.warn(
                f"{name} answered its canary, seed {canary.seed_id}, with {_label(one)} instead of"
                f" {_label(reference)} once, and rightly when asked again"
            )
        record.keep()

    def _changed(self, canary: _Canary, reference: EvaluatedQuery, now: EvaluatedQuery) -> str:
        profile = self._record.devices[canary.index].profile
        before = (canary.n - 1) * profile.canary_every
        return (
            f"{profile.name}: its answer to seed {canary.seed_id} has changed from"
            f" {_label(reference)} to {_label(now)}, somewhere after {before} device queries: what"
            " it answered since then is not to be trusted; look after the device"
        )

    def _write(self, n: int, canary: _Canary, one: EvaluatedQuery) -> None:
        row = to_row("canary", canary.seed_id, n, self._images[canary.seed_id], one)
        self._journal.write_answers([row])

    def _index(self, seed_id: int) -> int:
        return device_of(seed_id, len(self._record.devices))


def _label(one: EvaluatedQuery) -> str:
    answer = one.outcome[Arm.DEVICE]
    return answer.failure or f"class {answer.label}"
