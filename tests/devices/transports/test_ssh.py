"""The transport "ssh", from the command line down to a real sshd: see `boards.py`."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent_calls import wait_until
from boards import Board, BoardUnavailable
from documents import Document, as_json
from edgeflare.devices import device as device_module
from edgeflare.devices.agent_lease import DeviceInUse
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.remote.deployment import install_agent, uninstall_agent
from edgeflare.devices.remote.remote_shell import RemoteCommandFailed, RemoteLost
from edgeflare.devices.transports.ssh import SshRemote
from edgeflare.errors import EdgeFlareError, InfrastructureError, UserError
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from laboratory import untimed

Images = NDArray[np.float32]

pytestmark = pytest.mark.sshd

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "fashion_lenet4"
SEARCH = (
    *("--strategy", "dflare", "--first", "5", "--max-queries", "300"),
    *("--shrink", "0", "--fail-on", "none"),
)

_PATIENT_SECONDS = 400.0


@contextmanager
def a_board(patch: pytest.MonkeyPatch) -> Iterator[Board]:
    # Sockets have short paths, and pytest's folders long ones.
    with tempfile.TemporaryDirectory(prefix="edgeflare-board-") as folder:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        try:
            board = Board(Path(folder))
        except BoardUnavailable as error:
            pytest.skip(str(error))
        patch.setenv("PATH", str(board.tools), prepend=os.pathsep)
        patch.setenv("XDG_CACHE_HOME", f"{folder}/cache")
        patch.setenv("HOME", folder)
        with closing(board):
            yield board


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.chdir(tmp_path)
    with a_board(monkeypatch) as board:
        yield board


@pytest.fixture
def pi(board: Board) -> Profile:
    """The board, with a Python that has a runtime."""
    return Profile(
        name="pi", transport="ssh", host=board.name, python=sys.executable, kernels="builtin"
    )


def payloads(board: Board) -> list[str]:
    return sorted(path.name for path in (board.cache / "payloads").iterdir())


def scratch_folders() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("edgeflare-scratch-*"))


def test_the_agent_is_sent_once_and_ends_with_its_host(
    board: Board,
    pi: Profile,
    model: Path,
    images: Images,
    expected: Callable[[str], NDArray[np.float32]],
) -> None:
    with connect(pi) as device:
        answered = device.open(model).submit(images).result(200)
        assert len(board.agents()) == 1
        stored = list((board.cache / "models").glob("*.tflite"))
    (payload,) = payloads(board)
    unpacked_at = (board.cache / "payloads" / payload / "complete").stat().st_mtime_ns
    with connect(pi) as device:
        told = device.provenance

    assert np.array_equal(answered.outputs, expected("builtin"))
    assert len(stored) == 1
    assert (told.transport, told.runtime) == ("ssh", "ai-edge-litert")
    assert told.cache == "~/.cache/edgeflare/device"
    assert board.cache == board.home / ".cache/edgeflare/device"
    assert payloads(board) == [payload]
    assert (board.cache / "payloads" / payload / "complete").stat().st_mtime_ns == unpacked_at
    assert board.agents() == []
    assert list((board.cache / "runs").iterdir()) == []
    assert list((board.cache / "incoming").iterdir()) == []
    assert wait_until(lambda: board.connections() == 0)
    assert scratch_folders() == []


def test_all_that_is_kept_is_for_its_owner_alone(board: Board, pi: Profile) -> None:
    with connect(pi):
        (token,) = (board.cache / "runs").glob("*/token")
        assert token.stat().st_mode & 0o077 == 0
        assert board.cache.stat().st_mode & 0o077 == 0
        secret = token.read_text().strip()
        command_lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
        assert len(secret) == 32
        assert not [line for line in command_lines if secret.encode() in line]


def test_a_link_that_is_cut_comes_back_with_a_new_agent(
    board: Board, pi: Profile, model: Path, images: Images, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And where the board is gone, it is said, and it may come back later."""
    with connect(pi) as device:
        session = device.open(model)
        first = session.submit(images).result(200)
        (before,) = board.agents()
        assert board.cut() >= 1
        with pytest.raises(InfrastructureError):
            session.submit(images).result(200)
        assert board.agents() == [before]  # which the cut did not end
        device.reopen()
        again = session.submit(images).result(200)
        (after,) = board.agents()
        with monkeypatch.context() as impatient:
            impatient.setattr(device_module, "REOPEN_PAUSES_SECONDS", (0.0, 0.1))
            board.stop()
            with pytest.raises(InfrastructureError, match=r"^pi: lost.*the ssh connection ended"):
                device.reopen()
            board.start()
        device.reopen()

    assert after != before
    assert np.array_equal(again.outputs, first.outputs)
    assert board.agents() == []


def test_an_agent_that_is_killed_is_started_again(
    board: Board, pi: Profile, model: Path, images: Images
) -> None:
    with connect(pi) as device:
        session = device.open(model)
        board.kill_agents()
        with pytest.raises(InfrastructureError):
            session.submit(images).result(200)
        device.reopen()
        session.submit(images).result(200)
    assert board.agents() == []


def test_what_a_killed_host_left_is_ended_by_the_next_one_and_nothing_else(
    board: Board, pi: Profile
) -> None:
    with host(board, as_if_elsewhere=True) as other:
        (theirs,) = board.agents()
        with pytest.raises(InfrastructureError, match=rf"in use by \S+ for .*process {theirs}\)"):
            connect(pi)
        assert board.agents() == [theirs]
        other.kill()
        other.wait()
    assert wait_until(lambda: board.connections() == 0)  # no ssh outlives its host
    assert board.agents() == [theirs]
    with connect(pi):
        assert theirs not in board.agents()
    assert board.agents() == []
    assert list((board.cache / "runs").iterdir()) == []


def test_two_campaigns_never_share_a_board(board: Board, pi: Profile) -> None:
    with host(board) as other:
        with pytest.raises(InfrastructureError, match=f"in use by another.*process {other.pid}"):
            connect(pi)
        assert len(board.agents()) == 1
        other.kill()
        other.wait()
    with connect(pi):
        assert len(board.agents()) == 1


def test_hosts_whose_agents_are_in_different_folders_share_its_lease(
    board: Board, pi: Profile
) -> None:
    """As where they are different users there, who cannot look into each other's folders."""
    with host(board, as_if_elsewhere=True, cache="~/other/device") as other:
        (theirs,) = board.agents()
        with pytest.raises(
            DeviceInUse, match=rf"in use by \S+@\S+ \(process {other.pid}, python\)"
        ):
            connect(pi)
        assert board.agents() == [theirs]
        other.kill()
        other.wait()
        board.kill_agents()
    with connect(pi):
        assert len(board.agents()) == 1


def host(
    board: Board, *, as_if_elsewhere: bool = False, cache: str | None = None
) -> subprocess.Popen[str]:
    """Another host process, which has the board open when this returns."""
    environment = dict(os.environ)
    if as_if_elsewhere:  # where nobody here sees its leases
        environment["XDG_CACHE_HOME"] = str(board.folder / "elsewhere")
    script = (
        "import sys, time\n"
        "from edgeflare.devices.device import connect\n"
        "from edgeflare.devices.profile import Profile\n"
        f"device = connect(Profile(name='pi', transport='ssh', host={board.name!r},"
        f" cache={cache!r}, python=sys.executable))\n"
        "print('up', flush=True)\n"
        "time.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_a_forward_leads_to_the_device_and_goes(board: Board, pi: Profile) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, SshRemote(pi) as remote:
        with remote.forward(listener.getsockname()[1]) as local:
            there = socket.create_connection(("127.0.0.1", local), 5)
            here, _ = listener.accept()
            with there, here:
                there.sendall(b"?")
                assert here.recv(1) == b"?"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", local), 5)


def test_a_command_answers_with_its_output_and_exit_code(board: Board, pi: Profile) -> None:
    with SshRemote(pi) as remote:
        done = remote.run('echo out; echo "it\'s" >&2; exit 7', 10, "try")
        assert (done.stdout, done.stderr, done.exit_code) == ("out\n", "it's\n", 7)
        with pytest.raises(RemoteCommandFailed, match=r"sleep did not end within 0\.3 s") as slow:
            remote.run("sleep 20", 0.3, "sleep")
        assert slow.value.command == "sleep"


def test_a_file_arrives_as_it_is_under_any_name(board: Board, pi: Profile, tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    (tmp_path / "file").write_bytes(content)
    with SshRemote(pi) as remote:
        remote.push(tmp_path / "file", f"{board.home}/it's $HOME", 20)
        with pytest.raises(RemoteCommandFailed, match="cannot be written there") as refused:
            remote.push(tmp_path / "file", f"{board.home}/no/such/folder", 20)
    assert (board.home / "it's $HOME").read_bytes() == content
    assert refused.value.status == 1
    assert "No such file" in refused.value.output


def test_a_lost_link_says_so_at_once(board: Board, pi: Profile) -> None:
    with SshRemote(pi) as remote:
        board.cut()
        with pytest.raises(RemoteLost, match="the ssh connection ended"):
            remote.run("true", 10, "try")
        with pytest.raises(RemoteLost, match="the ssh connection ended"):
            remote.run("true", 10, "try")


def test_the_users_configuration_holds_but_for_what_would_be_in_the_way(
    board: Board, pi: Profile
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        board.configure(
            "user_key",
            f"LocalForward {port} 127.0.0.1:9\nRemoteCommand false\nRequestTTY force\n"
            "ControlMaster auto\nControlPath none\nExitOnForwardFailure yes\nLogLevel DEBUG",
        )
        with connect(pi) as device:
            assert device.provenance.machine


@pytest.mark.parametrize(
    ("disturb", "change", "kind", "words"),
    [
        (Board.stop, {}, RemoteLost, "cannot be reached: .*Connection refused; is it on"),
        (Board.lose_the_key, {}, RemoteCommandFailed, "ssh-copy-id board"),
        (Board.forget, {}, RemoteCommandFailed, "run `ssh board` once by hand"),
        (None, {"host": "nowhere.invalid"}, RemoteLost, "resolve hostname"),
        (None, {"host": None}, UserError, "host is missing"),
        (None, {"cache": "/edgeflare"}, UserError, "at least two deep"),
        (None, {"cache": "/a/../b"}, UserError, "at least two deep"),
        (None, {"python": "/no/python"}, InfrastructureError, "/no/python"),
        (None, {"python": "true"}, InfrastructureError, "failed with exit code 0"),
    ],
)
def test_what_stands_in_the_way_is_said_in_one_line(
    disturb: Callable[[Board], None] | None,
    change: dict[str, Any],
    kind: type[EdgeFlareError],
    words: str,
    board: Board,
    pi: Profile,
) -> None:
    if disturb is not None:
        disturb(board)
    with pytest.raises(kind, match=words) as refused:
        connect(replace(pi, **change))
    assert "\n" not in str(refused.value)
    assert board.agents() == []
    assert scratch_folders() == []


def test_a_folder_that_holds_other_things_is_left_alone(board: Board, pi: Profile) -> None:
    (board.home / "models").mkdir()
    (board.home / "models" / "thesis").write_text("precious")
    theirs = replace(pi, cache=str(board.home))
    with pytest.raises(UserError, match="holds other things"):
        connect(theirs)
    assert uninstall_agent(theirs) == ""
    assert (board.home / "models" / "thesis").read_text() == "precious"


def test_uninstalling_leaves_nothing_but_waits_for_who_is_in(
    board: Board, pi: Profile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with connect(pi):
        with pytest.raises(UserError, match="are the same one: ssh://board"):
            uninstall_agent(pi)
        with monkeypatch.context() as another_user:
            another_user.setenv("XDG_CACHE_HOME", str(tmp_path))
            with pytest.raises(UserError, match=r"1 of the agents in .* run for somebody"):
                uninstall_agent(pi)
        assert len(board.agents()) == 1
    assert uninstall_agent(pi) == str(board.cache)
    assert not board.cache.exists()
    assert uninstall_agent(pi) == ""


def test_installing_starts_nothing(board: Board, pi: Profile) -> None:
    first, again = install_agent(pi), install_agent(pi)
    assert first.cache == str(board.cache)
    assert first.sent_bytes > 10_000
    assert again == replace(first, sent_bytes=0)
    assert payloads(board) == [first.sha256]
    assert board.agents() == []


def test_a_path_too_long_for_a_socket_is_said(
    board: Board, pi: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = Path(tempfile.gettempdir()) / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with pytest.raises(UserError, match="set TMPDIR to a shorter one"):
        connect(pi)


def search(out: Path) -> list[str]:
    return ["search", str(EXAMPLE), *SEARCH, "--device", "pi", "--out", str(out)]


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "edgeflare", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    with process:
        _, err = process.communicate(timeout=_PATIENT_SECONDS)
    return process.returncode, err


def document(out: Path) -> Document:
    return as_json(load_document(RunDirectory(out)))


def found(run: Document) -> tuple[object, ...]:
    """What a run found, and at what cost."""
    return run["totals"]["queries"], *untimed(run)["findings"]


def write_profile(board: Board) -> None:
    devices = Path("~/.config/edgeflare/devices").expanduser()
    devices.mkdir(parents=True, exist_ok=True)
    (devices / "pi.toml").write_text(
        f'extends = "linux-aarch64-ssh"\nhost = "{board.name}"\nkernels = "builtin"\n'
        f'python = "{sys.executable}"\n'
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """What the searches of this file find where nobody cuts a link."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch, a_board(patch) as board:
        patch.chdir(folder)
        write_profile(board)
        with start(*search(folder / "run")) as process:
            out, err = process.communicate(timeout=_PATIENT_SECONDS)
        assert process.returncode == 0, err
        assert "Agent and models stay on pi in ~/.cache/edgeflare/device." in " ".join(out.split())
    return document(folder / "run")


@pytest.mark.slow
def test_a_search_goes_on_as_if_the_link_had_never_been_cut(
    board: Board, undisturbed: Document, tmp_path: Path
) -> None:
    write_profile(board)
    process = start(*search(tmp_path / "run"))
    cuts = 0
    while process.poll() is None and cuts < 3:
        if has_begun(tmp_path / "run"):
            cuts += bool(board.cut())
        time.sleep(0.2)
    code, err = ended(process)

    assert code == 0, err
    assert cuts
    assert found(document(tmp_path / "run")) == found(undisturbed)
    assert board.agents() == []
    assert wait_until(lambda: board.connections() == 0)


def has_begun(out: Path) -> bool:
    """Whether a search has found something."""
    if not (out / "findings").is_dir():
        return False
    with closing(sqlite3.connect(out / "run.db")) as db:
        return bool(db.execute("SELECT count(*) FROM stints WHERE wall_seconds > 0").fetchone()[0])
