"""The panel of arms: inputs in, answers out, on all the arms that a query names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer
from edgeflare.core.domain import Encoder
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome, Query
from edgeflare.core.raw_output_rows import OutputDecoders, kept_rows
from edgeflare.core.seeds import Seeds
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import GivenRows, RawBatch
from edgeflare.devices.connection import DeviceLost
from edgeflare.models.decoder_rows import submit
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.model_inputs import FixedInputs, ModelInputs, model_rows
from edgeflare.run.seed_ids import device_of


@dataclass(frozen=True, slots=True)
class ArmModel:
    """A model as an arm: what runs it, and what stands between inputs and answers.

    Attributes:
        evaluator: runs the model.
        encoder: encoder of the inputs that are searched.
        decoder: decoder of the model's outputs.
        fixed: what it takes beside them; None where that is nothing.
        features: the encoder of the same inputs before they are quantized, and what is beside them;
            None where the decoder does not read that.

    """

    evaluator: Evaluator
    encoder: Encoder
    decoder: Decoder
    fixed: FixedInputs | None = None
    features: tuple[Encoder, FixedInputs | None] | None = None

    @classmethod
    def of(
        cls, evaluator: Evaluator, inputs: ModelInputs, decoder: Decoder, seeds: Seeds
    ) -> ArmModel:
        """Return a model whose rows a decoder reads, with what stands before it.

        Args:
            evaluator: as `as_read_by` returns it.
            inputs: inputs of the model.
            decoder: decoder of the rows.
            seeds: seeds whose inputs it is given.

        """
        real = inputs.features
        features = None if real is None else (real.encoder(), real.fixed(seeds))
        return cls(evaluator, inputs.encoder(), decoder, inputs.fixed(seeds), features)

    def given(self, inputs: NDArray[Any], seed_ids: Sequence[int]) -> GivenRows:
        """Return what the model is given for inputs of these seeds."""
        features = None
        if self.features is not None:
            features = model_rows(*self.features, inputs, seed_ids)
        return GivenRows(self.rows(inputs, seed_ids), features)

    def submit(self, given: GivenRows) -> Future[RawBatch]:
        """Begin to run a batch; see `Evaluator`."""
        return submit(self.evaluator, given)

    def rows(self, inputs: NDArray[Any], seed_ids: Sequence[int]) -> NDArray[np.generic]:
        """Return the rows that the model takes for inputs of these seeds."""
        return model_rows(self.encoder, self.fixed, inputs, seed_ids)


class PanelDeviceLost(Exception):  # noqa: N818 - a state to recover from, not a mistake
    """One of the devices was lost, for the reason that is this exception's cause."""

    def __init__(self, index: int, why: DeviceLost) -> None:
        """Say which one, by its place among the devices."""
        super().__init__(str(why))
        self.index = index


class Panel:
    """The arms of a campaign, and the further members of the twin's ensemble.

    Several devices share the seeds out. Arms whose models take the same encoded input (twin,
    members and devices do) are encoded for once.
    """

    def __init__(
        self,
        hosts: Mapping[Arm, ArmModel],
        devices: Sequence[ArmModel],
        members: Mapping[str, ArmModel] | None = None,
    ) -> None:
        """Take a panel.

        Args:
            hosts: the arms that run on the host.
            devices: the same file on each device.
            members: the same file on the host under other kernel sets, by their names.

        """
        self._hosts = dict(hosts)
        self._devices = tuple(devices)
        self._members = dict(members or {})

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that can be asked."""
        return (*self._hosts, Arm.DEVICE)

    @property
    def devices(self) -> int:
        """How many devices share the seeds."""
        return len(self._devices)

    @property
    def members(self) -> tuple[str, ...]:
        """The kernel sets that can be asked beside the twin's own."""
        return tuple(self._members)

    @property
    def reading(self) -> OutputDecoders:
        """How the raw outputs are read."""
        decoders = {arm: model.decoder for arm, model in self._hosts.items()}
        return OutputDecoders({**decoders, Arm.DEVICE: self._devices[0].decoder}, self.members)

    def host(self, arm: Arm) -> ArmModel:
        """Return an arm of the host; KeyError where there is none."""
        return self._hosts[arm]

    def encoder(self, arm: Arm) -> Encoder:
        """Return what encodes the searched inputs for an arm."""
        return (self._devices[0] if arm is Arm.DEVICE else self._hosts[arm]).encoder

    def device_of(self, seed_id: int) -> ArmModel:
        """Return the file on the device that is asked about a seed."""
        return self._devices[device_of(seed_id, len(self._devices))]

    def rows(self, arm: Arm, inputs: NDArray[Any], seed_ids: Sequence[int]) -> NDArray[np.generic]:
        """Return inputs of these seeds as the model of an arm on the host takes them."""
        return self._hosts[arm].rows(inputs, seed_ids)

    def submit(self, queries: Sequence[Query], seed_ids: Sequence[int]) -> Pending:
        """Begin to evaluate a batch, each query on the arms that it names.

        Args:
            queries: the batch.
            seed_ids: the seed that each of them comes from, which decides the device.

        """
        stacked: dict[_Rows, NDArray[Any]] = {}
        encoded: dict[tuple[int, _Rows], GivenRows] = {}
        parts: list[_Part] = []
        for key, index, model in self._models():
            rows = self._asked(key, index, queries, seed_ids)
            if not rows:
                continue
            if rows not in stacked:
                stacked[rows] = np.stack([queries[i].input for i in rows])
            code = (id(model.encoder), rows)
            if code not in encoded:
                encoded[code] = model.given(stacked[rows], [seed_ids[i] for i in rows])
            raw = model.submit(encoded[code])
            parts.append(_Part(key, index, rows, raw, model.decoder))
        return Pending(len(queries), parts)

    def _asked(
        self, key: Arm | str, index: int, queries: Sequence[Query], seed_ids: Sequence[int]
    ) -> _Rows:
        """Return which queries of a batch ask a model: an arm, a member, or one of the devices."""
        if not isinstance(key, Arm):
            return tuple([i for i, query in enumerate(queries) if key in query.kernels])
        rows = [i for i, query in enumerate(queries) if key in query.arms]
        count = len(self._devices)
        if key is Arm.DEVICE and count > 1:
            rows = [i for i in rows if device_of(seed_ids[i], count) == index]
        return tuple(rows)

    def _models(self) -> Iterator[tuple[Arm | str, int, ArmModel]]:
        """Yield all models, with their arm or member, and a device's place among the devices."""
        for arm, model in self._hosts.items():
            yield arm, 0, model
        for index, model in enumerate(self._devices):
            yield Arm.DEVICE, index, model
        for name, model in self._members.items():
            yield name, 0, model


_Rows = tuple[int, ...]
"""Positions within a batch."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One model's part of a batch."""

    key: Arm | str
    index: int
    rows: _Rows
    raw: Future[RawBatch]
    decoder: Decoder


class Pending:
    """A batch under way."""

    def __init__(self, size: int, parts: Sequence[_Part]) -> None:
        self._size = size
        self._parts = parts
        self.device_busy_seconds = 0.0

    @property
    def unfinished(self) -> list[Future[RawBatch]]:
        """What `collect` would wait for."""
        return [part.raw for part in self._parts if not part.raw.done()]

    def collect(self) -> list[EvaluatedQuery]:
        """Wait for the answers of all arms, and return them in the order of the queries.

        Raises:
            Lost: a device was lost.

        """
        # By arm, and by member of the twin's ensemble.
        answers: list[dict[Any, Answer]] = [{} for _ in range(self._size)]
        members: list[dict[Any, Answer]] = [{} for _ in range(self._size)]
        raw: list[dict[Arm | str, bytes]] = [{} for _ in range(self._size)]
        seconds = [0.0] * self._size
        for part in self._parts:
            key = part.key
            try:
                batch = part.raw.result()
            except DeviceLost as lost:
                raise PanelDeviceLost(part.index, lost) from lost
            share = batch.busy_seconds / len(part.rows)
            if key is Arm.DEVICE:
                self.device_busy_seconds += batch.busy_seconds
            of_key = answers if isinstance(key, Arm) else members
            kept = kept_rows(part.decoder, batch.outputs)
            for row, output, answer in zip(part.rows, kept, part.decoder.read(batch), strict=True):
                of_key[row][key] = answer
                raw[row][key] = output
                seconds[row] += share
        return [
            EvaluatedQuery(Outcome(a, m), r, s)
            for a, m, r, s in zip(answers, members, raw, seconds, strict=True)
        ]
