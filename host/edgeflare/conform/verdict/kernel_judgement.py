"""What is said of one model of one operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from edgeflare.pages.facts import significant

Verdict = Literal[
    "right",
    "rounding",
    "device",
    "host",
    "shared",
    "undefined",
    "crash",
    "hang",
    "refused",
]
"""What the answers to a model come to.

- "right": the device's answer is right, and that of the twin to the bit.
- "rounding": it is right, and differs from the twin's by what rounding may.
- "device": the device is wrong, and the twin or another kernel set of the host is not.
- "host": the device is right, and a kernel set of the host is wrong.
- "shared": the device is wrong, and so is every kernel set of the host, or the twin alike.
- "undefined": they differ where NaN, infinities or tensors without values are involved.
- "crash", "hang", "refused": the device gave no answer.
"""

Symptom = Literal[
    "wrong-values",
    "biased",
    "not-finite",
    "wrong-shape",
    "crash",
    "hang",
    "refused",
    "neighbours",
    "corrupts",
    "",
]
"""How an answer is wrong: values too far off; each near, but off to one side on average; NaN or an
infinity where there should be none, or none where there should be; another shape or type than the
model says; no answer; another answer beside other models; other models die after it."""

ErrorUnit = Literal["steps", "ulp"]
Unit = ErrorUnit | Literal[""]
"""Unit of an error: steps of the result's quantization, units in the last place of float32, or,
where answers have to be equal, the share of values that are not."""


def in_units(size: float, unit: ErrorUnit) -> str:
    """Return the size of an error in its unit: "28,672 steps", "1 step"."""
    figure = significant(size)
    return f"{figure} {'step' if unit == 'steps' and figure == '1' else unit}"


LOST: Final[tuple[Verdict, ...]] = ("crash", "hang")
"""What leaves no process that could answer."""

BESIDE_OTHERS: Final[tuple[Symptom, ...]] = ("neighbours", "corrupts")
"""What no model shows alone."""


@dataclass(frozen=True, slots=True)
class KernelJudgement:
    """What is said of one model.

    Attributes:
        verdict: see `Verdict`.
        symptom: see `Symptom`; "" of what is right.
        counted: whether it counts for the exit code: the device does what the twin does not.
        worst: the largest error of the arm that is wrong; of "rounding" the largest difference.
        unit: unit of `worst`: "steps" of the result's quantization, "ulp" of float32, or "" for
            answers that have to be equal, where `worst` is the share of values that are not.
        wrong: the arms that are wrong, "device" and names of the host's kernel sets.
        detail: one line for the report.
        telling: how many different values of a model that is right could have shown a fault: of a
            quantized result those that are not saturated, and none where a value is nearly a step
            off. A model that tells little passes whatever the kernel does.

    """

    verdict: Verdict
    symptom: Symptom = ""
    counted: bool = False
    worst: float = 0.0
    unit: Unit = ""
    wrong: tuple[str, ...] = ()
    detail: str = ""
    telling: int = 0

    @property
    def is_finding(self) -> bool:
        """Whether it makes a model part of a finding; else it is a figure of a cell."""
        return self.verdict not in ("right", "rounding", "refused")
