"""What one arm answered about one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Failure = Literal["crash", "hang", "invalid-output"]
"""Why an arm gave no answer; also three of the four kinds of a finding."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one arm answered about one input.

    Attributes:
        label: top-1 label, or None where the arm failed.
        tied: the two largest raw outputs are equal, before dequantization and softmax.
        probabilities: (classes,) float64, summing to about 1; zeros where the arm failed.
        scores: (classes,) float64, unbounded and monotonic in the probabilities: the logits where
            the model gives logits, the logarithms of the probabilities elsewhere.
        failure: why there is no answer, or None.

    """

    label: int | None
    tied: bool
    probabilities: NDArray[np.float64]
    scores: NDArray[np.float64]
    failure: Failure | None = None
