"""The agent's process: how it begins, what ends it, and what it says that nobody foresaw."""

from __future__ import annotations

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc
import pytest

import edgeflare
from agent_calls import DESCRIBE, batch, opening, refused, wait_until
from edgeflare_agent.__main__ import _default_store as default_store
from edgeflare_agent.__main__ import main
from edgeflare_agent.tracebacks import Tracebacks
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR
from processes import alive, workers

AGENT = [sys.executable, "-m", "edgeflare_agent"]


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AGENT, *arguments], capture_output=True, text=True, timeout=200, check=False, **options
    )


def test_it_says_once_where_it_listens(start_agent: Any) -> None:
    agent = start_agent()
    assert agent.ready == {
        "ready": True,
        "host": "127.0.0.1",
        "port": agent.port,
        "pid": agent.process.pid,
        "protocol": f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}",
        "agent": edgeflare.__version__,
    }
    agent.process.terminate()
    assert agent.process.wait(200) == 0
    assert agent.process.stdout.read() == b""


@pytest.mark.parametrize("how", ["SIGTERM", "stdin"])
def test_it_stops_cleanly_and_its_workers_with_it(
    how: str, start_agent: Any, connect: Any, int8_model: Path
) -> None:
    agent = start_agent("--exit-with-stdin")
    connect(agent).open(int8_model)
    (worker,) = workers(agent.pid)
    if how == "stdin":
        agent.process.stdin.close()
    else:
        agent.process.send_signal(getattr(signal, how))
    assert agent.process.wait(200) == 0
    assert not alive(worker)


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_one_signal_ends_an_agent_whose_worker_spins_in_a_thousand_threads(
    start_agent: Any, connect: Any, int8_model: Path, faulty_launcher: list[str]
) -> None:
    agent = start_agent("--launcher", " ".join(faulty_launcher))
    client = connect(agent)
    session = client.open(int8_model, input_timeout_seconds=600.0)
    (worker,) = workers(agent.pid)
    spin = bytes([107]) + bytes(7)
    call = client.stub.Infer.future(  # a call that nothing refers to is cancelled
        batch(session.session_id, spin), timeout=600
    )
    assert wait_until(lambda: threads_of(worker) > 1000)
    agent.process.send_signal(signal.SIGINT)
    assert agent.process.wait(200) == 0
    assert wait_until(lambda: not alive(worker))
    assert call.exception(200) is not None


def test_one_signal_ends_an_agent_whose_worker_never_gets_ready(
    start_agent: Any, connect: Any, int8_model: Path, tmp_path: Path
) -> None:
    """The worker ignores SIGTERM, and what it has started goes with it."""
    launcher = tmp_path / "launcher"
    launcher.write_text("#!/bin/sh\ntrap '' TERM INT HUP\nsleep 600 &\necho $! > child\nwait\n")
    launcher.chmod(0o755)
    agent = start_agent("--launcher", str(launcher), cwd=tmp_path)
    client = connect(agent)
    client.upload(int8_model.read_bytes())
    call = client.stub.OpenSession.future(  # a call that nothing refers to is cancelled
        opening(int8_model), timeout=600
    )
    child = tmp_path / "child"
    assert wait_until(lambda: child.exists() and bool(child.read_text().strip()))
    (worker,) = workers(agent.pid)
    agent.process.terminate()
    assert agent.process.wait(200) == 0
    assert wait_until(lambda: not alive(worker) and not alive(int(child.read_text())))
    assert call.exception(200) is not None


def test_a_signal_ends_an_agent_that_waits_for_its_store(tmp_path: Path) -> None:
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    waiting = subprocess.Popen([*AGENT, "--store", str(tmp_path)], stdout=subprocess.PIPE)
    with waiting:
        assert wait_until(lambda: f":{tmp_path.stat().st_ino} " in blocked_on_locks(waiting.pid))
        waiting.terminate()
        assert waiting.wait(200) == -signal.SIGTERM
    os.close(lock)


def blocked_on_locks(pid: int) -> str:
    lines = Path("/proc/locks").read_text().splitlines()
    return " ".join(line for line in lines if "->" in line and f" {pid} " in line)


def test_a_killed_agent_leaves_no_orphans_not_even_a_hanging_one(
    start_agent: Any, connect: Any, int8_model: Path, faulty_launcher: list[str]
) -> None:
    agent = start_agent("--launcher", " ".join(faulty_launcher))
    client = connect(agent)
    session = client.open(int8_model, input_timeout_seconds=60.0)
    client.open(int8_model)
    pids = workers(agent.pid)
    assert len(pids) == 2
    hang = bytes([102]) + bytes(7)
    call = client.stub.Infer.future(batch(session.session_id, hang), timeout=200)
    time.sleep(0.3)
    assert not call.done()
    os.kill(agent.pid, signal.SIGKILL)
    assert wait_until(lambda: not any(map(alive, pids)))


def test_the_server_loads_no_runtime(start_agent: Any, connect: Any, int8_model: Path) -> None:
    agent = start_agent()
    connect(agent).open(int8_model)
    maps = Path(f"/proc/{agent.pid}/maps").read_text()
    assert not [name for name in ("litert", "tflite_runtime", "cv2", "numpy") if f"/{name}" in maps]
    (worker,) = workers(agent.pid)
    assert "numpy" in Path(f"/proc/{worker}/maps").read_text()


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--port", "99999", "must be a whole number from 0 to 65535"),
        ("--port", "http", ""),
        ("--store-limit-mib", "0", "must be a whole number from 1 to 1073741824"),
        ("--store-limit-mib", "99999999999999", "must be a whole number from 1 to 1073741824"),
        ("--exit-when-idle", "1e300", "must be a whole number from 1 to 2678400"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused_in_one_line(
    option: str, value: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option, value])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert f"{option}: {expected}" in err


def test_a_taken_port_is_said_in_one_line(start_agent: Any, tmp_path: Path) -> None:
    agent = start_agent()
    ended = run("--port", str(agent.port), "--store", str(tmp_path / "other"))
    assert ended.returncode == 3
    assert f"cannot listen on 127.0.0.1 port {agent.port}: Address already in use" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stdout == ""


def test_a_store_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = run("--store", str(tmp_path / "file" / "store"))
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1)
    assert "file/store" in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--port=x", 2)])
def test_nobody_need_read_what_it_prints(option: str, code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for errors in (None, writer):
        ended = subprocess.run(
            [*AGENT, option], stdout=writer, stderr=errors, timeout=200, check=False
        )
        assert ended.returncode == code
    os.close(writer)
    closed = subprocess.run(
        ["bash", "-c", '"$@" >&- 2>&-', "bash", *AGENT, option], timeout=200, check=False
    )
    assert closed.returncode == code


def test_the_store_has_a_place_even_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_store() == Path("/home/ada/.cache/edgeflare/models")
    monkeypatch.delenv("HOME")
    assert default_store().name == "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_store() == Path("/cache/edgeflare/models")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def raised(words: str) -> Exception:
    try:
        raise KeyError(words)
    except KeyError as error:
        return error


def test_they_are_kept_in_one_file_of_bounded_size(folder: Path) -> None:
    tracebacks = Tracebacks()
    places = {tracebacks.keep(raised("x" * 100_000)) for _ in range(30)}
    (file,) = folder.iterdir()
    assert places == {str(file)}
    assert file.stat().st_mode & 0o077 == 0
    assert "Traceback" in file.read_text()
    assert file.stat().st_size < 1.5 * 2**20


def test_a_link_in_place_of_the_file_is_not_followed(folder: Path) -> None:
    tracebacks = Tracebacks()
    place = Path(tracebacks.keep(raised("x")))
    victim = folder / "victim"
    victim.write_text("precious")
    place.unlink()
    place.symlink_to(victim)
    assert tracebacks.keep(raised("y")).startswith("no file, since none can be written")
    assert victim.read_text() == "precious"


def test_a_call_that_fails_in_an_unforeseen_way_is_answered_in_one_line(
    folder: Path, start_agent: Any, connect: Any, int8_model: Path, capfd: Any
) -> None:
    """A folder stands where the model should go: no status was foreseen for that."""
    agent = start_agent(env={**os.environ, "TMPDIR": str(folder)})
    client = connect(agent)
    content = int8_model.read_bytes()
    (folder / "store" / f"{hashlib.sha256(content).hexdigest()}.tflite").mkdir()
    code, words = refused(lambda: client.upload(content))
    assert code == grpc.StatusCode.INTERNAL
    assert words.startswith("unexpected IsADirectoryError: ")
    (file,) = folder.glob("edgeflare-agent-*.txt")
    assert str(file) in words
    assert "Traceback" in file.read_text()
    client.stub.Describe(DESCRIBE, timeout=200)
    assert "Traceback" not in capfd.readouterr().err
