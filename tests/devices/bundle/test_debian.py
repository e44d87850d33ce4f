from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.devices.bundle.bundle_target import find_target
from edgeflare.devices.bundle.debian import fetch_python
from edgeflare.errors import InfrastructureError, UserError

AARCH64 = find_target("linux-aarch64")


def programs(folder: Path, **scripts: str) -> str:
    """A PATH with these programs and the shell's own."""
    folder.mkdir()
    for name, script in scripts.items():
        path = folder / name.replace("_", "-")
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


def test_without_apt_the_user_is_told_where_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", programs(tmp_path / "bin"))
    with pytest.raises(UserError, match=r"apt-get is not on this machine.*container of Debian"):
        fetch_python(AARCH64, tmp_path / "apt")


ABSENT = "echo 'E: Unable to locate package python3'; exit 100"


def test_sources_without_that_architecture_are_the_users_to_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'[ "$1" = update ] || {{ {ABSENT}; }}'
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", apt_get=script, dpkg_deb=""))
    with pytest.raises(UserError, match=r"no Python for arm64.*container of Debian"):
        fetch_python(AARCH64, tmp_path / "apt")


def test_sources_that_cannot_be_reached_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"[ \"$1\" != update ] || {{ echo 'W: Could not resolve host'; exit; }}; {ABSENT}"
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", apt_get=script, dpkg_deb=""))
    with pytest.raises(InfrastructureError, match="Could not resolve host"):
        fetch_python(AARCH64, tmp_path / "apt")
