"""Sums over the inputs of a layer, from which its weights and biases are fitted.

X are the inputs as the layer has them, a row for each position; X_f are those that the original's
layer has in their place. The squared error of the layer's output, ‖X_f W_fᵀ − X Wᵀ‖², depends on
these sums alone. So the memory that fitting needs does not grow with the number of inputs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.repair.fitting.gptq import Real, damped

_RIDGE = 0.01
"""How strongly weights are held to the original's, as a share of the Hessian's mean diagonal."""


class InputMoments:
    """The moments of a layer's inputs, and of the original's beside them.

    Biases make up for the difference of the means, so with `centred` all is as if the means of both
    were zero.
    """

    def __init__(self, groups: int, inputs: int, *, centred: bool) -> None:
        """Begin without inputs.

        Args:
            groups: groups of channels; see `unfolded_inputs`.
            inputs: inputs of an output, k.
            centred: the layer has biases.

        """
        self._centred = centred
        self._rows = 0
        self._products = np.zeros((groups, inputs, inputs))
        self._products_of_errors = np.zeros((groups, inputs, inputs))
        self._sum = np.zeros((groups, inputs))
        self._sum_of_errors = np.zeros((groups, inputs))

    def add(self, rows: NDArray[np.float32], original: NDArray[np.float32] | None = None) -> None:
        """Add inputs.

        Args:
            rows: X, (groups, rows, k).
            original: X_f, likewise; None where they are the same.

        """
        self._rows += rows.shape[1]
        self._products += np.matmul(rows.transpose(0, 2, 1), rows)
        self._sum += rows.sum(axis=1, dtype=np.float64)
        if original is not None:
            errors = original - rows
            self._products_of_errors += np.matmul(errors.transpose(0, 2, 1), rows)
            self._sum_of_errors += errors.sum(axis=1, dtype=np.float64)

    @property
    def hessian(self) -> Real:
        """XᵀX by the number of rows, (groups, k, k)."""
        return self._second_moment(self._products, self._sum)

    def compensating(self, weights: Real) -> Real:
        """Return weights with which the layer's output is nearest to the original's.

        They move the errors out that are in the layer's inputs, by ridge regression.

        Args:
            weights: W_f, (groups, outputs, k).

        """
        errors = self._second_moment(self._products_of_errors, self._sum_of_errors)
        moved = np.matmul(weights, errors).transpose(0, 2, 1)
        solved = np.linalg.solve(damped(self.hessian, _RIDGE), moved)
        return np.asarray(weights + solved.transpose(0, 2, 1))

    def output_difference(self, original: Real, weights: Real) -> Real:
        """Return the mean of X_f W_fᵀ − X Wᵀ, which the layer's biases make up for.

        Args:
            original: W_f, (groups, outputs, k).
            weights: W, likewise.

        Returns:
            (groups, outputs).

        """
        mean = self._sum / self._rows
        original_mean = mean + self._sum_of_errors / self._rows
        wanted = np.matmul(original, original_mean[..., None])
        return np.asarray((wanted - np.matmul(weights, mean[..., None]))[..., 0])

    def _second_moment(self, products: Real, total: Real) -> Real:
        moment = products / self._rows
        if not self._centred:
            return np.asarray(moment)
        means = total[:, :, None] * (self._sum[:, None, :] / self._rows**2)
        return np.asarray(moment - means)
