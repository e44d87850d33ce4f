"""What the arms answered about one input: the vocabulary that every strategy reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
"""An image, HWC, uint8, with 1, 3 or 4 channels."""

Failure = Literal["crash", "hang", "invalid-output"]
"""Why an arm gave no answer; also three of the four kinds of a finding."""


class Arm(str, Enum):
    """One of the three that answer: the original *f*, the twin *h*, the device *g*."""

    ORIGINAL = "original"
    TWIN = "twin"
    DEVICE = "device"

    def __str__(self) -> str:
        return self.value


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answers about one input.

    Attributes:
        answers: by arm; an arm that was not asked is absent.
        members: answers of the twin's ensemble, by kernel set.

    """

    answers: Mapping[Arm, Answer]
    members: Mapping[str, Answer] = field(default_factory=dict)

    def __getitem__(self, arm: Arm) -> Answer:
        return self.answers[arm]
