"""Python originals that bring their own gradient: a function `gradient` beside the original's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch
from edgeflare.errors import UserError
from edgeflare.python_callable import load_callable, reason

Real = NDArray[np.float64]

GRADIENT = "gradient"
"""The name of the function, in the module or file of the original's."""


class ModelWithOwnGradient:
    """A Python original, and the derivatives of its outputs as the user computes them.

    `gradient` takes what the original takes, and returns the derivative of each of its outputs by
    each value of the input: (outputs, *input shape).
    """

    def __init__(self, source: str, shape: tuple[int, ...], decoder: Decoder) -> None:
        """Import both functions.

        Args:
            source: the original, `module:function` or `path/to/file.py:function`.
            shape: of what it takes.
            decoder: of its output.

        Raises:
            UserError: there is no gradient beside it.

        """
        self._function = load_callable(source, "inputs")
        self._original = source
        self._source = source.rpartition(":")[0] + f":{GRADIENT}"
        try:
            self._gradient = load_callable(self._source, "inputs")
        except UserError:
            raise UserError(
                f"{source} has no gradient of its own: write `def {GRADIENT}(inputs)` beside it,"
                " which returns the derivative of each output by each value, (outputs, *inputs"
                " shape)"
            ) from None
        self._shape = shape
        self._decoder = decoder

    def require(self, row: NDArray[np.generic]) -> None:
        """Refuse outputs that are no scores of classes, and derivatives that are not theirs.

        Args:
            row: on which both functions are tried.

        Raises:
            UserError: the outputs are not one for each class, or the gradient fails.

        """
        output, _ = self.evaluate(row)
        choices = self._decoder.choices
        if output.size != choices:
            raise UserError(
                f"{self._source} is of {output.size} outputs for {choices} decisions, and a search"
                " needs the gradient of a score of each"
            )
        self.gradient(row, np.zeros(choices), {})

    def evaluate(self, row: NDArray[np.generic]) -> tuple[NDArray[np.generic], Real]:
        """Return the output for a row, and its scores; see `DifferentiableModel`.

        Raises:
            UserError: the user's function fails.

        """
        try:
            output = np.asarray(self._function(row.reshape(self._shape)), np.float32)
        except Exception as error:  # whatever the user's code raises is the user's to correct
            raise UserError(
                f"{self._original} failed: {reason(error)}; the strategy boundary, which needs no"
                " gradient, records that as a finding"
            ) from error
        (answer,) = self._decoder.read(RawBatch(output.reshape(1, -1)))
        return output, answer.scores

    def gradient(
        self, row: NDArray[np.generic], weights: Real, neurons: Mapping[int, float]
    ) -> Real:
        """Return the gradient of a weighted sum of scores; see `DifferentiableModel`.

        Raises:
            UserError: the user's function fails, or returns something else; or neurons are asked.

        """
        if neurons:
            self._refuse_neurons()
        output, _ = self.evaluate(row)
        try:
            derivatives = np.asarray(self._gradient(row.reshape(self._shape)), np.float64)
        except Exception as error:  # whatever the user's code raises is the user's to correct
            raise UserError(f"{self._source} failed: {reason(error)}") from error
        expected = (output.size, *self._shape)
        if derivatives.shape != expected or not np.isfinite(derivatives).all():
            returned = "infinity or NaN" if derivatives.shape == expected else derivatives.shape
            raise UserError(
                f"{self._source} returned {returned}: it has to return finite numbers of the shape"
                f" {expected}, one derivative for each output and value"
            )
        if self._decoder.meaning == "probabilities":  # whose scores are their logarithms
            weights = weights / np.maximum(output.ravel(), np.finfo(np.float32).tiny)
        return np.tensordot(weights, derivatives, 1)

    def covered(self, row: NDArray[np.generic], threshold: float) -> NoReturn:  # noqa: ARG002
        """Refuse: nothing is known of its neurons."""
        self._refuse_neurons()

    def _refuse_neurons(self) -> NoReturn:
        raise UserError(
            f"{self._original} is a Python function, whose neurons are not known: give a .tflite"
            " original, or set lambda2=0, which asks for none"
        )
