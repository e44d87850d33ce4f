"""A board that is reached by ssh: a real sshd on loopback, with a home and keys of its own.

What is stood in for: the board's machine, which is this one, and the path to the user's
configuration, which ssh takes from the password file; a script named `ssh` on PATH hands the real
client another one.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from free_port import free_port
from processes import descendants, kill, process_file

SSHD = "/usr/sbin/sshd"
"""Which wants to be called by its whole path, and is not on every user's PATH."""

_SECONDS = 200.0


class BoardUnavailable(Exception):  # noqa: N818 - a reason to skip
    """This machine lacks what a board is made of."""


class Board:
    """The device side of ssh, in one folder; `name` is its alias in the user's configuration."""

    name = "board"

    def __init__(self, folder: Path) -> None:
        if not Path(SSHD).exists() or shutil.which("ssh") is None:
            raise BoardUnavailable(
                f"there is no {SSHD} or no ssh: install OpenSSH's server and client"
            )
        self.folder = folder
        self.home = folder / "the home"  # with a space, which a shell would split at
        self.tools = folder / "bin"
        self.home.mkdir()
        self.tools.mkdir()
        for key in ("host_key", "user_key", "other_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(command, check=True)
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        self.port = free_port()
        host_key = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {host_key}")
        self._write_configurations()
        self._sshd: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def cache(self) -> Path:
        """The folder that profiles use when they name none."""
        return self.home / ".cache" / "edgeflare" / "device"

    def start(self) -> None:
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with open(self.folder / "sshd.log", "ab") as log:
            command = [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
            self._sshd = subprocess.Popen(command, stderr=log)
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, (self.folder / "sshd.log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        """Take the board off the network: nobody gets in, and who is in is cut off."""
        if self._sshd is not None:
            self.cut()
            self._sshd.terminate()
            self._sshd.wait()
            self._sshd = None

    def cut(self) -> int:
        """Cut all connections, without a word to the other side; return how many there were."""
        assert self._sshd is not None
        sessions = _sessions(self._sshd.pid)
        kill(sessions)
        return len(sessions)

    def connections(self) -> int:
        """How many connections there are."""
        assert self._sshd is not None
        return len(_sessions(self._sshd.pid))

    def kill_agents(self) -> None:
        kill(self.agents())

    def agents(self) -> list[int]:
        """The processes of agents that this board runs, workers apart."""
        return [pid for pid in _pids() if str(self.home).encode() in _words(pid)]

    def close(self) -> None:
        self.stop()
        self.kill_agents()

    def lose_the_key(self) -> None:
        """Let the user have another key than the one that opens."""
        self.configure("other_key")

    def forget(self) -> None:
        """Let the user have never been here."""
        (self.folder / "known_hosts").write_text("")

    def _write_configurations(self) -> None:
        self._write(
            self.folder / "sshd_config",
            f"""
            Port {self.port}
            ListenAddress 127.0.0.1
            HostKey {self.folder}/host_key
            AuthorizedKeysFile {self.folder}/authorized_keys
            PidFile none
            StrictModes no
            UsePAM no
            PasswordAuthentication no
            KbdInteractiveAuthentication no
            PermitRootLogin yes
            PrintMotd no
            SetEnv "HOME={self.home}" "EDGEFLARE_AGENT_DEVICE={self.name} of {self.folder}"
            """,
        )
        self.configure("user_key")
        client = shutil.which("ssh")
        script = f'#!/bin/sh\nexec "{client}" -F "{self.folder}/config" "$@"\n'
        (self.tools / "ssh").write_text(script)
        (self.tools / "ssh").chmod(0o755)

    def configure(self, key: str, more: str = "") -> None:
        """Write the user's configuration, with that key."""
        self._write(
            self.folder / "config",
            f"""
            Host {self.name}
            HostName 127.0.0.1
            Port {self.port}
            {more}
            Host *
            User {getpass.getuser()}
            IdentityFile {self.folder}/{key}
            IdentitiesOnly yes
            IdentityAgent none
            UserKnownHostsFile {self.folder}/known_hosts
            GlobalKnownHostsFile none
            StrictHostKeyChecking yes
            """,
        )

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text("\n".join(line.strip() for line in text.splitlines()))
        path.chmod(0o600)


def _sessions(listener: int) -> list[int]:
    """The processes of sshd below its listener."""
    below = reversed(descendants(listener))
    return [pid for pid in below if process_file(pid, "comm").startswith(b"sshd")]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _words(pid: int) -> bytes:
    words = process_file(pid, "cmdline")
    return words if b"edgeflare_agent" in words else b""
