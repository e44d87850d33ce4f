"""Pairs and profiles that a stranger made: nothing of them acts before it is trusted."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from called_commands import EXAMPLE, completed, document_of, refused
from canary import Canary
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.trust import granted

Refusal = Callable[..., str]

DRY_RUN = ("search", "pair", "--first", "1", "--dry-run")


@pytest.fixture
def crafted(bait: Canary) -> Canary:
    """Bait beside a copy of the example pair, in an otherwise empty working directory."""
    shutil.copytree(EXAMPLE, "pair")
    return bait


def say(key: str, value: str) -> None:
    """Have the pair say something else."""
    file = Path("pair/pair.toml")
    kept = [line for line in file.read_text().splitlines() if not line.startswith(f"{key} =")]
    file.write_text("\n".join([f"{key} = {json.dumps(value)}", *kept]) + "\n")


def put_code(bait: Canary, *paths: str) -> None:
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(bait.code)


ORIGINALS: dict[str, tuple[str, ...]] = {
    # What a pair names as its original, and the files of code that lie about.
    "os:system": (),
    "subprocess:call": (),
    "net.py:predict": ("pair/net.py",),
    "{here}/elsewhere/net.py:predict": ("elsewhere/net.py",),
    "net:predict": ("net.py",),
    "pack.net:predict": ("pack/__init__.py", "pack/net.py"),
    "outer.inner.net:predict": ("outer/inner/net.py",),
    "pack.absent:predict": ("pack/__init__.py",),
    "os.path:basename": ("onnxruntime.py", "matplotlib.py"),
}


@pytest.mark.parametrize("named", [*ORIGINALS, "as compressed model"])
def test_no_code_of_a_pair_is_executed_before_it_is_trusted(named: str, crafted: Canary) -> None:
    if original := named if named in ORIGINALS else None:
        say("original", original.format(here=Path.cwd()))
    else:
        say("compressed", "net.py:predict")
    put_code(crafted, *ORIGINALS.get(named, ("pair/net.py",)))
    for command in (
        ("search", "pair", "--dry-run"),
        ("search", "pair", "--out", "run"),
        ("bench", "pair", "--out", "out", "--dry-run"),
        ("rank", "pair", "--compressed", "pair/original.tflite", "--out", "out"),
    ):
        assert ("--trust" in refused(*command)) is (original is not None)
        assert crafted.harm() == []
    assert not Path("run").exists()


@pytest.mark.usefixtures("crafted")
@pytest.mark.parametrize("kind", ["pipe", "endless"])
@pytest.mark.parametrize("key", ["original", "compressed", "seeds"])
def test_a_file_that_never_ends_is_refused(key: str, kind: str) -> None:
    name = "x.npz" if key == "seeds" else "x.tflite"
    if kind == "pipe":
        os.mkfifo(f"pair/{name}")
    else:
        Path(f"pair/{name}").symlink_to("/dev/zero")
    say(key, name)
    said = completed("search", "pair", "--first", "1", "--max-queries", "1", "--out", "x", code=2)
    assert name in said.err.splitlines()[-1]


@pytest.mark.usefixtures("crafted")
@pytest.mark.parametrize("name", ["../../x", "/absolute/x", "..", "-rf", "a" * 300])
def test_a_name_is_shown_and_leads_nowhere(name: str, tmp_path: Path) -> None:
    say("name", name)
    before = {path.name for path in tmp_path.iterdir()}
    said = completed("search", "pair", "--first", "1", "--max-queries", "1", "--fail-on", "none")
    (run,) = Path("runs").iterdir()
    assert run.name[0] not in ".-"
    assert document_of(run)["pair"]["name"] == name
    assert name in said.out.replace("\n", "")
    assert {path.name for path in tmp_path.iterdir()} == before
    assert {path.name for path in Path.cwd().iterdir()} == {"pair", "runs"}


@pytest.mark.usefixtures("crafted")
def test_a_name_sends_no_control_characters_to_the_terminal() -> None:
    say("name", "\x1b]0;title\x07\x1b[2Jpair\u202e")
    said = completed(*DRY_RUN)
    assert r"\x1b]0;title\x07\x1b[2Jpair\u202e" in said.out.replace("\n", "")
    assert "\x1b" not in said.out + said.err
    say("\x1b[2J", "x")
    assert "\x1b" not in completed(*DRY_RUN, code=2).err


@pytest.mark.parametrize("changed", ["pair.toml", "net.py"])
def test_trust_in_a_pair_is_kept_until_a_file_changes(crafted: Canary, changed: str) -> None:
    put_code(crafted, "pair/net.py")
    say("original", "net.py:predict")
    completed(*DRY_RUN, "--trust")
    completed(*DRY_RUN)
    assert Path("~/.config/edgeflare/trusted.json").expanduser().stat().st_mode & 0o777 == 0o600
    with (Path("pair") / changed).open("a") as file:
        file.write("# more\n")
    (crafted.folder / "executed").unlink()
    assert "pair/net.py:predict, which needs your trust" in refused(*DRY_RUN)
    assert crafted.harm() == []


def test_what_is_executed_is_the_source_that_was_trusted(crafted: Canary) -> None:
    put_code(crafted, "pair/net.py")
    say("original", "net.py:predict")
    source = Path("pair/net.py")
    cached = Path(importlib.util.cache_from_source(str(source)))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), str(cached), invalidation_mode=unchecked)
    source.write_text("import numpy as np\ndef predict(x):\n    return np.ones((1, 10), 'f')\n")
    completed(*DRY_RUN, "--trust")
    assert crafted.harm() == []


def test_a_function_that_the_command_names_is_trusted(crafted: Canary) -> None:
    put_code(crafted, "pair/net.py")
    completed(*DRY_RUN, "--original", "pair/net.py:predict")
    assert crafted.harm() == ["executed"]


EMULATED = 'transport = "emulated"\nkernels = "builtin"\npython = "{python}"'
ADDRESS = 'transport = "address"\naddress = "127.0.0.1:{port}"'

PROFILES: dict[str, dict[str, str]] = {
    # Profiles of the working directory, of which the first one is asked for.
    "in a shipped one's place": {"emulated-builtin": EMULATED},
    "likewise, without a key of note": {
        "emulated-xnnpack": 'transport = "emulated"\nkernels = "reference"'
    },
    "with a python": {"mine": EMULATED},
    "with a python of another": {"other": 'extends = "mine"\nthreads = 2', "mine": EMULATED},
    "of what takes a shipped one's place": {
        "other": 'extends = "emulated-builtin"',
        "emulated-builtin": EMULATED,
    },
    "with a delegate": {"mine": 'extends = "emulated-reference"\ndelegate = "{python}"'},
    "with an address": {"mine": ADDRESS},
    "with files for another's address": {
        "other": 'extends = "mine"\ntoken_file = "{secret}"\ntls_ca = "{secret}"',
        "mine": ADDRESS,
    },
    "with a token file of another": {
        "mine": 'extends = "board"\nthreads = 2',
        "board": ADDRESS + '\ntoken_file = "{secret}"',
    },
    "with a host": {"mine": 'extends = "linux-aarch64-ssh"\nhost = "stranger.example"'},
}


def put_profiles(
    bait: Canary, profiles: Mapping[str, str], folder: Path = Path("device_profiles")
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    places = {"port": bait.port, "secret": bait.secret}
    python = bait.program(bait.folder / "python")
    for name, text in profiles.items():
        written = text.format(python=python, **places)
        (folder / f"{name}.toml").write_text(f"{written}\n")


def put_users_profiles(bait: Canary, profiles: Mapping[str, str]) -> None:
    put_profiles(bait, profiles, Path("~/.config/edgeflare/devices").expanduser())


@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_of_the_working_directory_does_nothing_before_it_is_trusted(
    case: str, bait: Canary
) -> None:
    put_profiles(bait, PROFILES[case])
    name = next(iter(PROFILES[case]))
    for listing in (("devices",), ("devices", "list")):
        said = completed(*listing)
        (row,) = [line for line in said.out.splitlines() if line.split()[:1] == [name]]
        assert "not trusted: the profile device_profiles/" in row
    for command in (
        ("devices", "show", name),
        ("devices", "check", name),
        ("agent", "install", "--device", name),
        ("search", EXAMPLE, "--device", name, "--out", "run"),
        ("bench", EXAMPLE, "--device", name, "--out", "out", "--dry-run"),
    ):
        assert "--trust" in refused(*command)
    assert bait.harm() == []


def test_the_doctor_starts_the_shipped_device(bait: Canary, tmp_path: Path) -> None:
    for program in (tmp_path / "bin").iterdir():
        program.unlink()  # the doctor asks what is on PATH for its version, which is the user's
    put_profiles(bait, {"emulated-builtin": EMULATED})
    said = completed("doctor")
    assert bait.harm() == []
    (row,) = [line for line in said.out.splitlines() if "agent, emulated" in line]
    assert row.split()[0] == "ok"
    (row,) = [line for line in said.out.splitlines() if "profiles" in line]
    assert "not trusted: emulated-builtin" in row


def test_neither_a_shipped_nor_a_users_profile_extends_one_of_the_working_directory(
    bait: Canary,
) -> None:
    put_profiles(bait, {"emulated-builtin": EMULATED})
    put_users_profiles(bait, {"mine": 'extends = "emulated-builtin"'})
    for name in ("mine", "emulated-builtin-slow"):
        assert find_profile(name).python is None


def test_profiles_of_the_user_and_copies_of_shipped_ones_are_trusted(bait: Canary) -> None:
    shipped = find_profile("emulated-reference")
    assert shipped.source is not None
    put_profiles(bait, {shipped.source.stem: shipped.source.read_text().rstrip()})
    assert find_profile("emulated-reference") == shipped
    put_users_profiles(bait, {"mine": 'transport = "emulated"\npython = "python3"'})
    assert find_profile("mine").python == "python3"


def test_a_token_file_is_for_the_address_of_its_own_profile(bait: Canary, refusal: Refusal) -> None:
    board = 'transport = "address"\naddress = "10.0.0.7:50051"\ntoken_file = "token"'
    put_users_profiles(bait, {"board": board, "same": 'extends = "board"\nthreads = 2'})
    assert find_profile("same").token_file is not None
    stranger = 'extends = "board"\naddress = "127.0.0.1:{port}"'
    put_profiles(bait, {"mine": stranger})
    assert "token_file is for 10.0.0.7:50051" in refusal(find_profile, "mine", granted(True))
    put_profiles(bait, {"mine": f'{stranger}\ntoken_file = "mine"'})
    assert find_profile("mine", granted(True)).token_file == Path("device_profiles/mine").absolute()


def test_trust_in_a_profile_is_kept_until_its_files_or_what_they_name_are_others(
    bait: Canary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal
) -> None:
    """A relative path means another program where the same profile lies in another folder."""
    relative = 'transport = "emulated"\npython = "./python"'
    for name in ("second", "first"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        put_profiles(bait, {"mine": relative})
        bait.program(Path.cwd() / "device_profiles" / "python")
    completed("devices", "check", "mine", "--trust", code=3)  # it is no Python
    assert bait.harm() == ["executed"]
    assert find_profile("mine").name == "mine"
    put_profiles(bait, {"mine": f"{relative}\nthreads = 2"})
    assert "sets python, which needs your trust" in refusal(find_profile, "mine")
    monkeypatch.chdir(tmp_path / "second")
    assert "sets python, which needs your trust" in refusal(find_profile, "mine")
