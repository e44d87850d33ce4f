"""Emulated ARM cores, and what differs on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from bundles import bundle_of
from dynamic_range import quantize_weights
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.transports.qemu import QemuTransport, find_qemu
from edgeflare.errors import UserError
from edgeflare_protos.kernel_sets import Kernels

PAIR = Path(__file__).parents[3] / "examples" / "fashion_lenet4"
COMPRESSED, ORIGINAL = PAIR / "compressed.tflite", PAIR / "original.tflite"
CORES = ("cortex-a53", "cortex-a72", "cortex-a76")

Outputs = NDArray[np.generic]

Test = TypeVar("Test", bound=Callable[..., None])


def real(test: Test) -> Test:
    """Mark a test that runs on emulated cores; the first one makes the bundle."""
    marks = (pytest.mark.qemu, pytest.mark.slow, pytest.mark.timeout(1800))
    for mark in (*marks, pytest.mark.usefixtures("qemu")):
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def qemu() -> None:
    """Skip where there is no QEMU, or no bundle for it."""
    if find_qemu() is None:
        pytest.skip("QEMU is absent: apt-get install qemu-user-static")
    bundle_of("linux-aarch64")


class Answers:
    """What devices answer to the seeds of the example pair; each question is asked once."""

    def __init__(self, devices: ExitStack) -> None:
        self._devices = devices
        self._open: dict[tuple[str, str], Device] = {}
        self._known: dict[tuple[str, str, Path, Kernels], Outputs] = {}
        with np.load(PAIR / "seeds.npz") as seeds:
            self._pixels = seeds["images"].reshape(-1, 28, 28, 1)

    def __call__(self, profile: Profile, model: Path, kernels: Kernels) -> Outputs:
        key = (profile.name, profile.runtime, model, kernels)
        if key not in self._known:
            self._known[key] = self._ask(self.device(profile), model, kernels)
        return self._known[key]

    def device(self, profile: Profile) -> Device:
        key = (profile.name, profile.runtime)
        if key not in self._open:
            self._open[key] = self._devices.enter_context(connect(profile))
        return self._open[key]

    def _ask(self, device: Device, model: Path, kernels: Kernels) -> Outputs:
        session = device.open_as(model, kernels, 1)
        try:
            if session.signature.input.dtype == "int8":
                inputs: Outputs = (self._pixels.astype(np.int16) - 128).astype(np.int8)
            else:
                inputs = self._pixels.astype(np.float32) / 255
            answered = session.submit(inputs).result(200)
        finally:
            session.close()
        assert not answered.failures
        return answered.outputs


@pytest.fixture(scope="module")
def ask() -> Iterator[Answers]:
    with ExitStack() as stack:
        yield Answers(stack)


@pytest.fixture(scope="module")
def dynamic_range(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "dynamic_range.tflite"
    path.write_bytes(quantize_weights(ORIGINAL.read_bytes()))
    return path


HOST = find_profile("emulated-xnnpack")


def core(name: str) -> Profile:
    return find_profile(f"qemu-{name}")


def differing(one: Outputs, other: Outputs) -> float:
    """The share of inputs whose outputs are not the same."""
    return float((one != other).any(axis=1).mean())


@real
@pytest.mark.parametrize("name", CORES)
def test_the_core_is_what_the_device_says_it_is(name: str, ask: Answers) -> None:
    told = ask.device(core(name)).provenance

    assert told.transport == "qemu"
    assert told.machine == "aarch64"
    assert told.soc.startswith(f"{name}, emulated by QEMU ")
    assert "asimd" in told.cpu_features
    assert ("asimddp" in told.cpu_features) == (name == "cortex-a76")
    assert (told.runtime, told.kernels) == ("ai-edge-litert", "xnnpack")


@real
@pytest.mark.parametrize("name", ["cortex-a72", "cortex-a76"])
def test_int8_is_practically_the_same_on_the_xnnpack_of_both(name: str, ask: Answers) -> None:
    here = ask(HOST, COMPRESSED, "xnnpack")
    there = ask(core(name), COMPRESSED, "xnnpack")

    assert differing(here, there) < 0.02
    assert np.abs(here.astype(int) - there).max() <= 1


@real
def test_int8_is_not_the_same_on_the_built_in_kernels_of_both(ask: Answers) -> None:
    here = ask(HOST, COMPRESSED, "builtin")
    there = ask(core("cortex-a72"), COMPRESSED, "builtin")

    assert 0.01 < differing(here, there) < 0.2
    assert np.abs(here.astype(int) - there).max() > 1


@real
def test_a_dynamic_range_model_tells_one_core_from_another(
    ask: Answers, dynamic_range: Path
) -> None:
    small, large, host = (
        ask(profile, dynamic_range, "xnnpack")
        for profile in (core("cortex-a72"), core("cortex-a76"), HOST)
    )

    assert differing(small, large) > 0.5
    # Nothing but rounding: it is the same model.
    assert np.abs(small.astype(float) - large).max() < 0.01
    assert (small.argmax(axis=1) == host.argmax(axis=1)).mean() > 0.95


@real
def test_the_old_runtime_has_other_kernels_on_the_same_core(ask: Answers) -> None:
    bundle_of("linux-aarch64", "tflite-runtime")
    old = replace(core("cortex-a72"), runtime="tflite-runtime")
    twin = ask(HOST, COMPRESSED, "xnnpack")
    answered = ask(old, COMPRESSED, "xnnpack")
    told = ask.device(old).provenance

    assert (told.runtime, told.runtime_version) == ("tflite-runtime", "2.14.0")
    assert 0 < differing(twin, answered) < 0.2


@real
def test_a_search_on_a_core_needs_nothing_but_its_name(tmp_path: Path) -> None:
    done = run_search("qemu-cortex-a76", tmp_path / "run")

    assert done.returncode == 1, done.stderr
    document: dict[str, Any] = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["findings"]
    assert [one["provenance"]["machine"] for one in document["devices"]] == ["aarch64"]


@real
def test_a_killed_agent_is_started_again_and_nothing_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    inputs = np.zeros((4, 28, 28, 1), np.int8)
    with connect(core("cortex-a53")) as device:
        session = device.open(COMPRESSED)
        before = session.submit(inputs).result(200).outputs
        (agent,) = emulated_agents(tmp_path)
        os.kill(agent, signal.SIGKILL)
        with pytest.raises(DeviceLost):
            session.submit(inputs).result(200)
        device.reopen()
        after = session.submit(inputs).result(200).outputs

    assert np.array_equal(before, after)
    assert emulated_agents(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@real
def test_a_core_that_qemu_does_not_know() -> None:
    profile = replace(core("cortex-a72"), cpu="cortex-a27")
    with pytest.raises(UserError) as caught:
        QemuTransport(profile).open()

    assert 'cpu = "cortex-a27": QEMU ' in str(caught.value)
    assert "did you mean 'cortex-a" in str(caught.value)


def run_search(device: str, out: Path) -> subprocess.CompletedProcess[str]:
    # fmt: off
    return subprocess.run(
        [sys.executable, "-m", "edgeflare", "search", str(PAIR), "--device", device,
         "--first", "6", "--max-queries", "200", "--out", str(out)],
        capture_output=True, text=True, timeout=300, check=False,
    )
    # fmt: on


def emulated_agents(folder: Path) -> list[int]:
    """The agents under QEMU whose scratch folders are in this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"qemu-aarch64" in command and str(folder).encode() in command:
            found += [int(process.name)] if b"edgeflare_agent\0" in command else []
    return found


def test_without_qemu_the_user_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as caught:
        QemuTransport(core("cortex-a72")).open()

    assert str(caught.value) == (
        'device "qemu-cortex-a72": QEMU is not on this machine (neither qemu-aarch64-static nor'
        " qemu-aarch64); on Debian and Ubuntu: apt-get install qemu-user-static"
    )
