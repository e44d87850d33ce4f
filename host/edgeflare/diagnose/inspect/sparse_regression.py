"""All units together: how well a sparse logistic regression on one half foretells the other."""

from __future__ import annotations

import warnings
from math import log, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.statistics.standard_forms import doubled_ranks

REGRESSION: Final = "regression"
"""The name of this measure; its value is an AUC."""

OF_UNIVERSAL_PENALTY: Final = 0.5
"""The penalty over the one that keeps all weights at 0 where no unit has anything to do with it. By
half of that a few units come in by chance, which the other half uncovers; the whole of it leaves
signals out that are spread over many units, which is what healthy files have."""


def require_sparse_regression() -> None:
    """Refuse to go on without scikit-learn.

    Raises:
        UserError: it is not installed.

    """
    try:
        import sklearn  # noqa: F401, PLC0415 - an extra, and slow to import
    except ImportError:
        raise UserError(
            "scikit-learn is not installed, which fits the regression over all units: "
            "pip install 'edgeflare[whitebox]'"
        ) from None


def foretold(
    chosen: NDArray[np.float32],
    split: NDArray[np.bool_],
    held_out: NDArray[np.float32],
    generator: int,
) -> NDArray[np.float64]:
    """Fit on one half, and return (n,) float64, the log odds that it foretells on the other.

    The penalty is a constant times √(2 ln U / n), the greatest correlation that chance gives among
    U units; to find it by trial would take ten fits for each.

    Args:
        chosen: (m, U) float32, standardised values of the half to fit on.
        split: (m,) bool, the hypothesis there.
        held_out: (n, U) float32, values of the other half, standardised as the first.
        generator: seeds the fit, which takes the units in a random order.

    """
    require_sparse_regression()
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - an extra, slow to import
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    n, units = chosen.shape
    rate = float(split.mean())
    penalty = OF_UNIVERSAL_PENALTY * sqrt(2.0 * log(max(units, 2)) * n * rate * (1.0 - rate))
    # Before 1.8, and so on Python 3.10, the norm is named by another parameter.
    old = LogisticRegression().l1_ratio is None
    norm: dict[str, Any] = {"penalty": "l1"} if old else {"l1_ratio": 1.0}
    model = LogisticRegression(
        **norm, C=1.0 / penalty, solver="liblinear", tol=1e-3, random_state=generator
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(chosen.astype(np.float64), split)
    return np.asarray(model.decision_function(held_out.astype(np.float64)), np.float64)


def foretold_aucs(
    odds: NDArray[np.float64], split: NDArray[np.bool_], orders: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (P, H) float64, the AUC of predictions for labels in each of P orders.

    Args:
        odds: (n, H), the predictions for each hypothesis.
        split: (n, H) bool, what is so.
        orders: (P, n) in which the rows of `split` are dealt to the inputs.

    """
    held = split.sum(axis=0)
    sums = np.einsum("nh,pnh->ph", doubled_ranks(odds).astype(np.float64), split[orders])
    return np.asarray(0.5 + sums / (2.0 * held * (len(split) - held)))
