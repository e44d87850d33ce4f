"""A device's shell over adb: a phone on a cable, or one that `adb connect` has made known.

The server of adb is the user's own, on the port that the environment names, and is started if it
does not run, as `adb` itself would.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import adbutils

from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_keys import (
    AGENT_DEVICE,
    CACHE,
    CACHE_LIMIT_MIB,
    RUNTIME,
    START_TIMEOUT_SECONDS,
    ProfileKey,
    text,
)
from edgeflare.devices.remote.deployment import RemoteTransport
from edgeflare.devices.remote.remote_shell import (
    Output,
    Remote,
    RemoteCommandFailed,
    RemoteError,
    RemoteLost,
)
from edgeflare.devices.transports.transport_plugin import (
    AddressScheme,
    AgentDeployment,
    Check,
    TransportPlugin,
    check_program,
)
from edgeflare.errors import InfrastructureError, UserError

SERVER_SECONDS = 20.0
"""Seconds for adb's server to start; about 0.1 s, and some more where it finds many devices."""

CONNECT_SECONDS = 10.0
"""Seconds for the server to reach a device by its address; it gives up at about that time."""

ASK_SECONDS = 5.0
"""Seconds for a question to the server alone."""

_LOST = (adbutils.AdbError, EOFError, OSError)
"""What adbutils raises when the server or the device is gone. A command that fails on the device
does not raise, so nothing else is meant by these."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A device as `adb devices` lists it.

    Attributes:
        serial: serial number by which it is named.
        state: "device" where it can be used, "unauthorized" and "offline" where it cannot.

    """

    serial: str
    state: str


def attached() -> list[Attached]:
    """Ask adb's server, which is started if need be, for the devices that it knows.

    Raises:
        RemoteLost: there is no adb, or its server does not start or answer.

    """
    return _listed_by(_client())


def attached_as_far_as_known() -> list[Attached] | None:
    """Ask adb's server, if one runs, for the devices that it knows; None where none runs.

    Raises:
        RemoteLost: something listens where the server should, but does not answer.

    """
    client = _client_of_any()
    return _listed_by(client) if _runs(client) else None


class AdbRemote(Remote):
    """A device that is reached by `adb -s SERIAL`."""

    def __init__(self, profile: Profile) -> None:
        """Prepare; nothing is reached yet.

        Args:
            profile: profile whose `serial` says which device; without one, ANDROID_SERIAL does, as
                for adb itself, and else there must be only one.

        """
        self._profile = profile
        self._serial = profile.serial or os.environ.get("ANDROID_SERIAL") or None
        self._failure_reason = ""

    @property
    def place(self) -> str:
        """Return the profile's name, and the serial unless that says it."""
        name, serial = self._profile.name, self._serial or ""
        return name if serial in name else f"{name} ({serial})"

    @property
    def device(self) -> str:
        """Return the serial, which is the device's own."""
        return f"adb://{self._serial}"

    def open(self) -> None:
        """Find the device, and see that it lets us in."""
        self._failure_reason = ""
        found = attached()
        if self._serial is None:
            self._serial = self._the_only_one(found)
        state = _state(self._serial, found)
        if state != "device" and ":" in self._serial:
            # The server connects to a device by its address, and forgets it when it ends.
            with suppress(*_LOST):
                _client().connect(self._serial, CONNECT_SECONDS)
            state = _state(self._serial, attached())
        if state != "device":
            raise self._unusable(state, found)
        self._client = _client()
        self._device = self._client.device(self._serial)

    def close(self) -> None:
        """Do nothing: adb's server keeps the link, for whoever wants it next."""

    def failure_reason(self) -> str:
        """Return what adb said when the device was lost."""
        return self._failure_reason

    def run(self, script: str, seconds: float, command: str) -> Output:
        """Run a script by the device's own `sh`."""
        with self._link(command):
            # A closed connection ends what runs there, so nothing is left of what was too slow.
            done = self._device.shell2(script, timeout=seconds, v2=True)
        return Output(done.stdout or done.output, done.stderr, done.returncode)

    def push(self, file: Path, target: str, seconds: float) -> None:
        """Copy a file by adb's own protocol."""
        # adbutils lets a client's patience hold for each word of a transfer; over a slow link the
        # last one comes when all before it has arrived.
        device = _client(seconds).device(self._serial)
        with self._link("push"):
            try:
                device.sync.push(file, target, mode=0o600, check=True)
            except adbutils.AdbTimeout:
                raise
            except adbutils.AdbError as error:
                if not self._is_there():
                    raise
                raise RemoteCommandFailed(
                    f"{self.place}: {target} cannot be written there: {error}", "push", str(error)
                ) from None

    @contextmanager
    def forward(self, port: int) -> Iterator[int]:
        """Have adb's server listen on a port that it chooses, and that nobody else has."""
        remote = f"tcp:{port}"
        with self._link("forward"):
            local = int(self._ask(f"forward:norebind:tcp:0;{remote}", answers=True))
        try:
            yield local
        finally:
            with suppress(RemoteError):  # with the device it is gone anyway
                self._unforward(f"tcp:{local}", remote)

    def _unforward(self, local: str, remote: str) -> None:
        """Remove a forward if it is still ours; the server would remove anybody's."""
        with self._link("unforward"):
            ours = [
                item
                for item in self._client.forward_list()
                if (item.serial, item.local, item.remote) == (self._serial, local, remote)
            ]
            if ours:
                self._ask(f"killforward:{local}", answers=False)

    def _ask(self, request: str, *, answers: bool) -> str:
        """Send the server a request about the device; adbutils has none for these two."""
        with self._client.make_connection() as connection:
            connection.send_command(f"host-serial:{self._serial}:{request}")
            connection.check_okay()
            connection.check_okay()
            return str(connection.read_string_block()) if answers else ""

    @contextmanager
    def _link(self, command: str) -> Iterator[None]:
        """Turn what adbutils raises into our own errors."""
        try:
            yield
        except (TimeoutError, adbutils.AdbTimeout):
            if self._is_there():
                raise RemoteCommandFailed(
                    f"{self.place}: {command} did not end in time there", command
                ) from None
            raise self._lost(command, "does not answer") from None
        except _LOST as error:
            raise self._lost(command, " ".join(str(error).split())) from None

    def _lost(self, command: str, said: str) -> RemoteLost:
        self._failure_reason = f"adb says: {said or 'nothing'}"
        return RemoteLost(
            f"{self.place}: the device is gone; {self._failure_reason}", command, said
        )

    def _is_there(self) -> bool:
        try:
            return Attached(self._serial or "", "device") in attached()
        except RemoteLost:
            return False

    def _the_only_one(self, found: list[Attached]) -> str:
        if not found:
            raise RemoteLost(
                f"{self._profile.name}: no phone is attached; plug one in with USB debugging"
                " switched on, or name one by its address, adb://HOST:PORT",
                "devices",
            )
        if len(found) > 1:
            serials = ", ".join(f"adb://{device.serial} ({device.state})" for device in found)
            raise UserError(
                f"{self._profile.name}: several devices are attached; say which: {serials}"
            )
        return found[0].serial

    def _unusable(self, state: str, found: list[Attached]) -> InfrastructureError:
        cure = _CURES.get(state)
        if cure is None:
            return RemoteCommandFailed(
                f"{self.place}: is in the state {state}, not started up", "devices"
            )
        message = f"{self.place}: {cure}"
        if state == "absent":
            others = ", ".join(device.serial for device in found)
            message += f"; attached {'are ' + others if others else 'is none'}"
        if state == "unauthorized":
            return RemoteCommandFailed(message, "devices")
        return RemoteLost(message, "devices")


_CURES = {
    "absent": "no such device is attached",
    "unauthorized": (
        "does not let this host in; unlock its screen and allow USB debugging from this computer"
    ),
    "authorizing": "is about to let this host in; try again",
    "connecting": "is about to connect; try again",
    "offline": "is offline; plug it in again, or `adb reconnect`",
    "no": "this user may not open its USB device; see `adb devices`, and set the udev rules",
}
"""What is wrong with a device in a state, and what to do; "no" is how "no permissions" begins."""


def _state(serial: str, found: list[Attached]) -> str:
    return next((device.state for device in found if device.serial == serial), "absent")


def _client(seconds: float | None = None) -> adbutils.AdbClient:
    """Return a client of a server that runs; it waits for each word, if not told, `ASK_SECONDS`.

    adbutils would start it too, but let it write to our output.
    """
    client = _client_of_any(seconds)
    if not _runs(client):
        _start_server()
    return client


def _client_of_any(seconds: float | None = None) -> adbutils.AdbClient:
    """Return a client of the server, whether that runs or not."""
    host, port = _server_address()
    return adbutils.AdbClient(host, port, seconds or ASK_SECONDS)


def _runs(client: adbutils.AdbClient) -> bool:
    try:
        socket.create_connection((client.host, client.port), ASK_SECONDS).close()
    except OSError:
        return False
    return True


def _listed_by(client: adbutils.AdbClient) -> list[Attached]:
    try:
        return [Attached(info.serial, info.state) for info in client.list()]
    except _LOST as error:
        raise RemoteLost(f"adb: its server does not answer: {error}", "devices") from None


def _server_address() -> tuple[str, int]:
    """Return where adb's server listens, by the variables that `adb` itself reads."""
    name, text = "ADB_SERVER_SOCKET", os.environ.get("ADB_SERVER_SOCKET", "")
    if text:
        scheme, _, address = text.partition(":")
        host, _, port = address.rpartition(":")
    else:
        name, scheme = "ANDROID_ADB_SERVER_PORT", "tcp"
        host = os.environ.get("ANDROID_ADB_SERVER_ADDRESS", "")
        text = port = os.environ.get(name) or "5037"
        if ":" in host:
            name, text = "ANDROID_ADB_SERVER_ADDRESS", host
    if ":" in host:  # adbutils opens no other sockets
        raise UserError(
            f"{name}={text}: adb's server is reached over IPv4 alone: name it by a host or an"
            " address of IPv4, tcp:HOST:PORT"
        )
    if scheme != "tcp" or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise UserError(f"{name}={text}: expected a port, or tcp:HOST:PORT in ADB_SERVER_SOCKET")
    return host or "127.0.0.1", int(port)


def _start_server() -> None:
    try:
        subprocess.run(
            [adbutils.adb_path(), "start-server"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # the server keeps it open for as long as it lives
            timeout=SERVER_SECONDS,
            check=True,
        )
    except (adbutils.AdbError, OSError):
        raise RemoteLost(
            "adb: there is no adb on PATH, nor one that came with adbutils; install"
            " android-tools (`edgeflare doctor` says how)",
            "start-server",
        ) from None
    except subprocess.SubprocessError:
        raise RemoteLost(
            f"adb: its server does not start; `{adbutils.adb_path()} start-server` says why",
            "start-server",
        ) from None


def _status(profile: Profile) -> str:
    phones = attached_as_far_as_known()
    if phones is None:
        return "adb's server does not run: `edgeflare devices check adb://` starts it"
    if profile.serial is None:
        return f"{len(phones)} attached" if phones else "none attached"
    state = next(
        (phone.state for phone in phones if phone.serial == profile.serial), "not attached"
    )
    return f"{profile.serial} {'attached' if state == 'device' else state}"


def _check_adb() -> Check:
    """Look for adb's client; adbutils brings one for most systems."""
    mend = "apt-get install adb"
    try:
        return check_program("adb, for phones", adbutils.adb_path(), "version", mend)
    except adbutils.AdbError:
        return Check("adb, for phones", "", False, mend)


PLUGIN = TransportPlugin(
    create=lambda profile: RemoteTransport(profile, AdbRemote(profile)),
    keys=(
        RUNTIME,
        ProfileKey("serial", text("what `adb devices` calls the device"), needs_trust=False),
        CACHE,
        CACHE_LIMIT_MIB,
        AGENT_DEVICE,
        START_TIMEOUT_SECONDS,
    ),
    needs_trust=False,
    scheme=AddressScheme(
        "adb", "adb://[SERIAL]", lambda serial: {"serial": serial or None}, extends="android-arm64"
    ),
    attached=lambda: [f"adb://{device.serial}" for device in attached_as_far_as_known() or ()],
    status=_status,
    checks=lambda: [_check_adb()],
    deployment=AgentDeployment(
        shell=AdbRemote,
        cache="/data/local/tmp/edgeflare",
        bundle_targets={"aarch64": "android-arm64", "arm64": "android-arm64"},
        without_bundle="use a phone or an emulator image with an arm64 processor",
    ),
)
