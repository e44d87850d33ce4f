"""Devices that wrap another one: lost on some calls or for good, late, or with other answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch
from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator, Signature

Alter = Callable[[NDArray[np.generic], NDArray[np.generic]], NDArray[np.generic]]


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


class Altered(WrappedEvaluator):
    """A device of which a function alters each answer, given the input and its true answer."""

    def __init__(self, inner: Evaluator, alter: Alter) -> None:
        super().__init__(inner)
        self._alter = alter

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        truth = super().submit(inputs).result()
        outputs = truth.outputs.copy()
        for row, one in enumerate(inputs):
            outputs[row] = self._alter(one, outputs[row])
        return with_outputs(truth, outputs)


class Late(WrappedEvaluator):
    """A device that answers on a thread of its own, after it was asked, as real ones do."""

    def __init__(self, inner: Evaluator) -> None:
        super().__init__(inner)
        self._thread = ThreadPoolExecutor(1)

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        return self._thread.submit(lambda: self._inner.submit(inputs).result())


class Mortal(WrappedEvaluator):
    """A device that is gone for good after so many calls."""

    def __init__(self, inner: Evaluator, most: int) -> None:
        super().__init__(inner)
        self._most = most

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        if self.calls == self._most:
            raise InfrastructureError("burnt down")
        return super().submit(inputs)


class Fragile(WrappedEvaluator):
    """A device that crashes on dark images."""

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        answer = super().submit(inputs).result()
        dark = {i: "crash" for i, one in enumerate(inputs) if float(one.max()) < 0.95}
        future: Future[RawBatch] = Future()
        future.set_result(RawBatch(answer.outputs, dark))
        return future
