"""Agents are forked where that makes no difference."""

from __future__ import annotations

import os
import socket
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from agent_server import StartRequest, standing
from edgeflare.models.tflite import open_tflite
from edgeflare_agent.runtime.fork_server_process import STATUS
from edgeflare_agent.runtime.worker_process import end_fork_servers
from forked_agents import _forked, agents_socket
from processes import fork_servers, workers
from tampering import COMPRESSED

pytestmark = pytest.mark.slow


def forked(tmp_path: Path, changed: dict[str, str]) -> bool:
    """Ask for an agent that cannot serve, and return whether there was one."""
    environment = {**os.environ, **changed}
    with (tmp_path / "log").open("wb") as log:
        request = StartRequest(["--version"], str(tmp_path), environment, standing())
        child = _forked(agents_socket(), request, [log.fileno()] * 3)
    if child is not None:
        os.close(child[1])
    return child is not None


def test_a_fork_server_of_this_process_is_no_child_of_it() -> None:
    end_fork_servers()
    before = fork_servers(os.getpid())
    with closing(open_tflite(COMPRESSED)) as model:
        model.submit(np.zeros((1, *model.signature.input.shape[1:]), np.float32)).result()
        assert fork_servers(os.getpid()) == before
        assert not workers(os.getpid())


def test_what_python_or_a_library_would_start_otherwise_with_is_not_forked(tmp_path: Path) -> None:
    assert forked(tmp_path, {"HOME": "/elsewhere"})
    assert not forked(tmp_path, {"PYTHONUTF8": "0"})
    assert not forked(tmp_path, {"LD_PRELOAD": "libm.so.6"})


def test_packages_beside_edgeflare_are_not_left_out(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    path = f"{tmp_path / 'beside'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    assert forked(tmp_path, {"PYTHONPATH": path})
    (tmp_path / "beside" / "sitecustomize.py").touch()
    assert not forked(tmp_path, {"PYTHONPATH": path})


def test_who_is_killed_as_it_asks_is_passed_over(tmp_path: Path) -> None:
    for sent in (b"", STATUS.pack(9), STATUS.pack(9) + b"half"):
        with socket.socket(socket.AF_UNIX) as asks:
            asks.connect(agents_socket())
            asks.sendall(sent)
    assert forked(tmp_path, {})


def test_a_fork_ends_with_its_own_exit_code(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        request = StartRequest(["--no-such-option"], str(tmp_path), dict(os.environ), standing())
        child = _forked(agents_socket(), request, [log.fileno()] * 3)
    assert child is not None
    with os.fdopen(child[1], "rb") as told:
        assert int.from_bytes(told.read(4), sys.byteorder) == 2
    assert b"--no-such-option" in (tmp_path / "log").read_bytes()
