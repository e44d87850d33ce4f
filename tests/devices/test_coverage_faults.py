"""Neuron coverage of a device that is lost while it is measured, for a while or for good."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from documents import Document, as_json
from edgeflare.campaign.coverage_phase import search_and_cover
from edgeflare.campaign.opened_pair import open_pair
from edgeflare.campaign.recorded_campaign import run_recorded_campaign
from edgeflare.campaign.run_description import describe_run
from edgeflare.core.goal import Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices import device as device_module
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError
from edgeflare.models.pair import load_pair
from edgeflare.run.begin_or_resume import begin_run, resume_run
from edgeflare.run.load_document import load_document
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from laboratory import Watched, untimed
from proxy import FaultyProxy

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


class Intruder(Watched):
    """An observer that does something once the coverage of most inputs is known, on the device."""

    def __init__(self, deed: Callable[[], None], interrupt: Interrupt | None = None) -> None:
        super().__init__(interrupt or Interrupt())
        self.interrupt, self._deed = self._interrupt, deed

    def covered(self, done: int, total: int) -> None:
        if done == total - 2:
            self._deed()


def search(address: str, out: Path, observer: Intruder, *, resume: bool = False) -> Document:
    plan = Plan("boundary", Goal(), ("board",), first=4, max_queries=60, coverage=(0.0, 0.5))
    board = Profile(name="board", transport="address", address=address, kernels="builtin")
    with ExitStack() as stack:
        opened = open_pair(load_pair(EXAMPLE), plan, [board], stack)
        header = describe_run(opened, plan)
        _, journal = (
            resume_run(out, header)
            if resume
            else begin_run(out, header, len(opened.seeds), overwrite=False)
        )
        stack.callback(journal.close)
        return as_json(
            run_recorded_campaign(
                opened,
                header.plan,
                journal,
                observer=observer,
                interrupt=observer.interrupt,
                phases=search_and_cover(opened),
            )
        )


def test_a_device_that_comes_back_changes_nothing(
    start_agent: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, *[0.05] * 100))
    agent = start_agent()
    calm = search(agent.address, tmp_path / "calm", Intruder(lambda: None))
    assert [one["arm"] for one in calm["coverage"]["arms"]] == ["original", "twin", "device"]
    accepted = []
    with FaultyProxy(agent.address, seed=0) as proxy:

        def cut_all() -> None:
            accepted.append(proxy.accepted)
            proxy.cut_all()

        cut = search(proxy.address, tmp_path / "cut", Intruder(cut_all))
        assert 0 < accepted[0] < proxy.accepted
    assert untimed(cut) == untimed(calm)


def test_a_device_that_is_gone_for_good_leaves_a_run_that_can_be_gone_on_with(
    start_agent: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, 0.05))
    agent, run = start_agent(), tmp_path / "run"
    with (
        FaultyProxy(agent.address, seed=0) as proxy,
        pytest.raises(InfrastructureError, match="board: lost, and not back"),
    ):
        search(proxy.address, run, Intruder(proxy.close))
    stopped = load_document(RunDirectory(run))  # holds it to the schema
    assert stopped.stopped_by == "infrastructure"
    assert stopped.coverage is None
    assert stopped.findings
    agent.kill()  # by another address it would wait for the lease to end
    resumed = search(start_agent().address, run, Intruder(lambda: None), resume=True)
    assert resumed["stopped_by"] is None
    assert resumed["coverage"]["findings"] == len(stopped.findings)
    assert len(resumed["coverage"]["arms"]) == 3


def test_ctrl_c_ends_it_and_the_run_goes_on_with_it_later(
    start_agent: Callable[..., Any], tmp_path: Path
) -> None:
    agent, run, interrupt = start_agent(), tmp_path / "run", Interrupt()
    search(agent.address, run, Intruder(interrupt.ask, interrupt))
    document = json.loads((run / "run.json").read_bytes())
    assert document["stopped_by"] == "interrupt"
    assert "coverage" not in document
    resumed = search(agent.address, run, Intruder(lambda: None), resume=True)
    assert resumed["stopped_by"] is None
    assert len(resumed["coverage"]["arms"]) == 3
