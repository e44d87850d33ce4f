"""Looking into a model on a device: any inputs and outputs, one run at a time, every tensor."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress

from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.profile import Profile
from edgeflare.devices.session import open_request
from edgeflare.devices.stream import ATTEMPTS, SLACK_SECONDS
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.model_probe import ProbeFailed, ProbeRefused, Values, packed, unpacked
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import crc32

_KINDS = {
    wire.InputFailure.KIND_CRASH: "crash",
    wire.InputFailure.KIND_HANG: "hang",
}


class DeviceProbe:
    """A `Probe` on a device.

    Attributes:
        given: positions, among the tensors of the graph, of what it takes.
        made: likewise of what `run` returns.
        captures: whether `made` is what every operator puts out.
        runs: how often it was run, each a device query.

    """

    def __init__(
        self,
        connection: Connection,
        profile: Profile,
        content: bytes,
        *,
        capture: bool = False,
    ) -> None:
        """Upload a model, if the agent does not have it, and open it there.

        Args:
            connection: connection to the agent.
            profile: how models run there.
            content: a `.tflite` file.
            capture: return what every operator puts out; an agent older than protocol 1.1 returns
                the model's outputs all the same.

        Raises:
            ProbeRefused: the device's runtime refuses the model or the options.

        """
        self._connection = connection
        self._profile = profile
        sha256 = hashlib.sha256(content).hexdigest()
        request = open_request(sha256, self._profile)
        request.capture = capture
        try:
            opened = connection.open_model(content, request)
        except UserError as refused:
            raise ProbeRefused(str(refused)) from None
        self._session_id = opened.session_id
        self._specs = tuple(opened.outputs)
        self.captures = opened.captures
        self.given = tuple(spec.index for spec in opened.inputs)
        self.made = tuple(spec.index for spec in self._specs)
        self.runs = 0

    def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
        """Run the model once; see `Probe`."""
        payload = packed(inputs)
        seconds = self._profile.input_timeout_seconds * ATTEMPTS + SLACK_SECONDS
        request = wire.CaptureRequest(
            session_id=self._session_id, payload=payload, payload_crc32=crc32(payload)
        )
        self.runs += 1
        first, *rest = self._connection.capture(request, seconds)
        self._connection.check_leased(first)
        outputs = b"".join(part.chunk for part in rest)
        if (
            first.payload_crc32 != request.payload_crc32
            or first.outputs_crc32 != crc32(outputs)
            or first.size_bytes != len(outputs)
        ):
            raise DeviceLost(f"{self._connection.name}: a reply arrived damaged")
        if first.failures:
            failure = first.failures[0]
            raise ProbeFailed(f"{_KINDS.get(failure.kind, 'error')}: {failure.detail}")
        return unpacked(outputs, self._specs)

    def close(self) -> None:
        """End the session and its worker on the device."""
        if self._session_id:
            with suppress(InfrastructureError):  # a lost device holds no session
                self._connection.close_session(self._session_id)
            self._session_id = ""

    def __enter__(self) -> DeviceProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
