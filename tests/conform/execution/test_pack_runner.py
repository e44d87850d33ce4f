"""One pack in a fresh process: its answers, its end, and a device that is lost meanwhile."""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from deadly_operators import deadly_launcher
from edgeflare.conform.execution.device_opener import DeviceOpener
from edgeflare.conform.execution.host_opener import HostOpener
from edgeflare.conform.execution.kernel_arm import RunFailure
from edgeflare.conform.execution.model_pack import ModelPack
from edgeflare.conform.execution.pack_runner import MOST_LOSSES, PackRunner
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_shipped_profile
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from posed_models import mixed_models, posed, unary
from processes import children
from wrapped_evaluators import WrappedEvaluator

PACK = ModelPack(mixed_models(8))


class LostPlace:
    """The host's built-ins as a device that is lost on some loads, and on batches of the first."""

    name = "device"
    payload_limit_bytes = 1 << 20
    input_seconds = 10.0

    def __init__(self, loads: Collection[int] = (), batches: Collection[int] = ()) -> None:
        self._inner, self._loads, self._batches = HostOpener("builtin"), loads, batches
        self.log: list[str] = []

    def open(self, path: Path) -> Evaluator:
        self.log.append("open")
        number = self.log.count("open")
        if number in self._loads:
            raise DeviceLost("pulled the plug")
        return WrappedEvaluator(self._inner.open(path), self._batches if number == 1 else ())

    def recover(self) -> None:
        self.log.append("recover")


@pytest.fixture
def emulated() -> Iterator[Device]:
    with connect(find_shipped_profile("emulated-builtin")) as device:
        yield device


@pytest.mark.slow
@pytest.mark.parametrize("place", [LostPlace(loads=(1, 2)), LostPlace(batches=(2,))])
def test_a_pack_is_run_again_on_a_device_that_came_back(place: LostPlace) -> None:
    with closing(PackRunner(place)) as runner, closing(PackRunner(HostOpener("builtin"))) as host:
        answers, expected = runner.run(PACK, 10.0), host.run(PACK, 10.0)
    assert not isinstance(answers, RunFailure)
    assert not isinstance(expected, RunFailure)
    for answer, other in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(answer.outputs[0], other.outputs[0])
    assert place.log in (
        ["open", "recover", "open", "recover", "open"],
        ["open", "recover", "open"],
    )


def test_a_pack_that_always_loses_the_device_is_given_up() -> None:
    place = LostPlace(loads=range(100))
    with closing(PackRunner(place)) as runner, pytest.raises(InfrastructureError, match="in a row"):
        runner.run(PACK, 10.0)
    assert place.log.count("recover") == MOST_LOSSES


@pytest.mark.slow
def test_an_agent_that_was_killed_costs_no_answer(emulated: Device) -> None:
    models = mixed_models(12)
    with closing(PackingArm(DeviceOpener(emulated))) as arm:
        before = arm.run(models)
        for pid in children(os.getpid()):
            if "edgeflare_agent" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
        after = arm.run(models)
    for answer, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(answer.outputs[0], other.outputs[0])


@pytest.mark.slow
def test_a_device_refuses_in_the_words_of_its_runtime(emulated: Device) -> None:
    models = [*mixed_models(3), posed(unary("LOGICAL_NOT"))]
    with closing(PackingArm(DeviceOpener(emulated))) as arm:
        answers = arm.run(models)
    failure = answers[3].failure
    assert failure is not None
    assert failure.kind == "refused"
    assert failure.detail.startswith("ai-edge-litert")
    assert [one.failure for one in answers[:3]] == [None] * 3


@pytest.mark.slow
def test_a_pack_that_hangs_is_not_waited_for() -> None:
    pack = ModelPack([*mixed_models(3), posed(unary("FLOOR"))])
    opener = HostOpener("builtin", deadly_launcher({"FLOOR": "hang"}))
    with closing(PackRunner(opener)) as runner:
        outcome = runner.run(pack, 0.5)
    assert outcome == RunFailure("hang", "no answer within 0.5 s")
