from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.devices.profile_lookup import find_shipped_profile
from edgeflare.devices.transports import vulkan_driver
from edgeflare.devices.transports.emulated import PLUGIN
from edgeflare.devices.transports.vulkan_driver import check_driver, driver_variables


@pytest.fixture
def software(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver in software where browsers install it."""
    file = tmp_path / "lib" / "chromium" / "vk_swiftshader_icd.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    monkeypatch.setattr(vulkan_driver, "_SOFTWARE", (str(tmp_path / "lib*" / "chromium*/*.json"),))
    monkeypatch.setattr(vulkan_driver, "_INSTALLED", (str(tmp_path / "icd.d" / "*.json"),))
    for name in vulkan_driver.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return file


def test_the_driver_of_a_browser_is_named_to_old_and_new_loaders(software: Path) -> None:
    expected = {"VK_DRIVER_FILES": str(software), "VK_ICD_FILENAMES": str(software)}
    assert driver_variables({"HOME": "/root"}) == expected


@pytest.mark.parametrize("name", vulkan_driver.VARIABLES)
def test_the_one_that_the_user_names_counts(software: Path, name: str) -> None:
    assert software.exists()
    assert driver_variables({name: "/opt/driver.json"}) == {}


def test_the_loaders_own_are_taken_where_there_is_none(software: Path) -> None:
    software.unlink()
    assert driver_variables({}) == {}


def test_the_check_names_the_driver_or_what_installs_one(
    software: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vulkan_driver, "find_library", lambda name: f"lib{name}.so.1")
    assert check_driver().found == str(software)
    own = software.with_name("driver.json")
    own.write_text("{}")
    monkeypatch.setenv("VK_DRIVER_FILES", str(own))
    assert check_driver().found == str(own)
    monkeypatch.setattr(vulkan_driver, "find_library", lambda _name: None)
    check = check_driver()
    assert not check.found
    assert not check.needed
    assert "apt-get install libvulkan1 chromium" in check.mend
    status = PLUGIN.status
    gpu = find_shipped_profile("emulated-gpu")
    assert status(gpu) == f"no Vulkan driver or loader on this machine: {check.mend}"
    assert status(gpu.with_kernels("builtin")) == "here"


def test_a_driver_that_the_user_names_and_that_is_not_there_is_no_driver(
    software: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", str(software.with_name("gone.json")))
    checked = check_driver()
    assert checked.found == ""
    assert "VK_DRIVER_FILES names" in checked.mend
