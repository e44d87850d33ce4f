"""Profiles in a stranger's folder: nothing of them is started, read or contacted untrusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from canary import Canary, canary
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError
from edgeflare.trust.trust import granted

Call = Callable[..., Any]


@dataclass(frozen=True)
class Crafted:
    """A working directory with profiles of its own."""

    bait: Canary

    @property
    def python(self) -> Path:
        return self.bait.program(self.bait.folder / "python")

    def here(self, name: str, text: str) -> None:
        Path("device_profiles").mkdir(exist_ok=True)
        (Path("device_profiles") / f"{name}.toml").write_text(text)

    def of_the_user(self, name: str, text: str) -> None:
        folder = Path("~/.config/edgeflare/devices").expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text)


@pytest.fixture
def crafted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crafted]:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EDGEFLARE_TOKEN", "the-users-token")
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    with canary(tmp_path / "bait") as bait:
        for name in ("ssh", "scp", "adb"):
            bait.program(tmp_path / "bin" / name)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
        yield Crafted(bait)


def in_a_shipped_ones_place(crafted: Crafted) -> str:
    text = f'transport = "emulated"\nkernels = "builtin"\npython = "{crafted.python}"\n'
    crafted.here("emulated-builtin", text)
    return "emulated-builtin"


def in_a_shipped_ones_place_without_a_key_of_note(crafted: Crafted) -> str:
    crafted.here("emulated-xnnpack", 'transport = "emulated"\nkernels = "reference"\n')
    return "emulated-xnnpack"


def with_a_python(crafted: Crafted) -> str:
    crafted.here("mine", f'transport = "emulated"\npython = "{crafted.python}"\n')
    return "mine"


def with_a_python_through_another(crafted: Crafted) -> str:
    with_a_python(crafted)
    crafted.here("other", 'extends = "mine"\nthreads = 2\n')
    return "other"


def that_extends_what_takes_a_shipped_ones_place(crafted: Crafted) -> str:
    in_a_shipped_ones_place(crafted)
    crafted.here("other", 'extends = "emulated-builtin"\n')
    return "other"


def with_a_delegate(crafted: Crafted) -> str:
    library = crafted.python
    crafted.here("mine", f'extends = "emulated-reference"\ndelegate = "{library}"\n')
    return "mine"


def with_an_address(crafted: Crafted) -> str:
    address = f"127.0.0.1:{crafted.bait.port}"
    crafted.here("mine", f'transport = "address"\naddress = "{address}"\n')
    return "mine"


def with_a_token_file(crafted: Crafted) -> str:
    with_an_address(crafted)
    secret = crafted.bait.secret
    crafted.here("other", f'extends = "mine"\ntoken_file = "{secret}"\ntls_ca = "{secret}"\n')
    return "other"


def with_a_host(crafted: Crafted) -> str:
    crafted.here("mine", 'extends = "linux-aarch64-ssh"\nhost = "stranger.example"\n')
    return "mine"


def that_extends_one_of_the_users(crafted: Crafted) -> str:
    crafted.of_the_user(
        "board",
        f'transport = "address"\naddress = "127.0.0.1:{crafted.bait.port}"\n'
        f'token_file = "{crafted.bait.secret}"\n',
    )
    crafted.here("mine", 'extends = "board"\nthreads = 2\n')
    # The user's own profile is trusted, but this test wants nobody to be connected to.
    Path("~/.config/edgeflare/devices/board.toml").expanduser().rename("board.toml")
    crafted.here("board", Path("board.toml").read_text())
    return "mine"


PROFILES = (
    in_a_shipped_ones_place,
    in_a_shipped_ones_place_without_a_key_of_note,
    with_a_python,
    with_a_python_through_another,
    that_extends_what_takes_a_shipped_ones_place,
    with_a_delegate,
    with_an_address,
    with_a_token_file,
    with_a_host,
    that_extends_one_of_the_users,
)


@pytest.mark.parametrize("craft", PROFILES)
def test_a_profile_of_the_working_directory_does_nothing_before_it_is_trusted(
    craft: Callable[[Crafted], str], crafted: Crafted, call: Call, example: Path
) -> None:
    name = craft(crafted)
    for listing in (("devices",), ("devices", "list")):
        said = call(*listing)
        assert said.code == 0, said.err
        (row,) = [line for line in said.out.splitlines() if line.split()[:1] == [name]]
        assert "not trusted: the profile device_profiles/" in row
    for command in (
        ("devices", "show", name),
        ("devices", "check", name),
        ("agent", "install", "--device", name),
        ("search", example, "--device", name, "--out", "run"),
        ("bench", example, "--device", name, "--out", "out", "--dry-run"),
    ):
        said = call(*command)
        assert said.code == 2, said.err
        assert "--trust" in said.complaint()
    assert crafted.bait.harm() == []


def test_the_doctor_starts_the_shipped_device(crafted: Crafted, call: Call, tmp_path: Path) -> None:
    for program in (tmp_path / "bin").iterdir():
        program.unlink()  # the doctor asks what is on PATH for its version, which is the user's
    in_a_shipped_ones_place(crafted)
    said = call("doctor")
    assert said.code == 0
    assert crafted.bait.harm() == []
    (row,) = [line for line in said.out.splitlines() if "agent, emulated" in line]
    assert row.split()[0] == "ok"
    (row,) = [line for line in said.out.splitlines() if "profiles" in line]
    assert "not trusted: emulated-builtin" in row


def test_neither_a_shipped_nor_a_users_profile_extends_one_of_the_working_directory(
    crafted: Crafted,
) -> None:
    in_a_shipped_ones_place(crafted)
    crafted.of_the_user("mine", 'extends = "emulated-builtin"\n')
    for name in ("mine", "emulated-builtin-slow"):
        assert find_profile(name).python is None


def test_a_copy_of_a_shipped_profile_is_that_one(crafted: Crafted) -> None:
    shipped = find_profile("emulated-reference")
    assert shipped.source is not None
    crafted.here("emulated-reference", shipped.source.read_text())
    assert find_profile("emulated-reference") == shipped


def test_the_profiles_of_the_users_configuration_are_trusted(crafted: Crafted) -> None:
    crafted.of_the_user("mine", 'transport = "emulated"\npython = "python3"\n')
    assert find_profile("mine").python == "python3"


def test_a_token_file_is_for_the_address_of_its_own_profile(crafted: Crafted) -> None:
    crafted.of_the_user(
        "board", 'transport = "address"\naddress = "10.0.0.7:50051"\ntoken_file = "token"\n'
    )
    crafted.of_the_user("same", 'extends = "board"\nthreads = 2\n')
    assert find_profile("same").token_file is not None
    stranger = f'extends = "board"\naddress = "127.0.0.1:{crafted.bait.port}"\n'
    crafted.here("mine", stranger)
    with pytest.raises(UserError, match=r"token_file is for 10\.0\.0\.7:50051"):
        find_profile("mine", granted(True))
    crafted.here("mine", f'{stranger}token_file = "mine"\n')
    assert find_profile("mine", granted(True)).token_file == Path("device_profiles/mine").absolute()


def test_trust_is_kept_until_the_files_or_what_they_name_are_others(
    crafted: Crafted, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path means another program where the same profile lies in another folder."""
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
        monkeypatch.chdir(folder)
        crafted.here("mine", 'transport = "emulated"\npython = "./python"\n')
        crafted.bait.program(folder / "device_profiles" / "python")
    monkeypatch.chdir(folders[0])
    assert call("devices", "check", "mine", "--trust").code == 3  # it is no Python
    assert crafted.bait.harm() == ["executed"]
    assert find_profile("mine").name == "mine"
    text = 'transport = "emulated"\npython = "./python"\nthreads = 2\n'
    crafted.here("mine", text)
    with pytest.raises(UserError, match="sets python, which needs your trust"):
        find_profile("mine")
    monkeypatch.chdir(folders[1])
    with pytest.raises(UserError, match="sets python, which needs your trust"):
        find_profile("mine")
