"""The device and the host's kernel sets of a conformance run, opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edgeflare.campaign.pair_panel import RefusedByDevice
from edgeflare.conform.execution.kernel_arm import KernelArm
from edgeflare.conform.execution.model_opener import (
    HOST_KERNELS,
    DeviceOpener,
    HostOpener,
    LoadRefused,
    ModelOpener,
)
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph
from edgeflare.conform.record.conform_header import (
    ConformHeader,
    ConformRequest,
    specification_digest,
)
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.provenance import Provenance
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.run_host import describe_host
from edgeflare_protos import __version__

_VALUES: Final = GraphValue("float32", (1, 2, 2, 4))

_SIMPLEST: Final = {"RELU": 1, "ADD": 2, "LOGISTIC": 1}
"""Operators that runtimes have, and how many operands each has. A device may lack one of them."""

_INPUT_SECONDS: Final = 4.0
"""Time that a model may take for one input besides its arithmetic: the profile's own limit is meant
for whole networks. A kernel that hangs is waited for so long."""

_NO_RUNTIME: Final = "no TFLite runtime is installed"
"""What an agent says where there is none, with what to type there."""


@dataclass(frozen=True, slots=True)
class OpenedConformance:
    """What runs models.

    Attributes:
        device: connected.
        provenance: what it is, with the runtime and the accelerator of its kernels.
        arms: the device first, then the host's kernel sets, the twin's first.

    """

    device: Device
    provenance: Provenance
    arms: tuple[KernelArm, ...]

    def header(self, request: ConformRequest) -> ConformHeader:
        """Return what run it is that is asked so."""
        host = describe_host(None)
        return ConformHeader(__version__, request, self.provenance, host, specification_digest())


def open_conformance(
    profile: Profile, stack: ExitStack, stopped: Callable[[], bool]
) -> OpenedConformance:
    """Connect to a device and make ready the host's kernel sets.

    Args:
        profile: the device's profile.
        stack: closes what is opened.
        stopped: whether the user does not want to wait for a lost device any longer.

    Raises:
        RefusedByDevice: the device opens no model.
        UserError: the profile asks for something that is not there.

    """
    try:
        device = stack.enter_context(connect(profile))
    except InfrastructureError as error:
        if _NO_RUNTIME in str(error):
            raise UserError(f"no operator can be tried: {error}") from error
        raise
    return conformance_on(device, stack, stopped)


def conformance_on(
    device: Device, stack: ExitStack, stopped: Callable[[], bool]
) -> OpenedConformance:
    """Make ready a connected device, whose owner closes it, and the host's kernel sets.

    Args:
        device: connected.
        stack: closes what is opened.
        stopped: whether the user does not want to wait for a lost device any longer.

    Raises:
        RefusedByDevice: the device opens no model.

    """
    host = [HostOpener(kernels, input_seconds=_INPUT_SECONDS) for kernels in HOST_KERNELS]
    on_device = DeviceOpener(device, stopped, _INPUT_SECONDS)
    provenance = _tried_device(on_device)
    openers: list[ModelOpener] = [on_device, *host]
    arms = tuple(PackingArm(opener) for opener in openers)
    for arm in arms:
        stack.callback(arm.close)
    return OpenedConformance(device, provenance, arms)


def _tried_device(opener: DeviceOpener) -> Provenance:
    """Return what a device is, once it has opened one of the simplest models.

    A device names the runtime and the accelerator of a model alone; one that refuses each of these
    lacks a driver or the runtime itself, and would refuse hundreds of others one by one.
    """
    refusal = ""
    with TemporaryDirectory(prefix="edgeflare-conform-") as folder:
        path = Path(folder, "models.tflite")
        for operator, operands in _SIMPLEST.items():
            graph = OperatorGraph.of_operator(operator, [_VALUES] * operands, [_VALUES])
            path.write_bytes(graph_file(graph))
            try:
                session = opener.open(path)
            except LoadRefused as refused:
                refusal = str(refused)
                continue
            session.close()
            known = opener.device.provenance
            runtime, version = session.runtime or (known.runtime, known.runtime_version)
            return replace(
                known, runtime=runtime, runtime_version=version, adapter=session.adapter or None
            )
    raise RefusedByDevice(f"no operator can be tried on {opener.device.profile.name}: {refusal}")
