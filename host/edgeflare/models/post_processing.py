"""Post-processing by a user's Python function, which ships in place of a decoding of ours."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import (
    GivenRows,
    RawBatch,
    Tensor,
    dequantize,
    row_layout,
    tensor_bytes,
    unpack_rows,
)
from edgeflare.crash_report import keep_traceback
from edgeflare.errors import UserError
from edgeflare.python_callable import USER_ERRORS, load_callable, reason

Objects = NDArray[np.float32]
"""(rows, 6): left, top, right, bottom, score and class of each object."""

_SCORE = 4
"""The column of the score, which is -1 in rows without an object."""


_ONE_AT_A_TIME = threading.Lock()
"""One lock for all functions: pair and device may name one and the same, or two that share a
module."""


class PostProcessing:
    """A user's function that makes objects of a model's outputs on one input.

    It takes a dict of the outputs by their names, float32 arrays in the tensors' shapes, and
    returns rows of (left, top, right, bottom, score, class), as anything that numpy can read; of
    more rows than the tensor has, those with the highest scores count. It is called for one input
    at a time, and never by two threads at once.

    Attributes:
        source: `module:function` or `path/to/file.py:function`.
        objects: the tensor of what it makes, (1, rows, 6) float32.

    """

    def __init__(self, source: str, objects: Tensor) -> None:
        """Take a function, which is imported when it is needed first; see `load_callable`.

        So reading a run imports no code that the run names.
        """
        self.source = source
        self.objects = objects

    def __call__(self, outputs: Mapping[str, NDArray[np.float32]]) -> Objects:
        """Return the objects, filled up to the size of the tensor with rows of the score -1.

        Raises:
            UserError: the function cannot be imported, raises an exception, or returns something
                else.

        """
        with _ONE_AT_A_TIME:
            function = self._function
            try:
                returned = function(dict(outputs))
            except USER_ERRORS as error:
                raise self._failure(error) from error
            return self._filled(returned)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        return load_callable(self.source, "a dict of a model's outputs")

    def _filled(self, returned: object) -> Objects:
        _, most, columns = self.objects.shape
        try:
            found = np.asarray(returned)
        except ValueError:
            raise self._refusal("rows of different lengths") from None
        except Exception as error:  # an object of another library may convert itself
            raise self._failure(error) from error
        if found.dtype.kind not in "iuf":
            raise self._refusal(f"an array of {found.dtype}")
        if found.shape == (0,):
            found = found.reshape(0, columns)
        if found.ndim != 2 or found.shape[1] != columns:
            raise self._refusal(f"an array of shape {found.shape}")
        with np.errstate(over="ignore"):
            rows = found.astype(np.float32)
        if not np.isfinite(rows).all():
            raise self._refusal("numbers that are not finite")
        best = np.argsort(-rows[:, _SCORE], kind="stable")[:most]
        filled = no_objects(self.objects)
        filled[: len(best)] = rows[np.sort(best)]
        return filled

    def _failure(self, error: BaseException) -> UserError:
        return UserError(
            f"{self.source} raised {reason(error)}: correct it; its traceback is in "
            f"{keep_traceback(error)}"
        )

    def _refusal(self, what: str) -> UserError:
        return UserError(
            f"{self.source} returned {what}; expected rows of numbers"
            ": left, top, right, bottom, score, class"
        )


def no_objects(tensor: Tensor) -> Objects:
    """Return the rows of a tensor of objects that has none: zeros, and the score -1."""
    rows = np.zeros(tensor.shape[1:], np.float32)
    rows[:, _SCORE] = -1.0
    return rows


class PostProcessedRows:
    """Rows that hold what a user's function makes of a model's outputs."""

    def __init__(self, function: PostProcessing, outputs: Sequence[Tensor]) -> None:
        """Take the function, and the outputs of the model."""
        self.outputs = (function.objects,)
        self._function = function
        self._of_model = tuple(outputs)

    def made_of(
        self,
        given: GivenRows,  # noqa: ARG002 - of the protocol
        batch: RawBatch,
    ) -> RawBatch:
        """Return what the function makes of each row.

        Where an output is not finite or of another size the model has failed, and the function is
        not asked.
        """
        shape, dtype = row_layout(self.outputs)
        made = np.zeros((len(batch.outputs), *shape), dtype)
        failures = dict(batch.failures)
        if batch.outputs[:1].nbytes != sum(map(tensor_bytes, self._of_model)):
            made[:] = no_objects(self.outputs[0])
            failures = dict.fromkeys(range(len(made)), "error") | failures
            return replace(batch, outputs=made.reshape(len(made), -1), failures=failures)
        arrays = unpack_rows(self._of_model, batch.outputs)
        for at in range(len(made)):
            outputs = {
                tensor.name: dequantize(array[at], tensor).astype(np.float32)
                for tensor, array in zip(self._of_model, arrays, strict=True)
            }
            if not all(np.isfinite(array).all() for array in outputs.values()):
                failures.setdefault(at, "error")
            failed = at in failures
            made[at] = no_objects(self.outputs[0]) if failed else self._function(outputs)
        return replace(batch, outputs=made.reshape(len(made), -1), failures=failures)
