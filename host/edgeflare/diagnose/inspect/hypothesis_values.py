"""What hypotheses say of inputs: finite numbers, or one line about the function that gave none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.hypothesis import InspectedInput, UnitHypothesis
from edgeflare.python_callable import reason

Values = NDArray[np.float64]


def hypothesis_values(
    hypotheses: Sequence[UnitHypothesis], inputs: Iterable[InspectedInput]
) -> Values:
    """Return (inputs, hypotheses) float64, what each hypothesis says of each input.

    Raises:
        UserError: a hypothesis raises, or returns anything but a finite number or a bool.

    """
    rows = [[_value(hypothesis, one) for hypothesis in hypotheses] for one in inputs]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(hypotheses))


def varying(halves: Sequence[Values]) -> NDArray[np.bool_]:
    """Return (H,) bool, whether each hypothesis varies in all halves, (inputs, H) each."""
    return np.asarray(np.all([np.ptp(half, axis=0) > 0.0 for half in halves], axis=0))


def telling(hypotheses: Sequence[UnitHypothesis], halves: Sequence[Values]) -> NDArray[np.bool_]:
    """Tell which hypotheses vary in both halves, so that something can be held against them.

    Args:
        hypotheses: H of them.
        halves: (inputs, H) float64 of each half.

    Returns:
        (H,) bool. A built-in one that does not vary is false: nobody asked for it.

    Raises:
        UserError: one of the user's is constant in a half.

    """
    require_varying(hypotheses, halves)
    return varying(halves)


def require_varying(hypotheses: Sequence[UnitHypothesis], parts: Sequence[Values]) -> None:
    """Refuse hypotheses of the user's that are constant over a part of the inputs.

    Args:
        hypotheses: H of them.
        parts: (inputs, H) float64 of each.

    Raises:
        UserError: one is.

    """
    for hypothesis, told in zip(hypotheses, varying(parts), strict=True):
        if not told and not hypothesis.built_in:
            size = min(len(part) for part in parts)
            raise UserError(
                f"hypothesis {hypothesis.name!r} is constant over {size} inputs: nothing can be"
                " held against it; return what differs between inputs"
            )


def _value(hypothesis: UnitHypothesis, one: InspectedInput) -> float:
    try:
        said = hypothesis(one)
        number = float(said) if isinstance(said, Real | np.bool_) else math.nan
    except Exception as error:  # whatever the user's code raises is the user's to correct
        raise UserError(f"hypothesis {hypothesis.name!r} failed: {reason(error)}") from error
    if not math.isfinite(number):
        shown = " ".join(repr(said).split())
        raise UserError(
            f"hypothesis {hypothesis.name!r} returned {shown[:60]}: return a finite number or"
            " a bool"
        )
    return number
