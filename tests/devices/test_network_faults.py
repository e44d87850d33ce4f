"""Searches, their coverage, and sessions over a link that harms what it carries."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from documents import Document, as_json
from edgeflare.campaign.campaign import run_campaign
from edgeflare.campaign.campaign_record import describe_run, run_recorded_campaign
from edgeflare.campaign.coverage_phase import search_and_cover
from edgeflare.campaign.pair_panel import open_pair
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
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import message_crc32, set_seal
from edgeflare_protos.kernel_sets import KERNEL_SETS
from laboratory import Watched, untimed
from proxy import FaultyProxy

Images = NDArray[np.float32]
Start = Callable[..., Any]

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
FAULTS = 36
PLAN = Plan("random", Goal(Find.ANY), ("board",), first=16, max_queries=150)
COVERING = Plan("boundary", Goal(), ("board",), first=4, max_queries=60, coverage=(0.0, 0.5))


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


class Saboteur(Watched):
    """An observer that does something once so many queries are through, or most is covered."""

    def __init__(
        self,
        deed: Callable[[], None] = lambda: None,
        after: float = math.inf,
        *,
        interrupts: bool = False,
    ) -> None:
        self.interrupt = Interrupt()
        super().__init__(self.interrupt)
        self._deed, self._after = self.interrupt.ask if interrupts else deed, after

    def searched(self, progress: Any) -> None:
        if progress.queries >= self._after:
            self._after = math.inf
            self._deed()

    def covered(self, *progress: Any, **_: object) -> None:
        done, total = progress
        if done == total - 2:
            self._deed()


def search(
    address: str,
    out: Path,
    observer: Saboteur | None = None,
    *,
    plan: Plan = PLAN,
    opened: Callable[[], None] = lambda: None,
    resume: bool = False,
) -> Document:
    """Search the example pair on the agent at an address; `opened` is called before it begins."""
    observer = observer or Saboteur()
    with ExitStack() as stack:
        pair = open_pair(load_pair(EXAMPLE), plan, [board(address)], stack)
        header = describe_run(pair, plan)
        if resume:
            _, journal = resume_run(out, header)
        else:
            _, journal = begin_run(out, header, len(pair.seeds), overwrite=False)
        stack.callback(journal.close)
        opened()
        return as_json(
            run_recorded_campaign(
                pair,
                header.plan,
                journal,
                observer=observer,
                interrupt=observer.interrupt,
                chains=16,
                phases=search_and_cover(pair) if plan.coverage else run_campaign,
            )
        )


Calm = Callable[[Plan], Document]


@pytest.fixture(scope="module")
def calm(shared_agent: Any, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """What a search finds where nothing happens to the link."""

    known: dict[str, Document] = {}

    def searched(plan: Plan) -> Document:
        if plan.strategy not in known:
            out = tmp_path_factory.mktemp("calm") / "run"
            known[plan.strategy] = search(shared_agent.address, out, plan=plan)
        return known[plan.strategy]

    return searched


@pytest.mark.slow
def test_dozens_of_faults_change_nothing(
    start_agent: Start, calm: Calm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert calm(PLAN)["totals"]["findings"] > 2
    with FaultyProxy(start_agent().address, seed=3) as proxy:

        def opened() -> None:
            be_impatient(monkeypatch)
            proxy.harm(rate=0.15, most=FAULTS)

        rough = search(proxy.address, tmp_path / "rough", opened=opened)
        assert proxy.faults.total() == FAULTS
        assert min(proxy.faults.values()) > FAULTS / 10  # of each kind many
    assert rough["stopped_by"] is None
    assert untimed(rough) == untimed(calm(PLAN))


@pytest.mark.slow
def test_a_device_that_comes_back_while_coverage_is_measured_changes_nothing(
    start_agent: Start, calm: Calm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, *[0.05] * 100))
    covered = calm(COVERING)["coverage"]["arms"]
    assert [one["arm"] for one in covered] == ["original", "twin", "device"]
    accepted = []
    with FaultyProxy(start_agent().address, seed=0) as proxy:

        def cut_all() -> None:
            accepted.append(proxy.accepted)
            proxy.cut_all()

        cut = search(proxy.address, tmp_path / "cut", Saboteur(cut_all), plan=COVERING)
        assert 0 < accepted[0] < proxy.accepted
    assert untimed(cut) == untimed(calm(COVERING))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "after"), [(PLAN, 500), (COVERING, math.inf)], ids=["searching", "covering"]
)
def test_a_device_that_is_gone_for_good_leaves_a_run_that_can_be_gone_on_with(
    plan: Plan,
    after: float,
    start_agent: Start,
    calm: Calm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, 0.05))
    agent, run = start_agent(), tmp_path / "run"
    with FaultyProxy(agent.address, seed=0) as proxy:
        gone = Saboteur(proxy.close, after)
        with pytest.raises(InfrastructureError, match="board: lost, and not back after 2 attempts"):
            search(proxy.address, run, gone, plan=plan)
    stopped = load_document(RunDirectory(run))  # holds it to the schema
    assert stopped.stopped_by == "infrastructure"
    assert stopped.coverage is None
    assert stopped.totals.queries > 0
    assert (stopped.totals.queries < calm(plan)["totals"]["queries"]) == (plan is PLAN)
    agent.kill()  # by another address it would wait for the lease to end
    resumed = search(start_agent().address, run, plan=plan, resume=True)
    assert untimed(resumed) == untimed(calm(plan))


@pytest.mark.slow
def test_ctrl_c_ends_the_coverage_and_the_run_goes_on_with_it_later(
    start_agent: Start, calm: Calm, tmp_path: Path
) -> None:
    agent, run = start_agent(), tmp_path / "run"
    stopped = search(agent.address, run, Saboteur(interrupts=True), plan=COVERING)
    assert stopped["stopped_by"] == "interrupt"
    assert "coverage" not in stopped
    resumed = search(agent.address, run, plan=COVERING, resume=True)
    assert untimed(resumed) == untimed(calm(COVERING))


@pytest.fixture
def link(start_agent: Start) -> Iterator[FaultyProxy]:
    with FaultyProxy(start_agent().address, seed=0) as proxy:
        yield proxy


def test_a_pulled_cable_is_noticed_while_nothing_is_under_way(
    link: FaultyProxy, model: Path, images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 0.5)
    monkeypatch.setattr(connection, "SIGN_OF_LIFE_SECONDS", 0.5)
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
    link.throttle(512 * 1024)
    content = np.random.default_rng(0).bytes(2 << 20)
    with AddressTransport(board(link.address)) as endpoint:
        slow = connection.Connection("board", endpoint)
        shake_hands(slow)
        began = time.monotonic()
        slow.upload(hashlib.sha256(content).hexdigest(), content)
        assert time.monotonic() - began > 2.5
        slow.close()


def test_a_question_may_take_as_long_as_what_is_on_its_way_before_it(
    start_agent: Start, model: Path, monkeypatch: pytest.MonkeyPatch
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
        link.throttle(250)  # so that a question takes more than a fifth of a second
        with pytest.raises(DeviceLost):
            slow.idle_seconds(opened.session_id)
        assert slow.idle_seconds(opened.session_id, transfer_seconds=20) > 0
        slow.close()


def exhaust(submit: Callable[..., Any], images: Images) -> None:
    """Submit until a batch is lost: one may have been answered before the link was cut."""
    for _ in range(1000):
        submit(images).result(200)


def test_a_link_that_is_cut_leaves_the_worker_as_it_is(
    link: FaultyProxy, model: Path, images: Images
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
    start_agent: Start, model: Path, images: Images, monkeypatch: pytest.MonkeyPatch
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
    def seal(reply: wire.OpenSessionReply, _request: wire.OpenSessionRequest) -> None:
        set_seal(reply)
        damage(reply)

    with connect(serve(finish=seal)) as device:
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
        request.kernels = KERNEL_SETS["reference"].number
        reply.request_crc32 = message_crc32(request)
        set_seal(reply)

    with (
        connect(serve(finish=opened_with_other_kernels)) as device,
        pytest.raises(DeviceLost, match="the request to open a model arrived damaged"),
    ):
        device.open(model)
