"""Devices as they are right now: those there are, the kernel sets of one, and one tried."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.devices.device import connect
from edgeflare.devices.profile import EMULATED_ALL, Profile, without_all
from edgeflare.devices.profile_folders import profile_files
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.provenance import Provenance, Telemetry
from edgeflare.devices.transports.transport_plugin import TransportPlugin
from edgeflare.devices.transports.transport_registry import transport, transports
from edgeflare.errors import EdgeFlareError, InfrastructureError
from edgeflare.trust import KEPT_ONLY, Trust
from edgeflare_protos.kernel_sets import Kernels

_WEIGHTS = np.array([[1, 2, 3, 4], [-4, 3, -2, 1], [2, 0, -8, 5]], np.float32)
_INPUTS = np.array([[1, 1, 1, 1], [0, 2, -4, 8], [16, 1, 0, -2]], np.float32)
"""Small integers, whose products and sums are exact in any kernel's arithmetic, in float16 too."""


@dataclass(frozen=True, slots=True)
class DeviceCheckResult:
    """A device that is ready for a search.

    Attributes:
        provenance: what it is.
        telemetry: how it is right now.
        open_seconds: time from nothing to an agent that has shaken hands.
        load_seconds: time from there to a model that is open.

    """

    provenance: Provenance
    telemetry: Telemetry
    open_seconds: float
    load_seconds: float


def check_device(profile: Profile) -> DeviceCheckResult:
    """Deploy the agent if needed, start it, run a model of one layer, and stop it again.

    Raises:
        InfrastructureError: the device fails, or its model answers wrongly.

    """
    with tempfile.TemporaryDirectory(prefix="edgeflare-") as folder:
        model = Path(folder) / "canary.tflite"
        model.write_bytes(canary_model())
        began = time.monotonic()
        with connect(profile) as device:
            opened = time.monotonic()
            session = device.open(model)
            loaded = time.monotonic()
            answer = session.submit(_INPUTS).result()  # the stream watches over the time
            if answer.failures or not np.array_equal(answer.outputs, expected_answer()):
                raise InfrastructureError(
                    f"{profile.name}: answers {answer.outputs.tolist()} to a model of one layer,"
                    f" where {expected_answer().tolist()} is right; its runtime or its delegate is"
                    " broken"
                )
            return DeviceCheckResult(
                device.provenance, device.telemetry(), opened - began, loaded - opened
            )


def expected_answer() -> NDArray[np.float32]:
    """Return what that model answers to its inputs: (3, 3), float32."""
    answer: NDArray[np.float32] = _INPUTS @ _WEIGHTS.T
    return answer


def canary_model() -> bytes:
    """Return a `.tflite` of one fully connected layer, (1, 4) to (1, 3), float32."""
    graph = schema.SubGraphT()
    graph.tensors = [
        _tensor("input", (1, 4)),
        _tensor("weights", _WEIGHTS.shape, buffer=1),
        _tensor("output", (1, 3)),
    ]
    graph.inputs, graph.outputs = [0], [2]
    layer = schema.OperatorT()
    layer.inputs, layer.outputs = [0, 1, -1], [2]
    layer.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
    layer.builtinOptions = schema.FullyConnectedOptionsT()
    graph.operators = [layer]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version = 1
    weights = schema.BufferT()
    weights.data = np.frombuffer(_WEIGHTS.tobytes(), np.uint8)
    model = schema.ModelT()
    model.version, model.subgraphs, model.operatorCodes = 3, [graph], [code]
    model.buffers = [schema.BufferT(), weights]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tensor(name: str, shape: tuple[int, ...], buffer: int = 0) -> schema.TensorT:
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.buffer = name, list(shape), buffer
    tensor.type = schema.TensorType.FLOAT32
    return tensor


_AT_ONCE = 16


def device_states(profiles: Iterable[Profile]) -> list[tuple[Profile, str]]:
    """Return each profile, and each attached device that none names, with how it is right now.

    All are asked at the same time. Nothing is started, neither on a device nor here.
    """
    known = list(profiles)
    for name, plugin in transports().items():
        with suppress(EdgeFlareError):  # which the rows of its profiles say
            known += _attached([profile for profile in known if profile.transport == name], plugin)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(zip(known, pool.map(_state, known), strict=True))


def _attached(known: list[Profile], plugin: TransportPlugin) -> Iterator[Profile]:
    """Yield profiles of the attached devices of a transport that no known profile names."""
    if plugin.attached is None or plugin.scheme is None:
        return
    for address in plugin.attached():
        values = plugin.scheme.read(address.partition("://")[2])
        if not any(all(profile.value(key) == values[key] for key in values) for profile in known):
            yield find_profile(address)


def _state(profile: Profile) -> str:
    try:
        return transport(profile.transport).status(profile)
    except EdgeFlareError as error:
        return str(error).removeprefix(f"{profile.name}: ")


_EMULATED: Final = "emulated-xnnpack"
"""The profile that is asked what emulated devices have here."""


def kernel_set_devices(name: str, trust: Trust = KEPT_ONLY) -> list[Profile]:
    """Return a profile for each kernel set that a device offers, in the order of `KERNEL_SETS`.

    Args:
        name: one that `names_all` recognizes.
        trust: the user's decision on profiles of the working directory.

    Raises:
        UserError: there is no such device.

    """
    base = _EMULATED if name == EMULATED_ALL else without_all(name)
    profile = find_profile(base, trust)
    with connect(profile) as device:
        offered = device.kernels
    if name == EMULATED_ALL:
        return [find_profile(_emulated(kernels), trust) for kernels in offered]
    return [replace(profile.with_kernels(kernels), name=f"{base}/{kernels}") for kernels in offered]


def _emulated(kernels: Kernels) -> str:
    """Return the name of the emulated device with a kernel set: for some there is a profile."""
    own = f"emulated-{kernels}"
    return own if own in profile_files() else f"{_EMULATED}/{kernels}"
