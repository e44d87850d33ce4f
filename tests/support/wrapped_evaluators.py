"""Devices that wrap another one: what they share, and one that is lost on some calls."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch
from edgeflare.devices.connection import DeviceLost
from edgeflare.models.evaluator import Evaluator, Signature


class WrappedEvaluator:
    """Does as the one inside; `calls` counts the batches that it was asked for."""

    def __init__(self, inner: Evaluator, lost_at: Collection[int] = ()) -> None:
        """Wrap an evaluator; on the calls of `lost_at`, counted from 1, the device is lost."""
        self._inner, self._lost_at = inner, lost_at
        self.calls = 0

    @property
    def signature(self) -> Signature:
        return self._inner.signature

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        self.calls += 1
        if self.calls in self._lost_at:
            lost: Future[RawBatch] = Future()
            lost.set_exception(DeviceLost("pulled the plug"))
            return lost
        return self._inner.submit(inputs)

    def close(self) -> None:
        self._inner.close()


def with_outputs(truth: RawBatch, outputs: NDArray[np.generic]) -> Future[RawBatch]:
    """Return an answer that has arrived: a batch with other outputs."""
    answer: Future[RawBatch] = Future()
    answer.set_result(RawBatch(outputs, truth.failures))
    return answer
