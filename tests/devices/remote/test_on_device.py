"""The functions for a device's shell, in the shells of this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeflare.devices.remote import on_device
from edgeflare.devices.remote.remote_shell import RemoteCommandFailed
from edgeflare.errors import InfrastructureError, UserError
from loopback_remote import LoopbackRemote
from processes import alive

SHELLS = {"sh": ["sh"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"], "mksh": ["mksh"]}

READY = """echo '{"ready": true, "port": 4242}'\nexec sleep 60\n"""


def shell(name: str) -> list[str]:
    words = SHELLS[name]
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]} on PATH")
    return words


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.shells) for name in SHELLS])
def here(request: pytest.FixtureRequest) -> LoopbackRemote:
    return LoopbackRemote(shell(request.param))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "it's a \\tiny $cache"


def packed(script: str, runs_by: str = "/bin/sh") -> bytes:
    """A payload whose agent is that script, for that shell."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("agent")
        content = f"#!{runs_by}\n{script}".encode()
        member.size, member.mode = len(content), 0o755
        archive.addfile(member, io.BytesIO(content))
    return gzip.compress(file.getvalue(), mtime=0)  # the same bytes whenever it is made


def deploy(
    here: LoopbackRemote,
    cache: Path,
    script: str,
    name: str = "host-1-1-a",
    runs_by: str = "/bin/sh",
) -> str:
    content = packed(script, runs_by)
    sha256 = hashlib.sha256(content).hexdigest()
    on_device.prepare(here, str(cache))
    (cache / "incoming" / name).write_bytes(content)
    on_device.unpack(here, str(cache), sha256, name)
    return sha256


def started(here: LoopbackRemote, cache: Path, script: str = READY) -> int:
    """Send an agent and launch it; return its process."""
    on_device.launch(here, str(cache), deploy(here, cache, script), "host-1-1-a", [])
    return int((cache / "runs/host-1-1-a/pid").read_text())


def test_an_untouched_device_is_left_untouched_by_a_look(here: LoopbackRemote, cache: Path) -> None:
    seen = on_device.remote_state(here, str(cache))
    assert seen.machine == os.uname().machine
    assert seen.cache == str(cache)
    assert (seen.used, seen.payloads, seen.traces) == (False, frozenset(), ())
    assert not cache.exists()


def test_a_cache_that_every_user_may_write_to_is_refused(here: LoopbackRemote, cache: Path) -> None:
    """Whatever it holds: an agent that another user put there would be run."""
    deploy(here, cache, READY)
    cache.chmod(0o777)
    with pytest.raises(UserError, match=r"every user may write to it.*as cache"):
        on_device.remote_state(here, str(cache))
    cache.chmod(0o775)
    assert on_device.remote_state(here, str(cache)).used


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_a_cache_of_another_user_is_refused(here: LoopbackRemote, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / ".edgeflare").touch()
    os.chown(cache, 65534, 65534)
    with pytest.raises(UserError, match="belongs to another user there"):
        on_device.remote_state(here, str(cache))


def test_a_folder_in_the_home_is_found_there(
    here: LoopbackRemote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert on_device.remote_state(here, "~/.cache/x").cache == f"{tmp_path}/.cache/x"


def test_what_arrived_whole_is_unpacked_and_seen(here: LoopbackRemote, cache: Path) -> None:
    sha256 = deploy(here, cache, READY)
    seen = on_device.remote_state(here, str(cache))
    assert seen.used
    assert seen.payloads == {sha256}
    assert seen.traces == ()
    assert os.access(cache / "payloads" / sha256 / "agent", os.X_OK)
    assert list((cache / "incoming").iterdir()) == []
    assert cache.stat().st_mode & 0o077 == 0


def test_what_another_host_has_completed_meanwhile_stays(here: LoopbackRemote, cache: Path) -> None:
    """An agent may run from it by now."""
    payload = cache / "payloads" / deploy(here, cache, READY)
    before = payload.stat().st_ino
    deploy(here, cache, READY, "other-1-1-a")
    assert payload.stat().st_ino == before
    assert list(payload.parent.iterdir()) == [payload]
    assert list((cache / "incoming").iterdir()) == []


def test_a_system_of_32_bits_on_a_kernel_of_64_is_told(
    here: LoopbackRemote, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, board = here.run, "uname() { echo aarch64; }\ngetconf() { echo 32; }\n"
    monkeypatch.setattr(here, "run", lambda script, *rest: run(board + script, *rest))
    assert on_device.remote_state(here, str(cache)).machine == "armv8l"


def test_what_nobody_will_come_back_for_is_removed(here: LoopbackRemote, cache: Path) -> None:
    started(here, cache)
    for folder in ("runs/gone-1-1-a", "runs/new-1-1-a"):
        (cache / folder).mkdir()
    for file in ("incoming/old-1-1-a", "incoming/new-1-1-a"):
        (cache / file).write_bytes(b"half")
    then = time.time() - 2 * 86400
    for old in ("runs/host-1-1-a", "runs/gone-1-1-a", "incoming/old-1-1-a"):
        os.utime(cache / old, (then, then))
    on_device.prepare(here, str(cache))
    kept = on_device.remote_state(here, str(cache)).traces
    assert len(on_device.running(here, str(cache))) == 1
    on_device.halt(here, str(cache), "host-1-1-a")
    assert kept == ("host-1-1-a", "new-1-1-a")
    assert not (cache / "runs/gone-1-1-a").exists()


def test_what_arrived_damaged_is_refused_and_gone(here: LoopbackRemote, cache: Path) -> None:
    on_device.prepare(here, str(cache))
    (cache / "incoming" / "host-1-1-a").write_bytes(packed(READY)[:-9])
    with pytest.raises(
        RemoteCommandFailed, match="unpack failed there: arrived as sha256"
    ) as refused:
        on_device.unpack(here, str(cache), "0" * 64, "host-1-1-a")
    assert refused.value.status == 1
    assert list((cache / "incoming").iterdir()) == []
    assert on_device.remote_state(here, str(cache)).payloads == set()


def test_a_payload_without_its_last_file_is_not_there(here: LoopbackRemote, cache: Path) -> None:
    sha256 = deploy(here, cache, READY)
    (cache / "payloads" / sha256 / "complete").unlink()
    assert on_device.remote_state(here, str(cache)).payloads == set()
    assert deploy(here, cache, READY) == sha256
    assert on_device.remote_state(here, str(cache)).payloads == {sha256}


def test_a_half_sent_file_is_a_trace_and_can_be_removed(here: LoopbackRemote, cache: Path) -> None:
    on_device.prepare(here, str(cache))
    (cache / "incoming" / "host-1-1-a").write_bytes(b"half")
    assert on_device.remote_state(here, str(cache)).traces == ("host-1-1-a",)
    on_device.halt(here, str(cache), "host-1-1-a")
    assert on_device.remote_state(here, str(cache)).traces == ()


def test_an_agent_is_launched_and_halted(here: LoopbackRemote, cache: Path) -> None:
    said = """for word; do printf '%s\\n' "$word"; done > "$HOME/words"\n"""
    sha256 = deploy(here, cache, f'HOME="{cache.parent}"\n{said}{READY}')
    launched = on_device.launch(here, str(cache), sha256, "host-1-1-a", ["--more", "it's $1"])
    run = cache / "runs" / "host-1-1-a"
    pid = int((run / "pid").read_text())

    assert launched.port == 4242
    assert launched.token == (run / "token").read_text().strip()
    assert len(launched.token) == 32
    assert launched.token not in repr(launched)
    words = (cache.parent / "words").read_text().splitlines()
    assert words[:4] == ["--host", "127.0.0.1", "--port", "0"]
    assert words[-2:] == ["--more", "it's $1"]
    assert words[words.index("--token-file") + 1] == str(run / "token")
    (running,) = on_device.running(here, str(cache))
    assert (running.name, running.pid, running.host) == ("host-1-1-a", pid, platform.node())
    assert 0 <= running.seconds < 60
    assert on_device.halt(here, str(cache), "host-1-1-a") == ""
    assert not alive(pid)
    assert not run.exists()
    assert on_device.halt(here, str(cache), "host-1-1-a") == ""


def test_an_agent_starts_where_its_scripts_shell_is_elsewhere(
    here: LoopbackRemote, cache: Path
) -> None:
    """As on an Android of 2018, which has no /bin."""
    sha256 = deploy(here, cache, READY, runs_by="/no/such/bin/sh")
    assert on_device.launch(here, str(cache), sha256, "host-1-1-a", []).port == 4242
    on_device.halt(here, str(cache), "host-1-1-a")


def test_tokens_differ(here: LoopbackRemote, cache: Path) -> None:
    sha256 = deploy(here, cache, READY)
    names = ["host-1-1-a", "host-1-1-b"]
    tokens = {on_device.launch(here, str(cache), sha256, name, []).token for name in names}
    on_device.halt(here, str(cache), *names)
    assert len(tokens) == 2


def test_how_an_agent_ended_is_told(here: LoopbackRemote, cache: Path) -> None:
    pid = started(here, cache, f"echo 'out of memory' >&2; echo >&2\n{READY}")
    os.kill(pid, 9)
    while alive(pid):
        time.sleep(0.01)
    words = on_device.halt(here, str(cache), "host-1-1-a")
    assert words == "its process had ended; it said: out of memory"


def test_an_agent_that_does_not_heed_is_killed(
    here: LoopbackRemote, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After five seconds, by a clock that is there when it is looked at again."""
    pid = started(here, cache, f"trap '' TERM\n{READY}")
    later = tmp_path / "later"
    clock = f'date() {{ if [ -e "{later}" ]; then echo 5; else echo 0; fi; touch "{later}"; }}\n'
    run = here.run
    monkeypatch.setattr(here, "run", lambda script, *rest: run(clock + script, *rest))
    on_device.halt(here, str(cache), "host-1-1-a")
    assert not alive(pid)


def test_an_agent_that_cannot_be_killed_is_told(
    here: LoopbackRemote, cache: Path, tmp_path: Path
) -> None:
    """As one that waits for ever for a disk that is broken; with a clock that hurries."""
    pid = started(here, cache)
    deaf = (
        "kill() { :; }\n"
        f'date() {{ echo >> "{tmp_path}/ticks"; echo $((7 * $(wc -l < "{tmp_path}/ticks"))); }}\n'
    )
    run = here.run
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(here, "run", lambda script, *rest: run(deaf + script, *rest))
            with pytest.raises(RemoteCommandFailed, match=rf"process {pid}\) does not end"):
                on_device.halt(here, str(cache), "host-1-1-a")
        assert on_device.remote_state(here, str(cache)).traces == ("host-1-1-a",)
    finally:
        on_device.halt(here, str(cache), "host-1-1-a")
    assert not alive(pid)


def test_a_process_that_has_got_an_agents_number_is_left_alone(
    here: LoopbackRemote, cache: Path
) -> None:
    agent, number = started(here, cache), cache / "runs/host-1-1-a/pid"
    with subprocess.Popen(["sleep", "60"]) as other:
        number.write_text(f"{other.pid}\n")
        assert on_device.running(here, str(cache)) == []
        on_device.halt(here, str(cache), "host-1-1-a")
        assert other.poll() is None
        other.kill()
    os.kill(agent, 9)


NOBODY = 65534


class Stranger(LoopbackRemote):
    """A user who cannot look into others' processes, with a folder and a program of its own.

    The kernel hides the home of a process whose program its user cannot read.
    """

    def __init__(self, shell: list[str], folder: Path) -> None:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            rights = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            shell = ["setpriv", *rights, *shell]
        super().__init__(shell)
        self.cache = folder / "it's a $cache"
        self.script = folder / "script"
        os.mkfifo(folder / "for ever", 0o644)
        self.script.write_text(
            f"""echo '{{"ready": true, "port": 4242}}'\nread line < "{folder}/for ever"\n"""
        )
        shutil.copy("/bin/sh", folder / "hidden")
        (folder / "hidden").chmod(0o111)
        self.command = f'"{folder}/hidden" "{self.script}"'

    def sees_the_home_of(self, pid: int) -> bool:
        return bool(self.run(f"[ -e /proc/{pid}/cwd ] && echo yes", 10, "look").stdout)


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.shells) for name in SHELLS])
def stranger(request: pytest.FixtureRequest) -> Iterator[Stranger]:
    words, folder = shell(request.param), Path(tempfile.mkdtemp())
    yield Stranger(words, folder)
    shutil.rmtree(folder)


def test_an_agent_whose_home_is_hidden_is_not_taken_for_gone(stranger: Stranger) -> None:
    cache = str(stranger.cache)
    content = packed(f'exec {stranger.command} "$@"\n')
    sha256 = hashlib.sha256(content).hexdigest()
    on_device.prepare(stranger, cache)
    (stranger.cache / "incoming" / "host-1-1-a").write_bytes(content)
    on_device.unpack(stranger, cache, sha256, "host-1-1-a")
    on_device.launch(stranger, cache, sha256, "host-1-1-a", [])
    pid = int((stranger.cache / "runs/host-1-1-a/pid").read_text())

    assert not stranger.sees_the_home_of(pid)
    assert [one.pid for one in on_device.running(stranger, cache)] == [pid]
    assert on_device.halt(stranger, cache, "host-1-1-a") == ""
    assert not alive(pid)
    assert on_device.remote_state(stranger, cache).traces == ()


def test_another_process_whose_home_is_hidden_is_left_alone(stranger: Stranger) -> None:
    run = f"{stranger.cache}/runs/host-1-1-a"
    pid = int(
        stranger.run(
            f'mkdir -p "{run}" && {{ {stranger.command} > /dev/null 2>&1 & }}\n'
            f'echo $! > "{run}/pid"; echo $!',
            10,
            "start",
        ).stdout
    )
    try:
        assert not stranger.sees_the_home_of(pid)
        assert on_device.running(stranger, str(stranger.cache)) == []
        on_device.halt(stranger, str(stranger.cache), "host-1-1-a")
        assert alive(pid)
    finally:
        os.kill(pid, 9)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'no runtime' >&2; exit 2", "failed with exit code 2; it said: no runtime"),
        ("exit 0", "failed with exit code 0"),
        ("exec /no/such/program", r"failed with exit code 127; it said: .*no/such/program"),
        ("echo; exec sleep 60", "where its ready line was expected"),
        ("exec sleep 60", r"failed to be ready within 1 s"),
    ],
)
def test_an_agent_that_does_not_come_up_is_explained(
    script: str, words: str, here: LoopbackRemote, cache: Path
) -> None:
    sha256 = deploy(here, cache, script)
    with pytest.raises(InfrastructureError, match=words):
        on_device.launch(here, str(cache), sha256, "host-1-1-a", [], start_seconds=1)
    on_device.halt(here, str(cache), "host-1-1-a")
    assert on_device.running(here, str(cache)) == []


def test_old_payloads_go_but_not_those_in_use(here: LoopbackRemote, cache: Path) -> None:
    hashes = [deploy(here, cache, f"# {n}\n{READY}") for n in range(6)]
    for age, sha256 in enumerate(hashes):
        then = time.time() - 1000 + age
        os.utime(cache / "payloads" / sha256, (then, then))
    oldest = hashes[0]
    on_device.launch(here, str(cache), oldest, "host-1-1-a", [])
    os.utime(cache / "payloads" / oldest, (1, 1))
    on_device.prune(here, str(cache), hashes[1], 2)
    on_device.halt(here, str(cache), "host-1-1-a")
    assert on_device.remote_state(here, str(cache)).payloads == {oldest, hashes[1], *hashes[4:]}


def test_a_folder_that_holds_other_things_is_refused(here: LoopbackRemote, cache: Path) -> None:
    cache.mkdir()
    (cache / "models").mkdir()
    with pytest.raises(UserError, match="holds other things"):
        on_device.prepare(here, str(cache))
    with pytest.raises(RemoteCommandFailed):
        on_device.remove(here, str(cache))
    assert (cache / "models").exists()


def test_a_folder_that_another_host_makes_at_the_same_moment_is_no_other_ones(
    here: LoopbackRemote, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ls").write_text(f"""#!/bin/sh\n: > "$MARK"\nexec {shutil.which("ls")} "$@"\n""")
    (programs / "ls").chmod(0o755)
    monkeypatch.setenv("MARK", str(cache / ".edgeflare"))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    on_device.prepare(here, str(cache))
    assert (cache / "incoming").is_dir()


def test_all_is_removed_but_what_others_put_there(here: LoopbackRemote, cache: Path) -> None:
    deploy(here, cache, READY)
    (cache / "thesis").write_text("precious")
    on_device.remove(here, str(cache))
    assert [path.name for path in cache.iterdir()] == ["thesis"]
    (cache / "thesis").unlink()
    deploy(here, cache, READY)
    on_device.remove(here, str(cache))
    assert not cache.exists()


def test_the_script_fits_where_adb_is_old() -> None:
    script = on_device._functions()
    assert len(script) < 4000
    assert not [line for line in script.splitlines() if line.startswith("#")]
