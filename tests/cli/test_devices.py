"""`edgeflare devices` and `edgeflare agent install`, without any device but this machine."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import adbutils
import pytest

from called_commands import call_here, completed, refused
from edgeflare.conform.findings.known_issues import known_issues
from edgeflare.devices import device_check as checking
from edgeflare.devices.profile import Profile
from edgeflare.models.runtime_versions import installed_version


@pytest.fixture
def adb_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[int]:
    """The port of an adb server of the test's own, which does not run yet, and sees no phones."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name, value in {
        "ADB_EMU": "0",
        "ADB_LOCAL_TRANSPORT_MAX_PORT": "5553",
        "ADB_MDNS": "0",
        "ADB_USB": "0",
        "ANDROID_ADB_SERVER_PORT": str(port),
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    environment, kill = dict(os.environ), [adbutils.adb_path(), "kill-server"]
    yield port
    subprocess.run(kill, env=environment, capture_output=True, timeout=300, check=False)


def row(text: str, name: str) -> str:
    (line,) = [line for line in text.splitlines() if line.split()[:1] == [name]]
    return " ".join(line.split())


def test_what_can_be_used_right_now_is_said_of_every_profile(
    adb_server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".config" / "edgeflare" / "devices"
    folder.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        somewhere = 'transport = "address"\naddress = "127.0.0.1:{}"\n'
        (folder / "somebody.toml").write_text(somewhere.format(port))
        (folder / "nobody.toml").write_text(somewhere.format(adb_server))
        (folder / "absent.toml").write_text('extends = "android-arm64"\nserial = "0123"\n')
        said = call_here("devices")

    assert said.code == 0
    assert row(said.out, "emulated-builtin") == "emulated-builtin emulated here"
    assert row(said.out, "somebody") == "somebody address somebody listens"
    assert row(said.out, "nobody") == "nobody address nobody is there (Connection refused)"
    for phone in ("android-arm64", "absent"):
        state = "adb's server does not run: `edgeflare devices check adb://` starts it"
        assert row(said.out, phone) == f"{phone} adb {state}"
    assert row(said.out, "linux-aarch64-ssh") == "linux-aarch64-ssh ssh names no host"
    with pytest.raises(ConnectionRefusedError):  # to look is not to start something
        socket.create_connection(("127.0.0.1", adb_server), 5)

    subprocess.run([adbutils.adb_path(), "start-server"], stderr=subprocess.DEVNULL, check=True)
    said = call_here("devices")
    assert row(said.out, "android-arm64") == "android-arm64 adb none attached"
    assert row(said.out, "absent") == "absent adb 0123 not attached"


def test_a_broken_profile_is_a_row_among_others(
    adb_server: int, put_profile: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    put_profile("android-arm64", "threads = 0\n")
    said = completed("devices", "list")
    assert "threads = 0: expected a whole number from 1 to 128" in row(said.out, "android-arm64")
    assert row(said.out, "emulated-builtin").startswith("emulated-builtin emulated")
    listed = {one["name"]: one for one in json.loads(completed("devices", "list", "--json").out)}
    assert "threads = 0: expected" in listed["android-arm64"]["complaint"]
    assert listed["emulated-builtin"]["kernels"] == "builtin"


@pytest.mark.slow
def test_a_check_runs_a_model_and_says_what_the_device_is() -> None:
    said = completed("devices", "check", "emulated-reference")
    assert "ai-edge-litert" in said.out
    assert row(said.out, "kernels") == "kernels reference"
    assert said.out.splitlines()[-1].startswith("emulated-reference is ready")


@pytest.mark.slow
def test_a_check_notices_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    right = checking.expected_answer()
    monkeypatch.setattr(checking, "expected_answer", lambda: right + 1)
    assert "its runtime or its delegate is broken" in refused(
        "devices", "check", "emulated-builtin", code=3
    )


def test_no_phone_is_said_in_one_line(adb_server: int) -> None:
    for arguments in (("devices", "check", "adb://"), ("agent", "install", "--device", "adb://")):
        assert "no phone is attached; plug one in" in refused(*arguments, code=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ANDROID_ADB_SERVER_PORT", "usb"),
        ("ADB_SERVER_SOCKET", "local:/adb"),
        ("ADB_SERVER_SOCKET", "x"),
    ],
)
def test_a_server_that_cannot_be_is_said_with_its_variable(
    name: str, value: str, adb_server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert refused("devices", "check", "adb://").startswith(f"{name}={value}: expected a port")


@pytest.mark.parametrize(
    ("name", "value"),
    [("ANDROID_ADB_SERVER_ADDRESS", "::1"), ("ADB_SERVER_SOCKET", "tcp:[::1]:5037")],
)
def test_a_server_that_is_named_by_ipv6_is_not_looked_for_and_not_started(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADB_SERVER_SOCKET", raising=False)
    monkeypatch.setenv(name, value)
    said = refused("devices", "check", "adb://")
    assert said.startswith(f"{name}={value}: adb's server is reached over IPv4 alone")


def test_the_servers_socket_says_where_it_is(
    adb_server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANDROID_ADB_SERVER_PORT")
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"tcp:localhost:{adb_server}")
    said = call_here("devices", "check", "adb://")
    assert (said.code, "no phone is attached" in said.err) == (3, True)


def test_a_device_whose_delegate_is_none_is_told_so(
    put_profile: Callable[[str, str], None],
) -> None:
    """That it is the runtime who refuses shows that the agent was told to allow the library."""
    delegate = 'delegate = "libc.so.6"\ndelegate_options = { speed = "1" }\n'
    put_profile("vendor", f'extends = "emulated-builtin"\n{delegate}')
    said = refused("devices", "check", "vendor", "--trust")
    assert "libc.so.6" in said
    assert "--allow-delegate" not in said


def test_the_doctor_looks_for_what_reaches_devices() -> None:
    said = completed("doctor")
    for name in ("adb, for phones", "ssh", "QEMU, for ARM cores"):
        assert name in said.out
    assert "Android Debug Bridge" in said.out


def test_the_doctor_says_for_a_report_what_it_says_and_names_no_machine() -> None:
    found = json.loads(call_here("doctor", "--json").out)
    checks = {one["name"]: one for one in found["checks"]}
    assert checks["Python"]["found"] == platform.python_version()
    assert checks["tflite-runtime"]["mend"].startswith("pip install")
    assert found["machine"] == platform.machine()
    assert platform.node() not in json.dumps(found)


@pytest.mark.slow
def test_the_doctor_tries_what_the_world_knows_of_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device all of it; on versions of the runtime two of the faults."""
    asked = ("doctor", "--known-issues", "--probe", "--device", "emulated-reference", "--json")
    said = {one["thread"]: one for one in json.loads(completed(*asked).out)}
    assert said["LiteRT#4079"]["here"]["reference"]["outcome"] == "shows"
    assert said["LiteRT#9272"]["here"] == {}
    _, version = installed_version()
    asked = (*asked[:3], "--versions", version, "--json")
    two = [one for one in known_issues() if one.thread in ("LiteRT#4079", "LiteRT#9272")]
    with monkeypatch.context() as patch:
        patch.setattr("edgeflare.conform.findings.known_issues.known_issues", lambda: two)
        said = {one["thread"]: one for one in json.loads(completed(*asked).out)}
    assert said["LiteRT#4079"]["here"][f"reference@{version}"]["outcome"] == "shows"
    listed = completed("doctor", "--known-issues").out
    assert "LiteRT#9272" in listed
    assert "--probe tries these" in " ".join(listed.split())


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_the_doctor_says_what_runtimes_beside_tflite_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    lines = call_here("doctor").out.splitlines()
    (npu,) = (line for line in lines if "NPU libraries" in line)
    assert "pip install ai-edge-litert-sdk-intel, and Intel's NPU driver" in npu
    (micro,) = (line for line in lines if " tflite-micro " in line)
    assert metadata.version("tflite-micro") in micro


@pytest.mark.slow
def test_the_doctor_says_what_bundles_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "apt-get, dpkg-deb, pip" in call_here("doctor").out
    monkeypatch.setenv("PATH", str(tmp_path))
    said = completed("doctor")
    assert "no apt-get, dpkg-deb: work in a container of Debian 12" in said.out


def test_a_check_names_the_cpu_features_for_kernels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    features = tuple(sorted({"avx2", "fma", *(f"flag{n}" for n in range(130))}))
    check = checking.check_device

    def check_one_of_many_features(profile: Profile) -> checking.DeviceCheckResult:
        checked = check(profile)
        provenance = replace(checked.provenance, machine="x86_64", cpu_features=features)
        return replace(checked, provenance=provenance)

    monkeypatch.setattr("edgeflare.cli.devices.check_device", check_one_of_many_features)
    said = call_here("devices", "check", "emulated-builtin")
    assert "cpu features fma, avx2" in " ".join(said.out.split())
    assert "flag1" not in said.out
