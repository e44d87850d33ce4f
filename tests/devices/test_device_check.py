"""The check of a device."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from edgeflare.devices import device_check
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.devices.session import DeviceSession


@pytest.mark.slow
def test_a_device_that_is_well_passes() -> None:
    checked = device_check.check_device(find_profile("emulated-builtin"))
    assert checked.provenance.total_nodes == 1


def test_the_stream_alone_says_when_an_answer_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so in a line for the user; a future that is waited for with a limit does not."""
    limits: list[object] = []

    class Lost(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            limits.append(timeout)
            raise DeviceLost("board: no answer to 3 inputs within 90 s")

    monkeypatch.setattr(DeviceSession, "submit", lambda *_: Lost())
    with pytest.raises(DeviceLost, match="no answer to 3 inputs"):
        device_check.check_device(find_profile("emulated-builtin"))
    assert limits == [None]
