"""Phones without a phone: the real adb server, and the real adbd as the device side.

What is real: the adb client and server, the adbd that answers them, its shell protocol, pushes and
forwards; Android's shell and commands, mksh and toybox; the agent's bundle and the ARM code in it,
which QEMU runs as a Cortex-A76 because the kernel is told to, and not by anything that the bundle
would know of.

What is stood in for: the rest of Android. adbd is Debian's build, which asks for no authorization;
it and the commands are of the host's architecture, and `getprop`, `uname` and /proc/cpuinfo say
what a phone's would. The cable is TCP over loopback instead of USB.

Each phone lives in user, network, mount and process namespaces of its own, which need no root.
adbd, which listens on all interfaces, is reached through the cable alone; the phone's tree is
read-only but for /data/local/tmp; and when it is switched off nothing of it is left.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import adbutils

import phone_init
from phone_parts import PhoneUnavailable, phone_root

_PORTS = range(15600, 25600)
"""Below those that the kernel gives away, so that a port is still ours when it is plugged again."""

_ANSWER_SECONDS = 200.0


class AdbServer:
    """An adb server of the tests' own, on a port of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.port = _free_port()

    @property
    def environment(self) -> dict[str, str]:
        """What leads an adb client, adbutils or edgeflare to this server; and a home of its own."""
        home = Path.home()
        return {
            "ADB_EMU": "0",  # else it takes a phone on a neighbouring port for an emulator
            "ADB_LOCAL_TRANSPORT_MAX_PORT": "5553",
            "ADB_MDNS": "0",
            "ADB_SERVER_SOCKET": f"tcp:{self.port}",
            "ADB_USB": "0",  # the phones on this machine's desk are none of ours
            "ANDROID_ADB_SERVER_PORT": str(self.port),
            "HOME": str(self._home),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(home / ".cache")),
        }

    def start(self) -> None:
        self.adb("start-server")

    def kill(self) -> None:
        """Kill the server, as somebody does who types `adb kill-server`."""
        self.adb("kill-server")

    def connect(self, serial: str) -> None:
        """Do what a cable does of itself: let the server know of a phone."""
        self.adb("connect", serial)

    def forwards(self) -> list[str]:
        """Return who forwards what to where, one line each."""
        return self.adb("forward", "--list").split("\n")[:-2]

    def adb(self, *arguments: str) -> str:
        """Call the adb client; return what it says, also where it fails."""
        done = subprocess.run(
            [adb_path(), *arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        return done.stdout.decode()

    def __enter__(self) -> AdbServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class Phone:
    """A stand-in phone, on while it is entered."""

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        self.serial = f"127.0.0.1:{self.port}"
        self.data = folder / "data"
        self._folder = folder
        self._init: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def switch_on(self) -> None:
        """Start the phone, with its adbd running and its cable plugged in.

        Raises:
            PhoneUnavailable: this machine cannot.

        """
        qemu, root = _qemu(), phone_root()
        self.data.mkdir(parents=True, exist_ok=True)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(_ANSWER_SECONDS)
        command = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--mount-proc"]
        command += ["--pid", "--fork", "--kill-child", sys.executable, phone_init.__file__]
        command += ["--root", str(root), "--data", str(self.data), "--qemu", qemu]
        command += ["--control", str(theirs.fileno())]
        log = self._folder / "log"
        with theirs, log.open("wb") as words:
            try:
                self._init = subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=words
                )
            except OSError as error:
                raise PhoneUnavailable(
                    f"no stand-in phone: {command[0]}: {error.strerror}"
                ) from None
        if not self._control.recv(64):
            self.switch_off()
            raise PhoneUnavailable(f"no stand-in phone: {log.read_text().strip()[-300:]}")
        self.start_adbd()
        self.plug()

    def switch_off(self) -> None:
        """End all that runs on the phone."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._init is not None:
            self._init.wait(_ANSWER_SECONDS)
            self._init = None

    def plug(self) -> None:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port))
            listener.listen()
            self._ask("plug", listener)

    def unplug(self) -> None:
        """Pull the cable; what runs on the phone goes on."""
        self._ask("unplug")

    def start_adbd(self) -> None:
        self._ask("start adbd")

    def kill_adbd(self) -> None:
        """Kill adbd alone; an agent that was detached from it goes on."""
        self._ask("kill adbd")

    def kill_all(self) -> None:
        """Kill whatever runs, as a phone that starts anew does."""
        self._ask("kill all")

    def processes(self) -> list[str]:
        """Return the command lines of what runs on the phone."""
        lines: list[str] = self._ask("processes")
        return lines

    def agents(self) -> list[str]:
        """Return the command lines of the agents, and of their workers, that run on the phone."""
        return [line for line in self.processes() if "edgeflare_agent" in line]

    def traffic(self) -> int:
        """Return how many bytes the cable has carried since it was plugged in."""
        carried: int = self._ask("traffic")
        return carried

    def __enter__(self) -> Phone:
        self.switch_on()
        return self

    def __exit__(self, *_: object) -> None:
        self.switch_off()

    def _ask(self, word: str, handed: socket.socket | None = None) -> Any:
        assert self._control is not None, "the phone is off"
        sockets = [handed.fileno()] if handed else []
        socket.send_fds(self._control, [word.encode()], sockets)
        return json.loads(self._control.recv(1 << 20))


@contextmanager
def unauthorized_phone() -> Iterator[str]:
    """Yield the serial of a phone that has not let this host in.

    The one thing that Debian's adbd does not do, so this is stood in for: it asks for a proof that
    it knows the host until it is shown a new key, and then waits for a hand to allow it.
    """
    with socket.create_server(("127.0.0.1", _free_port())) as listener, ExitStack() as lines:

        def take() -> None:
            with suppress(OSError):
                while True:
                    _ask_who(lines.enter_context(listener.accept()[0]))

        taking = threading.Thread(target=take)
        taking.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        taking.join()


_HEADER = struct.Struct("<4s5I")
"""Of adb's messages: command, two arguments, length and sum of what follows, the command's bits
inverted."""

_TOKEN, _PUBLIC_KEY = 1, 3


def _ask_who(line: socket.socket) -> None:
    token = bytes(range(20))
    while header := line.recv(_HEADER.size, socket.MSG_WAITALL):
        command, kind, _, length, _, _ = _HEADER.unpack(header)
        line.recv(length, socket.MSG_WAITALL)
        if (command, kind) == (b"AUTH", _PUBLIC_KEY):
            return
        inverted = int.from_bytes(b"AUTH", "little") ^ 0xFFFFFFFF
        line.sendall(_HEADER.pack(b"AUTH", _TOKEN, 0, len(token), sum(token), inverted) + token)


def adb_path() -> str:
    """Return the adb client that adbutils brings, whatever else is installed."""
    return str(Path(adbutils.__file__).parent / "binaries" / "adb")


def _qemu() -> str:
    for name in ("qemu-aarch64-static", "qemu-aarch64"):
        if path := shutil.which(name):
            return path
    raise PhoneUnavailable("no stand-in phone: QEMU is absent; `apt-get install qemu-user-static`")


def _free_port() -> int:
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")
