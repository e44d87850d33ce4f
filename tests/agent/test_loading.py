"""How long a worker may take until its model is ready."""

from __future__ import annotations

from typing import Any, cast

import pytest

from edgeflare.devices import connection
from edgeflare_agent.runtime import WorkerLost, loading
from edgeflare_agent.runtime.worker_process import WorkerProcess


class SlowWorker:
    """A worker that imports its runtime and then takes longer than anybody waits."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def send(self, message: dict[str, Any]) -> None:
        del message

    def receive(self, seconds: float) -> dict[str, Any] | None:
        self.waited.append(seconds)
        return {"runtime": "ai-edge-litert 2"} if len(self.waited) == 1 else None


def test_a_worker_that_warms_up_has_time_for_it() -> None:
    worker = SlowWorker()
    order = {"options": {"warmup": 30, "input_timeout_seconds": 10.0}}
    with pytest.raises(WorkerLost, match="did not get ready within 480 s"):
        loading.load(cast("WorkerProcess", worker), order)
    assert worker.waited == [180, 480]


def test_the_host_waits_longer_than_the_agent() -> None:
    """So that the agent says what went wrong, and its host is not gone by then."""
    assert connection.LOAD_SECONDS > loading._LOAD_SECONDS
