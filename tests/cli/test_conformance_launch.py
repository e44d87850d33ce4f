"""A conformance run that is stopped before its device answers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from edgeflare.cli.conformance_launch import (
    RequestedConformance,
    requested_header,
    run_requested_conformance,
    try_conformance,
)
from edgeflare.devices.profile import Profile

NOTHING = cast("RequestedConformance", None)
"""Nothing of what was asked is looked at before the device is open."""


@pytest.mark.parametrize(
    "launch",
    [
        lambda profile, path: run_requested_conformance(NOTHING, profile, path, path),
        lambda profile, path: try_conformance(NOTHING, profile, path),
        lambda profile, _: requested_header(NOTHING, profile),
    ],
)
def test_ctrl_c_ends_the_wait_for_a_device_that_does_not_answer(
    launch: Callable[[Profile, Path], object], tmp_path: Path
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        host, port = silent.getsockname()
        profile = Profile(name="silent", transport="address", address=f"{host}:{port}")

        def stop() -> None:
            with silent.accept()[0]:
                os.kill(os.getpid(), signal.SIGINT)
                ended.wait()

        ended, stopping = threading.Event(), threading.Thread(target=stop)
        stopping.start()
        with pytest.raises(KeyboardInterrupt):
            launch(profile, tmp_path / "run")
        ended.set()
        stopping.join()
