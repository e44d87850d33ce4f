"""Rounding of weights by GPTQ: what rounding one weight costs, the weights behind it make up for.

Frantar, Ashkboos, Hoefler, Alistarh: "GPTQ: Accurate Post-Training Quantization for Generative
Pre-trained Transformers" (2022), section 3. The error that counts is that of the layer's output,
‖(W − Ŵ)X‖², which the Hessian H = XXᵀ gives. Weights are rounded column by column. The error of
each is divided among the columns that are not rounded yet, as the inverse of H says.

Differences from the original
    Columns are not put off in blocks, which serves the caches of a GPU alone. Where an output's
    weights rounded to nearest have the smaller error, these are taken: so the error of no output
    exceeds that of rounding to nearest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]

MOST_STEPS = 127
"""Weights are −127 to 127 steps: the format leaves −128 out."""

_DAMPING = 0.01
"""Added to the Hessian's diagonal, as a share of its mean; the paper's."""


def rounded_by_gptq(weights: Real, hessian: Real, scales: Real) -> NDArray[np.int8]:
    """Round weights to steps of their scales.

    With H̃ the damped Hessian and no weight out of range, the error of an output is at most
    scale²/4 · Σ_j 1 / (H̃[j:, j:]⁻¹)[0, 0], and never above that of rounding to nearest.

    Args:
        weights: (groups, outputs, k), real values.
        hessian: (groups, k, k), positive semi-definite: the sum of the products of each two of the
            k inputs, times any positive factor.
        scales: (groups, outputs), each positive.

    Returns:
        (groups, outputs, k), in steps from −127 to 127.

    """
    steps = weights / scales[..., None]
    nearest = _to_nearest(steps)
    compensated = _compensated(steps, hessian)
    better = output_errors(steps - compensated, hessian) < output_errors(steps - nearest, hessian)
    return np.where(better[..., None], compensated, nearest).astype(np.int8)


def output_errors(differences: Real, hessian: Real) -> Real:
    """Return the squared error ‖dX‖² that differences d of weights make in each output.

    Args:
        differences: (groups, outputs, k).
        hessian: (groups, k, k).

    Returns:
        (groups, outputs).

    """
    return np.asarray((np.matmul(differences, hessian) * differences).sum(axis=-1))


def damped(hessian: Real, share: float = _DAMPING) -> Real:
    """Return a Hessian to whose diagonal a share of its mean is added, so that it has an inverse.

    Inputs that are all zero leave a Hessian of zeros, which becomes the identity.
    """
    inputs = hessian.shape[-1]
    mean = np.trace(hessian, axis1=-2, axis2=-1) / inputs
    added = np.where(mean > 0, share * mean, 1.0)
    return np.asarray(hessian + added[..., None, None] * np.eye(inputs))


def _compensated(steps: Real, hessian: Real) -> Real:
    """Round column by column, and change the columns behind so that they make up for it."""
    inverse = np.linalg.inv(damped(hessian))
    upper = np.linalg.cholesky(inverse).transpose(0, 2, 1)
    left, rounded = steps.copy(), np.empty_like(steps)
    for column in range(steps.shape[-1]):
        rounded[..., column] = _to_nearest(left[..., column])
        error = left[..., column] - rounded[..., column]
        behind = upper[:, column, column + 1 :] / upper[:, column, column, None]
        left[..., column + 1 :] -= error[..., None] * behind[:, None]
    return rounded


def _to_nearest(steps: Real) -> Real:
    return np.clip(np.rint(steps), -MOST_STEPS, MOST_STEPS)
