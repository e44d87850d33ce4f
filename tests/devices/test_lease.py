"""Leases: one holder at a time, none that outlives its process; and the names of what is left."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgeflare.devices import lease as lease_names
from edgeflare.devices.lease import is_own, is_stale, lease, new_name
from edgeflare.errors import InfrastructureError, UserError

SECRET = "open sesame, open sesame"  # noqa: S105

HOLD = """
import sys
from edgeflare.devices.lease import lease
with lease(sys.argv[1]) as held:
    if len(sys.argv) > 2:
        held.keep(sys.argv[2])
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def hold(device: str, *secret: str) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, device, *secret],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_held_device_is_refused_with_its_holder_named() -> None:
    holder = hold("adb:x")
    words = f"adb:x is in use by another campaign .process {holder.pid}.: wait"
    with pytest.raises(InfrastructureError, match=words) as refused, lease("adb:x"):
        pass
    assert "\n" not in str(refused.value)
    holder.kill()  # and then holds nothing
    holder.communicate()
    with lease("adb:x"):
        pass


def test_one_device_named_twice_is_the_users_mistake() -> None:
    with (
        lease("adb:x"),
        pytest.raises(UserError, match="two of the devices named are the same one: adb:x"),
        lease("adb:x"),
    ):
        pass


def test_a_file_system_without_locks_has_no_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("edgeflare.devices.lease.fcntl.flock", refuse)
    with lease("adb:x"):
        pass


def test_a_device_whose_name_is_longer_than_that_of_a_file_has_a_lease_of_its_own() -> None:
    long = "grpc://" + "é" * 63 + ".example" * 20
    with lease(f"{long}:1"), lease(f"{long}:2"), pytest.raises(UserError), lease(f"{long}:1"):
        pass


def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with (
        pytest.raises(InfrastructureError, match="cannot be written"),
        lease("adb:x"),
    ):
        pass


def test_another_device_is_free_and_so_is_one_that_was_given_back() -> None:
    with lease("adb:x"), lease("ssh:../../x"):
        pass
    with lease("adb:x"):
        pass


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_place_of_the_lease_leads_nowhere(link: Any, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "edgeflare" / "leases"
    victim.write_text("precious")
    folder.mkdir(parents=True)
    link(victim, folder / "adb%3Ax.lock")
    with (
        pytest.raises(InfrastructureError, match=r"adb%3Ax.lock is a link, .*remove it"),
        lease("adb:x"),
    ):
        pass
    assert victim.read_text() == "precious"


def test_a_lease_says_who_holds_it_now_alone(tmp_path: Path) -> None:
    file = tmp_path / "edgeflare" / "leases" / "adb%3Ax.lock"
    file.parent.mkdir(parents=True)
    file.write_text("12345678901234567890")
    with lease("adb:x"):
        assert file.read_text() == str(os.getpid())


def test_the_secret_of_a_process_that_was_killed_is_the_next_ones_to_use() -> None:
    holder = hold("adb:x", SECRET)
    holder.kill()
    holder.communicate()

    for _ in range(2):  # also when the first to come makes nothing of it
        with lease("adb:x") as held:
            assert held.former_secret == SECRET
    with lease("adb:x") as held:
        held.keep(SECRET[::-1])
    with lease("adb:x") as held:
        assert held.former_secret == SECRET[::-1]
        held.forget()
    with lease("adb:x") as held:
        assert held.former_secret == ""


@pytest.mark.parametrize(
    "damage",
    [b"\xff\xfe", b"12\nnobody \xff", b"\0" * 64],
    ids=["no process", "no secret", "zeros"],
)
def test_a_file_that_was_damaged_is_written_anew(damage: bytes, tmp_path: Path) -> None:
    file = tmp_path / "edgeflare" / "leases" / "adb%3Ax.lock"
    file.parent.mkdir(parents=True)
    file.write_bytes(damage)
    with lease("adb:x") as held:
        assert held.former_secret == ""
        assert file.read_text() == str(os.getpid())


def test_a_holder_whose_file_was_damaged_is_refused_all_the_same(tmp_path: Path) -> None:
    holder = hold("adb:x")
    (tmp_path / "edgeflare" / "leases" / "adb%3Ax.lock").write_bytes(b"\xff\x1b[2J")
    with (
        pytest.raises(InfrastructureError, match=r"another campaign \(process \?\): wait"),
        lease("adb:x"),
    ):
        pass
    holder.communicate()


@pytest.mark.parametrize("secret", ["short", "x" * 129, "\u00e4" * 22, "\x1b" * 22])
def test_what_no_agent_would_take_for_a_secret_is_none(secret: str) -> None:
    with lease("adb:x") as held:
        held.keep(secret)
    for _ in range(2):
        with lease("adb:x") as held:
            assert held.former_secret == ""


def test_the_secret_of_a_process_that_lives_is_nobody_elses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lock of a file system that several hosts share may hold on one of them alone."""
    holder = hold("adb:x", SECRET)
    monkeypatch.setattr("edgeflare.devices.lease.fcntl.flock", lambda *_: None)
    with lease("adb:x") as held:
        assert held.former_secret == ""
    holder.communicate()


_SAY_A_NAME = "from edgeflare.devices.lease import new_name; print(new_name(), flush=True)"


def test_names_differ_and_suit_any_file_system() -> None:
    first, second = new_name(), new_name()
    assert first != second
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]{6}-\d+-\w+-[0-9a-f]{8}", first)


def test_a_name_is_stale_once_its_process_has_ended() -> None:
    command = [sys.executable, "-c", f"{_SAY_A_NAME}; input()"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not is_stale(name)
        process.kill()
        process.wait()
        assert is_stale(name)
    assert not is_stale(new_name())


def test_a_number_that_is_used_again_is_another_process() -> None:
    host, boot, pid, start, rest = new_name().split("-")
    assert is_stale(f"{host}-{boot}-{pid}-{int(start) - 1}-{rest}")


def test_what_was_named_before_the_host_started_anew_is_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "machine-id").write_text("0" * 32)
    (tmp_path / "boot-id").write_text("first")
    monkeypatch.setattr(lease_names, "_MACHINE_ID", tmp_path / "machine-id")
    monkeypatch.setattr(lease_names, "_BOOT_ID", tmp_path / "boot-id")
    name = new_name()
    assert is_own(name)
    assert not is_stale(name)
    (tmp_path / "boot-id").write_text("second")
    assert not is_own(name)
    assert is_stale(name)

    # Without an identity of its own a host may be any other of that name.
    (tmp_path / "machine-id").unlink()
    name = new_name()
    (tmp_path / "boot-id").write_text("third")
    assert not is_stale(name)


def test_what_others_named_is_theirs() -> None:
    host, boot, rest = new_name().split("-", 2)
    other = host[::-1] if host != host[::-1] else "0" * 12
    gone = f"{boot}-{2**22 + 1}-1-{rest[-8:]}"
    assert is_stale(f"{host}-{gone}")
    for name in (f"{other}-{gone}", "thesis", "", "-", f"{host}-{boot}-x-1-a", f"{host}"):
        assert not is_stale(name)
