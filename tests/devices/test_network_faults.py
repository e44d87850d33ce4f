"""Searches and sessions over a link that harms what it carries."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

import edgeflare.run
from documents import Document, as_json
from edgeflare.campaign.opened_pair import open_pair
from edgeflare.campaign.recorded_campaign import run_recorded_campaign
from edgeflare.campaign.run_description import describe_run
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices import connection, stream
from edgeflare.devices import device as device_module
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.handshake import shake_hands
from edgeflare.devices.profile import Profile
from edgeflare.devices.session import open_request
from edgeflare.devices.transports.address import AddressTransport
from edgeflare.errors import InfrastructureError
from edgeflare.models.pair import load_pair
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.plan import Plan
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import message_crc32, set_seal
from laboratory import Watched, untimed
from proxy import FaultyProxy

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
FAULTS = 250
SEEDS = 16


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set deadlines that fit an agent on this machine, so that what is lost is noticed in time."""
    monkeypatch.setattr(connection, "SHORT_CALL_SECONDS", 0.15)
    monkeypatch.setattr(connection, "HEARTBEAT_SECONDS", 0.15)
    monkeypatch.setattr(connection, "LOAD_SECONDS", 0.3)
    monkeypatch.setattr(stream, "HEARTBEAT_INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(stream, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, *[0.02] * 1000))


def board(address: str) -> Profile:
    return Profile(name="board", transport="address", address=address, kernels="builtin")


def search(
    address: str,
    out: Path,
    opened: Callable[[], None] = lambda: None,
    *,
    seeds: int = SEEDS,
    observer: Watched | None = None,
    resume: bool = False,
) -> Document:
    """Search the example pair on the agent at an address; `opened` is called before it begins."""
    plan = Plan("random", Goal(Find.ANY), ("board",), first=seeds, max_queries=150)
    with ExitStack() as stack:
        pair = load_pair(EXAMPLE)
        pair_opened = open_pair(pair, plan, [board(address)], stack)
        header = describe_run(pair_opened, plan)
        _, journal = (
            resume_run(out, header)
            if resume
            else begin_run(out, header, len(pair_opened.seeds), overwrite=False)
        )
        stack.callback(journal.close)
        opened()
        interrupt = Interrupt()
        return as_json(
            run_recorded_campaign(
                pair_opened,
                header.plan,
                journal,
                observer=observer or Watched(interrupt),
                interrupt=interrupt,
                chains=16,
            )
        )


@pytest.mark.slow
def test_hundreds_of_faults_change_nothing(
    start_agent: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start_agent()
    calm = search(agent.address, tmp_path / "calm")
    assert calm["totals"]["findings"] > 2
    with FaultyProxy(agent.address, seed=0) as proxy:

        def opened() -> None:
            be_impatient(monkeypatch)
            proxy.harm(rate=0.15, most=FAULTS)

        rough = search(proxy.address, tmp_path / "rough", opened)
        assert proxy.faults.total() == FAULTS
        assert min(proxy.faults.values()) > FAULTS / 10  # of each kind many
    assert rough["stopped_by"] is None
    assert untimed(rough) == untimed(calm)


class Saboteur(Watched):
    """An observer that does something to the device once so many queries are through."""

    def __init__(self, after: int, deed: Callable[[], None]) -> None:
        super().__init__(Interrupt())
        self._after, self._deed = after, deed

    def searched(self, progress: Any) -> None:
        if progress.queries >= self._after:
            self._after = 10**9
            self._deed()


@pytest.mark.slow
def test_a_device_that_is_gone_for_good_leaves_a_run_that_can_be_gone_on_with(
    start_agent: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, 0.05))
    agent = start_agent()
    whole = search(agent.address, tmp_path / "whole", seeds=10)
    with FaultyProxy(agent.address, seed=0) as proxy:
        gone = Saboteur(500, proxy.close)
        with pytest.raises(InfrastructureError, match="board: lost, and not back after 2 attempts"):
            search(proxy.address, tmp_path / "run", seeds=10, observer=gone)
    document = json.loads((tmp_path / "run" / "run.json").read_bytes())
    schema = Path(edgeflare.run.__file__).with_name("run.schema.json")
    jsonschema.validate(document, json.loads(schema.read_bytes()))
    assert document["stopped_by"] == "infrastructure"
    assert 0 < document["totals"]["queries"] < whole["totals"]["queries"]
    agent.kill()  # by another address it would wait for the lease to end
    resumed = search(start_agent().address, tmp_path / "run", seeds=10, resume=True)
    assert untimed(resumed) == untimed(whole)


@pytest.fixture
def link(start_agent: Callable[..., Any]) -> Iterator[FaultyProxy]:
    with FaultyProxy(start_agent().address, seed=0) as proxy:
        yield proxy


def test_a_pulled_cable_is_noticed_while_nothing_is_under_way(
    link: FaultyProxy,
    model: Path,
    images: NDArray[np.float32],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 1.0)
    monkeypatch.setattr(connection, "SIGN_OF_LIFE_SECONDS", 1.0)
    with connect(board(link.address)) as device:
        session = device.open(model)
        before = session.submit(images).result(200).outputs
        link.fall_silent()
        deadline = time.monotonic() + 200
        while any(thread.name == "board replies" for thread in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        late = session.submit(images[:1])
        assert late.done()
        assert isinstance(late.exception(), DeviceLost)
        link.speak_again()
        device.reopen()
        assert np.array_equal(session.submit(images).result(200).outputs, before)


@pytest.mark.slow
def test_a_slow_uplink_is_no_silent_one(link: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """gRPC's question whether the agent is there waits behind what fills the sockets' buffers."""
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 0.5)
    link.throttle(256 * 1024)
    content = np.random.default_rng(0).bytes(4 << 20)
    with AddressTransport(board(link.address)) as endpoint:
        slow = connection.Connection("board", endpoint)
        shake_hands(slow)
        began = time.monotonic()
        slow.upload(hashlib.sha256(content).hexdigest(), content)
        assert time.monotonic() - began > 10
        slow.close()


def test_a_question_may_take_as_long_as_what_is_on_its_way_before_it(
    start_agent: Callable[..., Any], model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        FaultyProxy(start_agent().address, seed=0) as link,
        AddressTransport(board(link.address)) as endpoint,
    ):
        slow = connection.Connection("board", endpoint)
        shake_hands(slow)
        content = model.read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        slow.upload(sha256, content)
        opened = slow.open_session(open_request(sha256, board(link.address)))
        monkeypatch.setattr(connection, "HEARTBEAT_SECONDS", 0.1)
        link.throttle(100)  # so that a question takes more than half a second
        with pytest.raises(DeviceLost):
            slow.idle_seconds(opened.session_id)
        assert slow.idle_seconds(opened.session_id, transfer_seconds=20) > 0
        slow.close()


def exhaust(submit: Callable[..., Any], images: NDArray[np.float32]) -> None:
    """Submit until a batch is lost: one may have been answered before the link was cut."""
    for _ in range(1000):
        submit(images).result(200)


def test_a_link_that_is_cut_leaves_the_worker_as_it_is(
    link: FaultyProxy, model: Path, images: NDArray[np.float32]
) -> None:
    with connect(board(link.address)) as device:
        session, other = device.open(model), device.open(model)
        other.close()
        before = session.submit(images).result(200).outputs
        for _ in range(3):
            link.cut_all()
            with pytest.raises(DeviceLost):
                exhaust(session.submit, images)
            device.reopen()
            assert np.array_equal(session.submit(images).result(200).outputs, before)
        state = device.telemetry()
        assert len(state.worker_rss_bytes) == 1
        assert state.worker_restarts == 0


def test_an_input_that_was_lost_on_its_way_is_noticed_before_it_is_overdue(
    start_agent: Callable[..., Any],
    model: Path,
    images: NDArray[np.float32],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """200 inputs of 10 s may take more than an hour; the agent says at once that it has none."""
    monkeypatch.setattr(stream, "HEARTBEAT_INTERVAL_SECONDS", 0.2)
    monkeypatch.setattr(stream, "WATCH_SECONDS", 0.02)
    with (
        FaultyProxy(start_agent().address, seed=0, kinds={"drop": 1.0}) as link,
        connect(board(link.address)) as device,
    ):
        session = device.open(model)
        session.submit(images).result(200)
        link.harm(rate=1.0, most=1)
        with pytest.raises(DeviceLost):
            session.submit(images[:1]).result(200)
        assert link.faults == {"drop": 1}


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda _: None, None),
        (lambda reply: setattr(reply, "delegated_nodes", 3), "a reply arrived damaged"),
        (lambda reply: reply.ClearField("seal"), "a reply arrived damaged"),
    ],
)
def test_a_damaged_description_of_a_session_is_not_believed(
    serve: Callable[..., Profile],
    model: Path,
    damage: Callable[[wire.OpenSessionReply], None],
    complaint: str | None,
) -> None:
    def seal(reply: wire.OpenSessionReply, request: wire.OpenSessionRequest) -> None:
        reply.request_crc32 = message_crc32(request)
        set_seal(reply)
        damage(reply)

    with connect(serve(protocol=(1, 1), finish=seal)) as device:
        if complaint is None:
            device.open(model)
        else:
            with pytest.raises(DeviceLost, match=complaint):
                device.open(model)


def test_a_session_of_what_was_not_asked_for_is_not_believed(
    serve: Callable[..., Profile], model: Path
) -> None:
    """A bit that fell over on its way to the agent may have named other kernels."""

    def opened_with_other_kernels(
        reply: wire.OpenSessionReply, request: wire.OpenSessionRequest
    ) -> None:
        request.kernels = wire.KERNELS_REFERENCE
        reply.request_crc32 = message_crc32(request)
        set_seal(reply)

    with (
        connect(serve(protocol=(1, 1), finish=opened_with_other_kernels)) as device,
        pytest.raises(DeviceLost, match="the request to open a model arrived damaged"),
    ):
        device.open(model)
