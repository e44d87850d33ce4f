"""The answers of all arms to one model, measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailureKind
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.verdict.arm_errors import ArmErrors, Ruler

DEVICE, TWIN = "device", "xnnpack"
"""Names of arms: what is judged, and the host's default kernels."""

_NEARLY_WRONG = 0.8
"""Of what is allowed; sound kernels of 8 bits mostly stay within .75 of a step."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """The errors of the device and of the kernel sets of the host that answered.

    Attributes:
        ruler: what they are measured by.
        outputs: the answers, by the arms' names.
        device: its errors.
        hosts: errors of the kernel sets, by their names.
        lost: kernel sets that crashed, hung or answered in another shape, and which.
        same: where the twin answers as the device does, to the bit, (values); nowhere if it
            does not answer.

    """

    ruler: Ruler
    outputs: Mapping[str, tuple[Values, ...]]
    device: ArmErrors
    hosts: Mapping[str, ArmErrors]
    lost: Mapping[str, RunFailureKind]
    same: NDArray[np.bool_]

    @classmethod
    def of(cls, ruler: Ruler, answers: Mapping[str, ModelAnswer]) -> ArmComparison:
        """Measure the answers of "device" and of kernel sets of the host."""
        outputs = {name: one.outputs for name, one in answers.items() if one.failure is None}
        errors = {name: ruler.measured(one) for name, one in outputs.items()}
        lost: dict[str, RunFailureKind] = {
            name: one.failure.kind
            for name, one in answers.items()
            if one.failure is not None and one.failure.kind in ("crash", "hang", "misshapen")
        }
        same = np.zeros(ruler.judged.shape, np.bool_)
        if TWIN in outputs:
            same = ruler.same(outputs[DEVICE], outputs[TWIN])
        device = errors.pop(DEVICE)
        return cls(ruler, outputs, device, errors, lost, same)

    def is_wrong(self, arm: ArmErrors) -> bool:
        """Whether an arm is wrong where it counts."""
        return arm.mean != 0 or bool((arm.wrong & self.ruler.judged).any())

    @property
    def is_doubtful(self) -> bool:
        """Whether the device is right, but only just where the twin gives another answer.

        A fault of one step is within what is allowed where the exact answer is a whole step.
        """
        near = self.device.offences > _NEARLY_WRONG
        return bool((near & self.ruler.judged & ~self.same).any())

    @property
    def right(self) -> tuple[str, ...]:
        """The kernel sets of the host that are right."""
        return tuple(name for name, one in self.hosts.items() if not self.is_wrong(one))

    @property
    def wrong(self) -> tuple[str, ...]:
        """The kernel sets of the host that are wrong."""
        return tuple(name for name, one in self.hosts.items() if self.is_wrong(one))
