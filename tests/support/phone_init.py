"""The first process of a stand-in phone: mounts, the loopback, the cable, and adbd.

`phones.py` starts it as root of new user, network, mount and process namespaces, and it lives as
long as its control socket: when that closes, it ends, and the kernel ends all that runs in them.
Each message on the socket is a word, and is answered by a JSON value once it is done.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

SHELL_USER = "2000"
"""Android's `shell`, which adbd and all that it starts run as."""

ADBD = "/usr/lib/android-sdk/platform-tools/adbd"
ADBD_PORT = 5555
DATA = "data/local/tmp"

_ENVIRONMENT = {
    "ANDROID_DATA": "/data",
    "ANDROID_ROOT": "/system",
    "PATH": "/system/bin",
    "ADBD_PORT": str(ADBD_PORT),
    "QEMU_CPU": "cortex-a76",
}

_AARCH64_MAGIC = (
    r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
)
"""An ELF header of that machine, executable or shared, and which of its bits count."""

_CORE = """processor	: {number}
BogoMIPS	: 100.00
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0b
CPU revision	: 1

"""
"""What /proc/cpuinfo says of a Cortex-A76."""

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_CHUNK_BYTES = 256 * 1024
_END_SECONDS = 10.0


def main() -> int:
    """Run the phone until the control socket closes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--qemu", required=True)
    parser.add_argument("--control", type=int, required=True)
    options = parser.parse_args()
    control = socket.socket(fileno=options.control)
    _raise_loopback()
    _run_aarch64_by(options.qemu)
    _mount(options.root, options.data)
    phone = _Phone(options.root)
    threading.Thread(target=_bury_the_dead, daemon=True).start()
    _answer(control, True)
    while True:
        message, sockets, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            return 0
        _answer(control, phone.do(message.decode(), sockets))


class _Phone:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._user = _shell_user()
        self._adbd: int | None = None
        self._cable: _Cable | None = None

    def do(self, word: str, sockets: list[int]) -> object:
        if word == "plug":
            self._cable = _Cable(socket.socket(fileno=sockets[0]))
        elif word == "unplug" and self._cable is not None:
            self._cable.cut()
            self._cable = None
        elif word == "start adbd":
            self._start_adbd()
        elif word == "kill adbd" and self._adbd is not None:
            os.kill(self._adbd, signal.SIGKILL)
            _await_the_end_of(self._adbd)
        elif word == "kill all":
            os.kill(-1, signal.SIGKILL)  # of this namespace, but for its first process
        elif word == "processes":
            return _command_lines()
        elif word == "traffic":
            return self._cable.carried if self._cable else 0
        return True

    def _start_adbd(self) -> None:
        command = ["nsenter", f"--user=/proc/self/fd/{self._user}", "--preserve-credentials"]
        command += [f"--root={self._root}", "--wd=/", ADBD]
        self._adbd = os.posix_spawnp(command[0], command, _ENVIRONMENT)
        for _ in range(int(_END_SECONDS / 0.02)):
            with suppress(ConnectionRefusedError), _call_adbd():
                return
            time.sleep(0.02)


class _Cable:
    """Takes connections outside of the namespace and carries them to adbd inside."""

    def __init__(self, listener: socket.socket) -> None:
        self.carried = 0
        self._listener = listener
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._connect, daemon=True).start()

    def cut(self) -> None:
        with self._lock:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> None:
        with suppress(OSError):
            while True:
                outside, _ = self._listener.accept()
                try:
                    inside = _call_adbd()
                except OSError:
                    outside.close()
                    continue
                with self._lock:
                    self._ends += [outside, inside]
                for source, target in ((outside, inside), (inside, outside)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._carry, args=(source, target)).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK_BYTES):
                target.sendall(data)
                self.carried += len(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _shell_user() -> int:
    """Return a handle of a user namespace in which we are Android's `shell`.

    One for all that ever runs on the phone, since processes of different ones are strangers.
    """
    command = ["unshare", "--user", f"--map-user={SHELL_USER}", f"--map-group={SHELL_USER}"]
    with subprocess.Popen(
        [*command, "sh", "-c", "echo made; read end"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        handle = os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY)
        os.set_inheritable(handle, True)
        holder.kill()
    return handle


def _call_adbd() -> socket.socket:
    return socket.create_connection(("127.0.0.1", ADBD_PORT))


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        name = struct.pack("16s16x", b"lo")
        flags = struct.unpack_from("h", fcntl.ioctl(handle, _SIOCGIFFLAGS, name), 16)[0]
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _run_aarch64_by(qemu: str) -> None:
    """Register QEMU for programs of that machine, with this user namespace alone (Linux 6.7)."""
    registry = Path("/proc/sys/fs/binfmt_misc")
    _command("mount", "-t", "binfmt_misc", "none", registry)
    # F: the kernel opens QEMU now, so that the phone's own root needs none.
    (registry / "register").write_text(f":aarch64:M::{_AARCH64_MAGIC}:{qemu}:F")


def _mount(root: Path, data: Path) -> None:
    """Make the phone's tree: all of it read-only but /data/local/tmp."""
    _command("mount", "--bind", root, root)
    _command("mount", "-o", "remount,bind,ro", root)
    _command("mount", "--bind", data, root / DATA)
    for name in ("proc", "sys"):  # XNNPACK reads of the processor in both
        _command("mount", "--rbind", f"/{name}", root / name)
    _command("mount", "-t", "tmpfs", "-o", "mode=755", "none", root / "dev")
    cpuinfo = root / "dev" / "cpuinfo"
    cpuinfo.write_text("".join(_CORE.format(number=n) for n in range(os.cpu_count() or 1)))
    _command("mount", "--bind", cpuinfo, root / "proc" / "cpuinfo")
    for name in ("null", "zero", "urandom", "random", "tty"):
        (root / "dev" / name).touch()
        _command("mount", "--bind", f"/dev/{name}", root / "dev" / name)
    (root / "dev" / "pts").mkdir()
    (root / "dev" / "ptmx").symlink_to("pts/ptmx")
    _command(
        "mount", "-t", "devpts", "-o", "newinstance,ptmxmode=666", "none", root / "dev" / "pts"
    )


def _command(*arguments: str | Path) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.strip())


def _bury_the_dead() -> None:
    """Do what a first process does for the orphans that end."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.05)


def _await_the_end_of(pid: int) -> None:
    deadline = time.monotonic() + _END_SECONDS
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _command_lines() -> list[str]:
    """Return the command lines of all that runs here, but for this process."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.parent.name != "1" and (line := path.read_bytes()):
                lines.append(line.rstrip(b"\0").replace(b"\0", b" ").decode())
    return lines


def _answer(control: socket.socket, value: object) -> None:
    control.send(json.dumps(value).encode())


if __name__ == "__main__":
    sys.exit(main())
