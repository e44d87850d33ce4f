"""What a slow or broken link of adb means, with a server that speaks its protocol as it is told."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from edgeflare.devices.profile import Profile
from edgeflare.devices.remote.remote_shell import RemoteCommandFailed
from edgeflare.devices.transports import adb

SERIAL = "0123456789"
PROFILE = Profile(name="phone", transport="adb", serial=SERIAL)


class Server:
    """An adb server with one phone, which keeps what is pushed, after so many seconds."""

    def __init__(self, push_seconds: float = 0.0, mute: str = "") -> None:
        self.pushed: dict[str, bytes] = {}
        self._push_seconds = push_seconds
        self._mute = mute
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as words:
            while length := words.read(4):
                request = words.read(int(length, 16)).decode()
                if self._mute and self._mute in request:
                    self._ended.wait(10)
                    return
                connection.sendall(b"OKAY" + self._answer(request))
                if request == "sync:":
                    self._sync(connection, words.read)
                    return

    def _answer(self, request: str) -> bytes:
        if request == "host:version":
            return _block("0029")
        if request == "host:devices":
            return _block(f"{SERIAL}\tdevice\n")
        if ":forward:" in request:
            return b"OKAY" + _block("4242")
        if ":tport:" in request:
            return bytes(8)
        return b""

    def _sync(self, connection: socket.socket, read: Callable[[int], bytes]) -> None:
        kind, path = read(4), read(struct.unpack("<I", read(4))[0]).decode()
        if kind == b"STAT":
            size = len(self.pushed.get(path, b""))
            connection.sendall(struct.pack("<4sIII", kind, 0o100600 if size else 0, size, 1))
            return
        content = b""
        while read(4) == b"DATA":
            content += read(struct.unpack("<I", read(4))[0])
        self.pushed[path.rpartition(",")[0]] = content
        if not self._ended.wait(self._push_seconds):
            connection.sendall(b"OKAY" + bytes(4))


def _block(text: str) -> bytes:
    return f"{len(text):04x}{text}".encode()


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.delenv("ADB_SERVER_SOCKET", raising=False)
    monkeypatch.delenv("ANDROID_ADB_SERVER_ADDRESS", raising=False)
    monkeypatch.setattr(adb, "ASK_SECONDS", 0.5)
    with ExitStack() as stack:

        def serve(push_seconds: float = 0.0, mute: str = "") -> Server:
            server = Server(push_seconds, mute)
            stack.callback(server.close)
            monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
            return server

        yield serve


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / "bundle"
    file.write_bytes(bytes(range(256)) * 100)
    return file


@pytest.mark.slow
def test_a_push_may_take_longer_than_a_question(start: Callable[..., Server], bundle: Path) -> None:
    server = start(push_seconds=1.5)
    with adb.AdbRemote(PROFILE) as phone:
        phone.push(bundle, "/data/x", 30.0)
    assert server.pushed == {"/data/x": bundle.read_bytes()}


@pytest.mark.slow
def test_a_push_that_takes_too_long_is_said_to(start: Callable[..., Server], bundle: Path) -> None:
    start(push_seconds=20.0)
    with adb.AdbRemote(PROFILE) as phone:
        began = time.monotonic()
        with pytest.raises(RemoteCommandFailed, match="push did not end in time there"):
            phone.push(bundle, "/data/x", 0.7)
        assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_forward_that_is_not_taken_back_in_time_hides_no_other_error(
    start: Callable[..., Server],
) -> None:
    start(mute="list-forward")

    def fail() -> None:
        with adb.AdbRemote(PROFILE) as phone, phone.forward(1) as port:
            assert port == 4242
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
