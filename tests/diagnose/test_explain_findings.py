"""Whether the device that explains findings is the one that made them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from edgeflare.core.goal import Goal
from edgeflare.devices.provenance import Provenance
from edgeflare.diagnose.explain_findings import is_the_runs_own
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader

BOARD = Provenance(
    name="board",
    transport="ssh",
    machine="aarch64",
    soc="",
    cpu_features=("asimd", "fp"),
    os="Linux",
    cores=4,
    governor="",
    python="3.11",
    runtime="ai-edge-litert",
    runtime_version="2.3.0",
    kernels="xnnpack",
    threads=1,
    link_delay_ms=0.0,
    agent_version="0.1.0",
    protocol="1.5",
)


def is_its_own(noted: dict[str, object], now: Provenance) -> bool:
    header = RunHeader(
        version="test",
        pair={"name": "pair", "fingerprint": "0"},
        plan=Plan("boundary", Goal(), ("board",)),
        devices=({"name": "board", "provenance": noted},),
        arms={},
        classes=(),
        labels=None,
    )
    device: Any = SimpleNamespace(profile=SimpleNamespace(name="board"), provenance=now)
    return is_the_runs_own(header, device)


@pytest.mark.parametrize(
    ("now", "is_same"),
    [
        (BOARD, True),
        (replace(BOARD, cpu_features=("asimd", "asimddp", "fp")), False),
        (replace(BOARD, threads=4), False),
        (replace(BOARD, cores=2, delegated_nodes=3), True),
    ],
    ids=["itself", "other features", "other threads", "fewer cores"],
)
def test_a_device_that_may_answer_otherwise_is_not_the_runs_own(
    now: Provenance, is_same: bool
) -> None:
    assert is_its_own(BOARD.to_json(), now) == is_same


def test_what_an_older_journal_does_not_know_is_no_difference() -> None:
    older = {key: value for key, value in BOARD.to_json().items() if key != "cpu_features"}
    assert is_its_own(older, BOARD)
