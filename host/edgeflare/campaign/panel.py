"""The panel of arms: images in, answers out, on all the arms that a query names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.decode import Decoder
from edgeflare.models.evaluation import Evaluator, RawBatch
from edgeflare.models.preprocess import Encoder
from edgeflare.search.outcome import Answer, Arm, Outcome
from edgeflare.search.strategy import Query


@dataclass(frozen=True, slots=True)
class ArmModel:
    """A model as an arm: what runs it, and what stands between pixels and labels."""

    evaluator: Evaluator
    encoder: Encoder
    decoder: Decoder


@dataclass(frozen=True, slots=True)
class Reading:
    """How the raw outputs of a panel, or of a journal, are read.

    Attributes:
        decoders: by arm.
        members: kernel sets of the twin's ensemble, in the order of their outputs in a row.

    """

    decoders: Mapping[Arm, Decoder]
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The answers about one query.

    Attributes:
        outcome: what a strategy reads.
        raw: raw output vectors as bytes in the models' dtypes, by arm, or by kernel set for members
            of the twin's ensemble.
        seconds: this query's share of the evaluation time of its batch.

    """

    outcome: Outcome
    raw: Mapping[Arm | str, bytes]
    seconds: float


class Panel:
    """The arms of a campaign, and the further members of the twin's ensemble.

    Arms whose models take the same encoded input (twin, members and device do) are encoded for
    once.
    """

    def __init__(
        self, arms: Mapping[Arm, ArmModel], members: Mapping[str, ArmModel] | None = None
    ) -> None:
        """Take a panel; `members` run the twin's file under other kernel sets, by their names."""
        self._arms = dict(arms)
        self._members = dict(members or {})

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that can be asked."""
        return tuple(self._arms)

    @property
    def members(self) -> tuple[str, ...]:
        """The kernel sets that can be asked beside the twin's own."""
        return tuple(self._members)

    @property
    def reading(self) -> Reading:
        """How the raw outputs are read."""
        decoders = {arm: model.decoder for arm, model in self._arms.items()}
        return Reading(decoders, self.members)

    def submit(self, queries: Sequence[Query]) -> Pending:
        """Begin to evaluate a batch, each query on the arms that it names."""
        stacked: dict[_Rows, NDArray[np.uint8]] = {}
        encoded: dict[tuple[int, _Rows], NDArray[np.generic]] = {}
        parts: dict[Arm | str, _Part] = {}
        for key, model in (*self._arms.items(), *self._members.items()):
            rows = tuple(i for i, query in enumerate(queries) if _asks(query, key))
            if not rows:
                continue
            if rows not in stacked:
                stacked[rows] = np.stack([queries[i].image for i in rows])
            code = (id(model.encoder), rows)
            if code not in encoded:
                encoded[code] = model.encoder.encode(stacked[rows])
            parts[key] = _Part(rows, model.evaluator.submit(encoded[code]), model.decoder)
        return Pending(len(queries), parts)


_Rows = tuple[int, ...]
"""Positions within a batch."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One arm's part of a batch."""

    rows: _Rows
    raw: Future[RawBatch]
    decoder: Decoder


class Pending:
    """A batch under way."""

    def __init__(self, size: int, parts: Mapping[Arm | str, _Part]) -> None:
        self._size = size
        self._parts = parts
        self.device_busy_seconds = 0.0

    def collect(self) -> list[Evaluated]:
        """Wait for the answers of all arms, and return them in the order of the queries.

        Raises:
            InfrastructureError: an arm was lost.

        """
        answers: list[dict[Arm, Answer]] = [{} for _ in range(self._size)]
        members: list[dict[str, Answer]] = [{} for _ in range(self._size)]
        raw: list[dict[Arm | str, bytes]] = [{} for _ in range(self._size)]
        seconds = 0.0
        for key, part in self._parts.items():
            batch = part.raw.result()
            seconds += batch.busy_seconds
            if key is Arm.DEVICE:
                self.device_busy_seconds += batch.busy_seconds
            for row, output, answer in zip(
                part.rows, batch.outputs, read_answers(part.decoder, batch), strict=True
            ):
                if isinstance(key, Arm):
                    answers[row][key] = answer
                else:
                    members[row][key] = answer
                raw[row][key] = output.tobytes()
        share = seconds / max(1, self._size)
        return [
            Evaluated(Outcome(a, m), r, share)
            for a, m, r in zip(answers, members, raw, strict=True)
        ]


def _asks(query: Query, key: Arm | str) -> bool:
    return key in (query.arms if isinstance(key, Arm) else query.kernels)


def read_answers(decoder: Decoder, batch: RawBatch) -> Iterator[Answer]:
    """Yield the answers that a batch of raw outputs means."""
    decoded = decoder.decode(batch)
    for label, tied, probabilities, scores, failure in zip(
        decoded.labels.tolist(),
        decoded.tied.tolist(),
        decoded.probabilities,
        decoded.scores,
        decoded.failures,
        strict=True,
    ):
        yield Answer(None if failure else label, tied, probabilities, scores, failure)
