"""What loads a file of models: the interface of the host's kernel sets and of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final, Protocol

from edgeflare.devices.device import Device
from edgeflare.devices.session import DeviceSession
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Evaluator, Invocation, Step
from edgeflare.models.tflite import open_tflite
from edgeflare.untrusted_text import printable
from edgeflare_protos.kernel_sets import KERNEL_SETS, TFLITE_KERNEL_SETS, Kernels, accelerated
from edgeflare_protos.limits import PAYLOAD_LIMIT_BYTES

_SEVERAL_THREADS: Final = 4
"""Threads where a profile has one: more than the cores of a small board, and than rows of most
small tensors."""

HOST_KERNELS: Final = TFLITE_KERNEL_SETS
"""The host's kernel sets, the twin's own first."""


def _other_threads(threads: int) -> int:
    return 1 if threads > 1 else _SEVERAL_THREADS


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

    @property
    def takes_steps(self) -> bool:
        """Whether a row can be several invocations in other shapes and by other signatures."""

    def open(self, path: Path, steps: Sequence[Step] = ()) -> Evaluator:
        """Load a file.

        Args:
            path: the file.
            steps: the invocations of which a row consists; empty for one.

        Raises:
            LoadRefused: see there.

        """

    def on_other_threads(self) -> ModelOpener | None:
        """Return what loads files to run on another number of threads; None where none is told."""

    def for_clips(self, frames: int) -> ModelOpener:
        """Return what loads files that go through so many frames before a state is reset."""

    def recover(self) -> None:
        """Bring a lost device back."""


@dataclass(frozen=True, slots=True)
class HostOpener:
    """Loads files into worker processes of the host.

    Attributes:
        name: the kernel set.
        launcher: the command that starts a worker's Python; None for this one.
        input_seconds: the time that a model may take for one row before it counts as a hang; no
            more than the 10 s that the agent's runtime allows.
        threads: how many threads the interpreter has.
        frames: frames of a clip, which is one input then; 0 where it is none.

    """

    name: Kernels
    launcher: Sequence[str] | None = None
    input_seconds: float = 10.0
    threads: int = 1
    frames: int = 0

    @property
    def payload_limit_bytes(self) -> int:
        """What a device's agent takes: no model should run on one side alone."""
        return PAYLOAD_LIMIT_BYTES

    @property
    def takes_steps(self) -> bool:
        """Whether its kernels do."""
        return KERNEL_SETS[self.name].steps

    def open(self, path: Path, steps: Sequence[Step] = ()) -> Evaluator:
        """Load a file; see `ModelOpener`."""
        try:
            called = Invocation(frames=self.frames, steps=tuple(steps))
            return open_tflite(path, self.name, called, self.threads, self.launcher)
        except UserError as error:
            # The cause is the runtime's own complaint, without advice on one user's file.
            raise LoadRefused(str(error.__cause__ or error)) from error

    def on_other_threads(self) -> HostOpener:
        """See `ModelOpener`."""
        return replace(self, threads=_other_threads(self.threads))

    def for_clips(self, frames: int) -> HostOpener:
        """See `ModelOpener`."""
        return replace(self, frames=frames)

    def recover(self) -> None:
        """See `ModelOpener`; the host is never lost."""
        raise InfrastructureError(f"the host's {self.name} kernels cannot be brought back")


@dataclass(frozen=True, slots=True)
class DeviceOpener:
    """Loads files into worker processes of a device's agent, as its profile says.

    Attributes:
        device: connected; its owner closes it.
        stopped: whether the user does not want to wait for a lost device any longer.
        most_input_seconds: what is enough for small models, where the profile allows more.
        threads: how many threads the interpreter has; None for what the profile says.
        frames: frames of a clip, which is one input then; 0 where it is none.

    """

    device: Device
    stopped: Callable[[], bool] = lambda: False
    most_input_seconds: float = inf
    threads: int | None = None
    frames: int = 0

    @property
    def name(self) -> str:
        """The name of a device among what runs models."""
        return "device"

    @property
    def payload_limit_bytes(self) -> int:
        """What one message to its agent may carry."""
        return self.device.payload_limit_bytes

    @property
    def input_seconds(self) -> float:
        """What its profile allows, or less."""
        return min(self.device.profile.input_timeout_seconds, self.most_input_seconds)

    @property
    def takes_steps(self) -> bool:
        """Whether its kernels and its agent do; not an accelerator, which compiles all anew then.

        Turns of 45 graphs took a GPU in software more than four minutes, where the compiled model's
        CPU kernels had those of 150 in two.
        """
        return self.device.steps and not accelerated(self.device.profile.kernels)

    def open(self, path: Path, steps: Sequence[Step] = ()) -> DeviceSession:
        """Load a file; see `ModelOpener`."""
        profile = self.device.profile
        try:
            # Not as a session that the device keeps: hundreds come and go, and none comes back.
            threads = self.threads or profile.threads
            called = Invocation(frames=self.frames, steps=tuple(steps))
            return self.device.open_as(path, profile.kernels, threads, called)
        except UserError as error:
            told = str(error).removeprefix(f"{path}: ").removeprefix(f"{profile.name}: ")
            raise LoadRefused(printable(told)) from error

    def on_other_threads(self) -> DeviceOpener | None:
        """See `ModelOpener`."""
        profile = self.device.profile
        if not KERNEL_SETS[profile.kernels].threads:
            return None
        return replace(self, threads=_other_threads(self.threads or profile.threads))

    def for_clips(self, frames: int) -> DeviceOpener:
        """See `ModelOpener`."""
        return replace(self, frames=frames)

    def recover(self) -> None:
        """Bring the device back; see `ModelOpener`."""
        self.device.reopen(self.stopped)
