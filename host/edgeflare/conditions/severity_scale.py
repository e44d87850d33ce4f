"""The parameters of a condition at a severity, from those at the five whole ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgeflare.conditions.condition import SEVERITIES


def at_severity(values: Sequence[float], severity: float) -> float:
    """Return a parameter at a severity; between two whole ones it is interpolated.

    Args:
        values: the parameter at the severities 1 to 5.
        severity: from 1 to 5.

    """
    return float(np.interp(severity, SEVERITIES, values))
