"""Which transports there are, and what a package must offer to add one."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.devices.profile_lookup import (
    find_profile,
    find_profiles,
    find_run_profiles,
    list_profiles,
)
from edgeflare.devices.transports.transport_registry import transport, transport_names, transports
from edgeflare.errors import UserError
from edgeflare.trust import granted
from transport_packages import NICE, installed

OWN = ("emulated", "qemu", "adb", "ssh", "address")
TRUSTED = granted(True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def write(text: str, name: str = "background") -> None:
    path = Path("device_profiles") / f"{name}.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_a_package_adds_a_transport_after_our_own(tmp_path: Path) -> None:
    assert transport_names() == OWN
    with installed(tmp_path / "site", NICE):
        assert transport_names() == (*OWN, "nice")
        assert [plugin.scheme.name for plugin in transports().values() if plugin.scheme] == [
            *("adb", "ssh", "grpc", "nice")
        ]
    assert transport_names() == OWN


def test_a_key_of_its_own_is_checked_and_kept(tmp_path: Path) -> None:
    write('transport = "nice"\nniceness = 5\n')
    write('extends = "background"\nthreads = 2\n', "extending")
    write('transport = "nice"\nniceness = 20\n', "wrong")
    write('transport = "nice"\n', "lacking")
    write('transport = "emulated"\nniceness = 5\n', "misplaced")
    with installed(tmp_path / "site", NICE):
        assert find_profile("background", TRUSTED).options == {"niceness": 5}
        extending = find_profile("extending", TRUSTED)
        assert (extending.threads, extending.value("niceness")) == (2, 5)
        with pytest.raises(UserError, match=r"niceness = 20: expected a whole number from 0 to 19"):
            find_profile("wrong", TRUSTED)
        with pytest.raises(UserError, match='niceness is missing; expected niceness = "10"'):
            find_profile("lacking", TRUSTED)
        with pytest.raises(UserError, match='niceness: belongs to transport = "nice", but this'):
            find_profile("misplaced", TRUSTED)
    with pytest.raises(UserError, match=r'transport = "nice": expected one of "emulated", "qemu"'):
        find_profile("background", TRUSTED)


def test_an_address_names_a_device(tmp_path: Path) -> None:
    with installed(tmp_path / "site", NICE):
        profile = find_profile("nice://7")
        assert (profile.transport, profile.options) == ("nice", {"niceness": 7})
        with pytest.raises(UserError, match=r'^device "nice://x": expected nice://LEVEL$'):
            find_profile("nice://x")
    with pytest.raises(
        UserError, match=r"unknown scheme .nice://.; expected adb://\[SERIAL\], ssh"
    ):
        find_profile("nice://7")


def test_a_profile_of_the_working_directory_needs_trust(tmp_path: Path) -> None:
    write('transport = "nice"\nniceness = 5\n')
    with installed(tmp_path / "site", NICE):
        with pytest.raises(UserError, match=r'background\.toml uses the transport "nice"'):
            find_profile("background")
        assert "background" not in [one.name for one in list_profiles()[0]]
        kept = tmp_path / "home" / ".config" / "edgeflare" / "devices"
        kept.mkdir(parents=True)
        Path("device_profiles/background.toml").rename(kept / "background.toml")
        assert find_profile("background").transport == "nice"
    harmless = NICE.replace("starts_device=True", "needs_trust=False")
    write('transport = "nice"\nniceness = 5\n', "trusted")
    with installed(tmp_path / "harmless", harmless):
        assert find_profile("trusted").transport == "nice"


def test_a_key_takes_trust_unless_its_plugin_says_otherwise(tmp_path: Path) -> None:
    careless = NICE.replace(", needs_trust=False", "").replace(
        "starts_device", "needs_trust=False, starts_device"
    )
    write('transport = "nice"\nniceness = 5\n')
    with installed(tmp_path / "site", careless), pytest.raises(UserError, match="sets niceness"):
        find_profile("background")


def test_a_run_never_starts_it(tmp_path: Path) -> None:
    kept = tmp_path / "home" / ".config" / "edgeflare" / "devices"
    kept.mkdir(parents=True)
    (kept / "background.toml").write_text('transport = "nice"\nniceness = 5\n')
    with installed(tmp_path / "site", NICE):
        names = [one.name for one in find_profiles(["background", "background"])]
        assert names == ["background", "background#2"]
        for name in ("background", "nice://7"):
            with pytest.raises(UserError, match="only shipped emulated devices are used"):
                find_run_profiles([name])


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (
            "nice = missing:PLUGIN",
            r'transport "nice" of package nice-transport does not load \(Mod',
        ),
        ("nice = nice_transport:NICE", r"does not load \(AttributeError"),
        ("nice = nice_transport:NiceTransport", "NiceTransport is no TransportPlugin; correct or"),
    ],
)
def test_a_broken_package_is_named_and_harms_no_other(
    tmp_path: Path, entry: str, complaint: str
) -> None:
    write('transport = "nice"\n')
    with installed(tmp_path / "site", NICE, entry):
        with pytest.raises(UserError, match=complaint) as refused:
            find_profile("background", TRUSTED)
        assert "\n" not in str(refused.value)
        assert find_profile("emulated-builtin").transport == "emulated"


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    entry = "ssh = nice_transport:PLUGIN"
    with (
        installed(tmp_path / "site", NICE, entry),
        pytest.raises(UserError, match='both offer a transport "ssh": uninstall one'),
    ):
        transport("ssh")
