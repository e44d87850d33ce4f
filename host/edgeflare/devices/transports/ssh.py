"""A device's shell over ssh: the user's own OpenSSH client, with their configuration and keys.

One master connection carries everything else, so that a password agent or a slow handshake is
waited for once. It runs `cat` on the device, which ends with its standard input: no connection
outlives this process, however that ends.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_keys import (
    AGENT_DEVICE,
    CACHE,
    CACHE_LIMIT_MIB,
    PYTHON,
    RUNTIME,
    START_TIMEOUT_SECONDS,
    AcceptedValues,
    ProfileKey,
    read_text,
)
from edgeflare.devices.remote.deployment import RemoteTransport
from edgeflare.devices.remote.remote_shell import Output, Remote, RemoteCommandFailed, RemoteLost
from edgeflare.devices.transports.first_words import read_until
from edgeflare.devices.transports.scratch import ScratchFolder
from edgeflare.devices.transports.transport_plugin import (
    STATUS_SECONDS,
    AddressScheme,
    AgentDeployment,
    TransportPlugin,
    check_program,
)
from edgeflare.errors import UserError

CONNECT_SECONDS = 10
"""Seconds for one TCP connection and what ssh says first; on one network it takes milliseconds."""

OPEN_SECONDS = 45.0
"""Seconds for the whole way, through jump hosts and agents that ask for a touch."""

ALIVE_SECONDS = 5
"""Seconds between questions whether the other side is there; three missed end the connection."""

CLOSE_SECONDS = 2.0
"""Seconds from closed standard input to the end of the connection: a round trip or two."""

_HELLO = "edgeflare is in"

_CONTROL_PATH_LIMIT = 80
"""A socket's path may take 104 bytes on some systems, and ssh appends 17 while it makes one."""

_FORWARD_TRIES = 5


class SshRemote(Remote):
    """A device that is reached by `ssh HOST`."""

    def __init__(self, profile: Profile, connect_seconds: int | None = None) -> None:
        """Prepare; nothing is reached yet.

        Args:
            profile: profile whose `host` is `[USER@]HOST[:PORT]`, or an alias of the user's
                configuration.
            connect_seconds: time that one connection may take; None for what the profile says, and
                else CONNECT_SECONDS.

        """
        self._profile = profile
        self._connect_seconds = (
            connect_seconds or profile.connect_timeout_seconds or CONNECT_SECONDS
        )
        self._scratch: ScratchFolder | None = None
        self._master: subprocess.Popen[bytes] | None = None
        self._failure_reason = ""

    @property
    def place(self) -> str:
        """Return the profile's name, and its host unless that says it."""
        host = self._profile.host or ""
        return (
            self._profile.name if host in self._profile.name else f"{self._profile.name} ({host})"
        )

    @property
    def device(self) -> str:
        """Return the host as the user names it; by two names it counts as two."""
        return f"ssh://{self._profile.host}"

    def open(self) -> None:
        """Connect, and wait until a command runs on the other side."""
        host = self._profile.host
        if host is None:
            raise UserError(
                f"{self._profile.source or self._profile.name}: host is missing; expected"
                ' host = "[USER@]HOST[:PORT]", or --device ssh://[USER@]HOST[:PORT]'
            )
        self._failure_reason = ""
        self._scratch = ScratchFolder()
        try:
            self._connect(self._scratch.path, host)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        if self._master is not None:
            self._failure_reason = self.failure_reason()
            master = self._master
            assert master.stdin is not None and master.stdout is not None  # noqa: S101, PT018
            master.stdin.close()
            try:
                master.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:  # the other side no longer hears
                master.terminate()
                master.wait()
            master.stdout.close()
            self._master = None
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    def failure_reason(self) -> str:
        """Return what ssh said, if the connection ended by itself."""
        if self._master is None or self._master.poll() is None:
            return self._failure_reason
        return f"the ssh connection ended: {_last_line(self._log()) or 'ssh says nothing'}"

    def run(self, script: str, seconds: float, command: str) -> Output:
        """Run a script by `sh`, whatever the user's shell over there is."""
        done = self._run_over_master(["-T", "device", "sh"], seconds, command, script.encode())
        return Output(done.stdout.decode(errors="replace"), _text(done.stderr), done.returncode)

    def push(self, file: Path, target: str, seconds: float) -> None:
        """Copy a file."""
        with file.open("rb") as content:
            done = self._run_over_master(
                ["-T", "device", f"cat > {shlex.quote(target)}"], seconds, "push", content
            )
        if done.returncode:
            reason = _last_line(_text(done.stderr)) or f"exit code {done.returncode}"
            raise RemoteCommandFailed(
                f"{self.place}: {target} cannot be written there: {reason}",
                "push",
                _text(done.stderr),
                done.returncode,
            )

    @contextmanager
    def forward(self, port: int) -> Iterator[int]:
        """Have the master listen on a port that is free."""
        local, way = self._forward(port)
        try:
            yield local
        finally:
            with suppress(RemoteLost, RemoteCommandFailed):  # with the connection it is gone anyway
                self._run_over_master(
                    ["-O", "cancel", "-L", way, "device"], CLOSE_SECONDS, "unforward"
                )

    def _forward(self, port: int) -> tuple[int, str]:
        for _ in range(_FORWARD_TRIES):
            local = _free_port()
            way = f"127.0.0.1:{local}:127.0.0.1:{port}"
            arguments = ["-O", "forward", "-L", way, "device"]
            done = self._run_over_master(arguments, CONNECT_SECONDS, "forward")
            if not done.returncode:
                return local, way
        reason = _last_line(_text(done.stderr))
        raise RemoteCommandFailed(
            f"{self.place}: no port can be forwarded there: {reason}",
            "forward",
            _text(done.stderr),
            done.returncode,
        )

    def _connect(self, folder: Path, host: str) -> None:
        control = folder / "ssh"
        if len(os.fsencode(control)) > _CONTROL_PATH_LIMIT:
            raise UserError(
                f"{folder.parent}: the path is too long for the socket that ssh makes there; set"
                " TMPDIR to a shorter one"
            )
        # fmt: off
        command = [
            "ssh", "-T", "-a", "-x", "-S", str(control),
            "-o", f"ConnectTimeout={self._connect_seconds}",
            *(part for option in _MASTER for part in ("-o", option)),
            *_destination(host), f"echo '{_HELLO}'; exec cat",
        ]
        # fmt: on
        with (folder / "log").open("wb") as log:
            try:
                self._master = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,  # a Ctrl-C at the terminal is for the host alone
                )
            except OSError:
                raise UserError(
                    f"{self._profile.name}: there is no ssh on PATH; install OpenSSH's client"
                    " (`edgeflare doctor` says how)"
                ) from None
        self._wait_until_in(self._master)

    def _wait_until_in(self, master: subprocess.Popen[bytes]) -> None:
        assert master.stdout is not None  # noqa: S101 - for the type checker
        seconds = max(OPEN_SECONDS, self._connect_seconds)
        try:
            read_until(_HELLO.encode(), master.stdout.fileno(), seconds)
        except TimeoutError:
            raise RemoteLost(f"{self.place}: ssh was not in within {seconds:g} s", "ssh") from None
        except EOFError:
            master.wait()
            raise self._refused(master.returncode) from None

    def _refused(self, code: int) -> RemoteLost | RemoteCommandFailed:
        """Return what it means that ssh did not come in, and what to do."""
        log = self._log()
        said = _last_line(log) or f"ssh ended with exit code {code}"
        self._failure_reason = ""
        for sign, cure in _CURES.items():
            if sign in log:
                advice = cure.format(host=self._profile.host)
                return RemoteCommandFailed(f"{self.place}: {said}; {advice}", "ssh", log, code)
        return RemoteLost(
            f"{self.place}: cannot be reached: {said}; is it on, and does"
            f" `ssh {' '.join(_destination(self._profile.host or ''))}` work?",
            "ssh",
            log,
            code,
        )

    def _run_over_master(
        self, arguments: Sequence[str], seconds: float, command: str, stdin: bytes | IO[bytes] = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run ssh over the master; it must never make a connection of its own."""
        if self._master is None or self._scratch is None or self._master.poll() is not None:
            raise RemoteLost(f"{self.place}: {self.failure_reason() or 'not connected'}", command)
        control = str(self._scratch.path / "ssh")
        whole = ["ssh", "-F", "none", "-S", control, "-o", "ProxyCommand=false", *arguments]
        given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        try:
            done: subprocess.CompletedProcess[bytes] = subprocess.run(
                whole,
                capture_output=True,
                timeout=seconds,
                check=False,
                start_new_session=True,
                **given,
            )
        except subprocess.TimeoutExpired:
            raise RemoteCommandFailed(
                f"{self.place}: {command} did not end within {seconds:g} s there", command
            ) from None
        if done.returncode == _SSH_FAILED and self._is_lost():
            raise RemoteLost(f"{self.place}: {self.failure_reason()}", command, _text(done.stderr))
        return done

    def _is_lost(self) -> bool:
        """Tell whether the connection has ended, or is about to."""
        assert self._master is not None  # noqa: S101 - for the type checker
        try:
            self._master.wait(1.0)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _log(self) -> str:
        if self._scratch is None:
            return ""
        return (self._scratch.path / "log").read_text(encoding="utf-8", errors="replace")


_MASTER = (
    "BatchMode=yes",
    "ControlMaster=yes",
    "ControlPersist=no",
    f"ServerAliveInterval={ALIVE_SECONDS}",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
    # What the user's configuration may say for their own sessions would be in the way of ours.
    "RemoteCommand=none",
    "RequestTTY=no",
    "ClearAllForwardings=yes",
    "PermitLocalCommand=no",
)
"""Options of the master; all others are the user's."""

_SSH_FAILED = 255

_CURES = {
    "Host key verification failed": (
        "run `ssh {host}` once by hand, and accept its key if it is the right one"
    ),
    "Permission denied": "give it your key, for example with `ssh-copy-id {host}`",
    "Too many authentication failures": "name the key for this host in ~/.ssh/config",
    "Bad configuration option": "correct ~/.ssh/config",
    "Bad owner or permissions": "correct ~/.ssh",
}
"""What ssh says where trying again would not help, and what does."""


def _destination(host: str) -> list[str]:
    """Return ssh's arguments for `[USER@]HOST[:PORT]`, with an IPv6 address in brackets.

    Raises:
        ValueError: it names no host, but an option.

    """
    name, colon, port = host.rpartition(":")
    if not (colon and port.isascii() and port.isdigit()) or (":" in name and name[-1] != "]"):
        name, port = host, ""
    user, at, address = name.rpartition("@")
    destination = f"{user}{at}{address.strip('[]')}"
    if destination.startswith("-"):  # which ssh would take for an option
        raise ValueError(f"{destination!r} is no host")
    return [*(["-p", port] if port else []), destination]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _text(stream: bytes) -> str:
    return stream.decode(errors="replace")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _status(profile: Profile) -> str:
    if profile.host is None:
        return "names no host"
    with SshRemote(profile, STATUS_SECONDS):
        return "reachable"


def _read_host(folder: Path, value: object) -> str:
    host = read_text(folder, value)
    if set(host) & set(" \t\n"):
        raise ValueError
    _destination(host)
    return host


def _read_scheme(host: str) -> Mapping[str, object]:
    try:
        return {"host": _read_host(Path(), host)}
    except ValueError:
        raise ValueError("expected ssh://[USER@]HOST[:PORT]") from None


PLUGIN = TransportPlugin(
    create=lambda profile: RemoteTransport(profile, SshRemote(profile)),
    keys=(
        PYTHON,
        RUNTIME,
        # Not needed in a profile, since it may come with the address.
        ProfileKey(
            "host", AcceptedValues('what `ssh` is to connect to, "[USER@]HOST[:PORT]"', _read_host)
        ),
        CACHE,
        CACHE_LIMIT_MIB,
        AGENT_DEVICE,
        START_TIMEOUT_SECONDS,
    ),
    needs_trust=False,
    scheme=AddressScheme("ssh", "ssh://[USER@]HOST", _read_scheme, extends="linux-aarch64-ssh"),
    status=_status,
    checks=lambda: [check_program("ssh", "ssh", "-V", "apt-get install openssh-client")],
    deployment=AgentDeployment(
        shell=SshRemote,
        cache="~/.cache/edgeflare/device",
        bundle_targets={
            "aarch64": "linux-aarch64",
            "arm64": "linux-aarch64",
            "x86_64": "linux-x86_64",
            "amd64": "linux-x86_64",
        },
        without_bundle="with a Python and a runtime there, name it in the profile as python",
    ),
)
