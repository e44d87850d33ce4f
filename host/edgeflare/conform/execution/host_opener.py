"""The host's kernel sets as what loads files of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgeflare.conform.execution.model_opener import LoadRefused
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.tflite import open_tflite
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, Kernels
from edgeflare_protos.limits import PAYLOAD_LIMIT_BYTES

HOST_KERNELS: Final = TFLITE_KERNEL_SETS
"""The host's kernel sets, the twin's own first."""


@dataclass(frozen=True, slots=True)
class HostOpener:
    """Loads files into worker processes of the host.

    Attributes:
        name: the kernel set.
        launcher: the command that starts a worker's Python; None for this one.
        input_seconds: the time that a model may take for one row before it counts as a hang; no
            more than the 10 s that the agent's runtime allows.

    """

    name: Kernels
    launcher: Sequence[str] | None = None
    input_seconds: float = 10.0

    @property
    def payload_limit_bytes(self) -> int:
        """What a device's agent takes: no model should run on one side alone."""
        return PAYLOAD_LIMIT_BYTES

    def open(self, path: Path) -> Evaluator:
        """Load a file; see `ModelOpener`."""
        try:
            return open_tflite(path, self.name, launcher=self.launcher)
        except UserError as error:
            # The cause is the runtime's own complaint, without advice on one user's file.
            raise LoadRefused(str(error.__cause__ or error)) from error

    def recover(self) -> None:
        """See `ModelOpener`; the host is never lost."""
        raise InfrastructureError(f"the host's {self.name} kernels cannot be brought back")
