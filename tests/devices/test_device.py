from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.devices import device as device_module
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import InfrastructureError
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR
from processes import agents

Images = NDArray[np.float32]
Start = Callable[..., Any]

pytestmark = pytest.mark.slow


def agent_of_this_process() -> int:
    (agent,) = agents(os.getpid())
    return agent


def test_provenance_is_plain_json_and_telemetry_counts(model: Path) -> None:
    with connect(find_profile("emulated-builtin-slow")) as device:
        before = device.provenance
        session = device.open(model)
        after = json.loads(json.dumps(device.provenance.to_json()))
        state = device.telemetry()
    for _ in range(2):  # which is no error
        device.close()
        session.close()

    assert state.agent_rss_bytes > 1_000_000
    assert len(state.worker_rss_bytes) == 1
    assert state.store_bytes >= model.stat().st_size
    assert state.uptime_seconds > 0
    assert (state.worker_restarts, state.quarantined_inputs) == (0, 0)
    assert (before.delegated_nodes, before.total_nodes) == (None, None)
    assert after["name"] == "emulated-builtin-slow"
    assert (after["transport"], after["link_delay_seconds"]) == ("emulated", 0.02)
    assert after["machine"] == os.uname().machine
    assert after["cpu_features"] == sorted(after["cpu_features"])
    assert after["runtime"] == "ai-edge-litert"
    assert after["runtime_version"][0].isdigit()
    assert (after["kernels"], after["threads"]) == ("builtin", 1)
    assert (after["delegated_nodes"], after["total_nodes"]) == (0, 1)
    assert after["protocol"] == f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"
    assert after["cores"] >= 1
    assert after["python"].count(".") == 2


def test_round_trips_over_a_slow_link_overlap(model: Path, images: Images) -> None:
    """Latency, not throughput: ten batches under way together do not take ten times as long."""
    slow = replace(find_profile("emulated-builtin-slow"), link_delay_seconds=0.2)
    with connect(slow) as device:
        session = device.open(model)
        began = time.perf_counter()
        futures = [session.submit(images[i : i + 1]) for i in range(10)]
        futures[0].result(200)
        first = time.perf_counter() - began
        for future in futures:
            future.result(200)
        together = time.perf_counter() - began

    assert first >= 0.2
    assert together < 5 * 0.2


@pytest.mark.slow
def test_an_agent_that_was_killed_is_started_again(
    model: Path, images: Images, expected: Callable[[str], NDArray[np.float32]]
) -> None:
    with connect(find_profile("emulated-builtin")) as device:
        session, closed = device.open(model), device.open(model)
        closed.close()
        for _ in range(3):
            os.kill(agent_of_this_process(), signal.SIGKILL)
            with pytest.raises(DeviceLost, match=r"^emulated-builtin \(127"):
                lose(session.submit, images)
            device.reopen()
            answered = session.submit(images).result(200)
            assert np.array_equal(answered.outputs, expected("builtin"))
        assert len(device.telemetry().worker_rss_bytes) == 1


def lose(submit: Callable[..., Any], images: Images) -> None:
    """Submit until a batch is lost: some may have been answered before the process was gone."""
    for _ in range(1000):
        submit(images).result(200)


def test_nothing_submitted_around_a_loss_is_answered_wrongly(
    model: Path, images: Images, expected: Callable[[str], NDArray[np.float32]]
) -> None:
    """Kill the agent while many batches are under way; each is answered rightly or lost."""
    truth = expected("builtin")
    with connect(find_profile("emulated-builtin")) as device:
        session = device.open(model)
        killer = threading.Timer(0.05, os.kill, (agent_of_this_process(), signal.SIGKILL))
        futures = []
        killer.start()
        while killer.is_alive():
            for start in range(0, 200, 20):
                futures.append((start, session.submit(images[start : start + 20])))
            time.sleep(0.001)
        futures.append((0, session.submit(images[:20])))  # which nobody is left to answer
        lost = 0
        for start, future in futures:
            try:
                outputs = future.result(200).outputs
            except DeviceLost:
                lost += 1
                if lost == 1:
                    device.reopen()
                outputs = session.submit(images[start : start + 20]).result(200).outputs
            assert np.array_equal(outputs, truth[start : start + 20])
        assert lost


def test_an_address_is_reached_again_when_its_agent_is_back(
    start_agent: Start, model: Path, images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, *[0.3] * 600))
    agent = start_agent()
    port = agent.address.rpartition(":")[2]
    with connect(find_profile(f"grpc://{agent.address}")) as device:
        session = device.open(model)
        before = session.submit(images).result(200).outputs
        agent.kill()
        with pytest.raises(DeviceLost):
            lose(session.submit, images)
        with ThreadPoolExecutor(1) as pool:
            reopened = pool.submit(device.reopen)
            time.sleep(0.2)
            start_agent("--port", port)
            reopened.result(200)
        assert np.array_equal(session.submit(images).result(200).outputs, before)


def test_a_device_that_is_gone_for_good(
    start_agent: Start, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, 0.05))
    agent = start_agent()
    with connect(find_profile(f"grpc://{agent.address}")) as device:
        session = device.open(model)
        agent.kill()
        with pytest.raises(InfrastructureError) as caught:
            device.reopen()
        assert not isinstance(caught.value, DeviceLost)
        assert str(caught.value).startswith(
            f"grpc://{agent.address}: lost, and not back after 2 attempts; at last:"
            f" grpc://{agent.address}: nobody is there (Connection refused)"
        )
        with pytest.raises(DeviceLost):
            session.submit(np.zeros((1, 4, 4, 1), np.float32)).result(200)


def test_a_user_who_does_not_want_to_wait_is_heeded(
    start_agent: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, 30.0))
    agent = start_agent()
    with connect(find_profile(f"grpc://{agent.address}")) as device:
        agent.kill()
        began = time.monotonic()
        with pytest.raises(InfrastructureError, match="lost, and stopped before it was back"):
            device.reopen(lambda: time.monotonic() > began + 1)
        assert time.monotonic() - began < 10


def test_a_user_who_does_not_want_to_wait_for_an_attempt_is_heeded(
    serve: Callable[..., Profile], model: Path
) -> None:
    """The agent does not answer before the attempt has been given up, and SIGINT comes twice."""
    interrupts: list[int] = []
    opened, given_up = threading.Event(), threading.Event()

    def answer_late(*_: object) -> None:
        if opened.is_set():
            for count in (1, 2):
                os.kill(os.getpid(), signal.SIGINT)
                while len(interrupts) < count:  # two signals at once are one
                    time.sleep(0.01)
            given_up.wait(30)

    before = signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        with connect(serve(finish=answer_late)) as device:
            device.open(model)
            opened.set()
            with pytest.raises(InfrastructureError, match="fake: lost, and stopped before it was"):
                device.reopen(lambda: len(interrupts) > 1)
            given_up.set()
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(interrupts) == 3  # the handler that was there is back


def test_a_device_that_comes_back_as_another(serve: Callable[..., Profile], model: Path) -> None:
    delegated: Iterator[int] = iter([5, 4])
    with connect(serve(delegated=delegated)) as device:
        device.open(model)
        with pytest.raises(InfrastructureError) as caught:
            device.reopen()
    assert str(caught.value) == (
        "fake: came back as another device (delegated_nodes 5 is now 4); start a new run"
    )
