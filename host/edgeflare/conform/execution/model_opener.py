"""What loads a file of models: the interface of the host's kernel sets and of devices."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from edgeflare.models.evaluator import Evaluator


class LoadRefused(Exception):  # noqa: N818 - an answer about the models, not an accident
    """The runtime refuses a file, or crashes on loading it; the message is one line."""


class ModelOpener(Protocol):
    """Loads files of models, each into a fresh process."""

    @property
    def name(self) -> str:
        """What is opened: "device", or a kernel set of the host."""

    @property
    def payload_limit_bytes(self) -> int:
        """The most bytes that all inputs of one row may have, and all outputs."""

    @property
    def input_seconds(self) -> float:
        """The time that a model with next to no arithmetic may take for one row; then it hangs."""

    def open(self, path: Path) -> Evaluator:
        """Load a file.

        Raises:
            LoadRefused: see there.
            InfrastructureError: no process can be started, or the device is lost.

        """

    def recover(self) -> None:
        """Bring a lost device back.

        Raises:
            InfrastructureError: it does not come back.

        """
