from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.devices import profile_folders
from edgeflare.devices.profile_folders import (
    ProfileFile,
    ProfileLocation,
    profile_files,
    trust_needed,
)


@pytest.mark.parametrize("layout", ["host", "site-packages"])
@pytest.mark.parametrize("project", [True, False])
def test_only_a_checkout_ships_the_profiles_two_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, project: bool
) -> None:
    code = tmp_path / layout / "edgeflare" / "devices" / "profile_folders.py"
    (tmp_path / "device_profiles").mkdir()
    (tmp_path / "device_profiles" / "planted.toml").touch()
    if project:
        (tmp_path / "pyproject.toml").touch()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(profile_folders, "__file__", str(code))
    assert ("planted" in profile_files()) == (project and layout == "host")


def test_a_cache_folder_on_a_device_takes_trust(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.touch()
    file = ProfileFile(path, ProfileLocation.WORKING_DIRECTORY)
    needed = trust_needed([file], {"transport": "ssh", "cache": "/data"}, {"mine": [file]})
    assert needed is not None
    assert "sets cache" in str(needed)
