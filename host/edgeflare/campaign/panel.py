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
class Evaluated:
    """The answers about one query.

    Attributes:
        outcome: what a strategy reads.
        raw: raw output vectors as bytes in the models' dtypes, by arm.
        seconds: this query's share of the evaluation time of its batch.

    """

    outcome: Outcome
    raw: Mapping[Arm, bytes]
    seconds: float


class Panel:
    """The arms of a campaign.

    Arms whose models take the same encoded input (twin and device do) are encoded for once.
    """

    def __init__(self, arms: Mapping[Arm, ArmModel]) -> None:
        self._arms = dict(arms)

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that can be asked."""
        return tuple(self._arms)

    @property
    def decoders(self) -> dict[Arm, Decoder]:
        """What reads the raw outputs of each arm."""
        return {arm: model.decoder for arm, model in self._arms.items()}

    def submit(self, queries: Sequence[Query]) -> Pending:
        """Begin to evaluate a batch, each query on the arms that it names."""
        stacked: dict[_Rows, NDArray[np.uint8]] = {}
        encoded: dict[tuple[int, _Rows], NDArray[np.generic]] = {}
        parts: dict[Arm, _Part] = {}
        for arm, model in self._arms.items():
            rows = tuple(i for i, query in enumerate(queries) if arm in query.arms)
            if not rows:
                continue
            if rows not in stacked:
                stacked[rows] = np.stack([queries[i].image for i in rows])
            key = (id(model.encoder), rows)
            if key not in encoded:
                encoded[key] = model.encoder.encode(stacked[rows])
            parts[arm] = _Part(rows, model.evaluator.submit(encoded[key]), model.decoder)
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

    def __init__(self, size: int, parts: Mapping[Arm, _Part]) -> None:
        self._size = size
        self._parts = parts
        self.device_busy_seconds = 0.0

    def collect(self) -> list[Evaluated]:
        """Wait for the answers of all arms, and return them in the order of the queries.

        Raises:
            InfrastructureError: an arm was lost.

        """
        answers: list[dict[Arm, Answer]] = [{} for _ in range(self._size)]
        raw: list[dict[Arm, bytes]] = [{} for _ in range(self._size)]
        seconds = 0.0
        for arm, part in self._parts.items():
            batch = part.raw.result()
            seconds += batch.busy_seconds
            if arm is Arm.DEVICE:
                self.device_busy_seconds += batch.busy_seconds
            for row, output, answer in zip(
                part.rows, batch.outputs, read_answers(part.decoder, batch), strict=True
            ):
                answers[row][arm] = answer
                raw[row][arm] = output.tobytes()
        share = seconds / max(1, self._size)
        return [Evaluated(Outcome(a), r, share) for a, r in zip(answers, raw, strict=True)]


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
