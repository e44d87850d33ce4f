"""Devices that are named with a kernel set, or with all that they offer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgeflare.devices.kernel_set_devices import kernel_set_devices
from edgeflare.devices.kernel_set_names import names_all, split_kernels
from edgeflare.devices.profile_lookup import find_profile, find_profiles, find_run_profiles
from edgeflare.errors import UserError
from edgeflare.trust.trust import Trust


@pytest.mark.parametrize(
    ("name", "base", "kernels"),
    [
        ("pixel/gpu", "pixel", "gpu"),
        ("ssh://pi@board:22/reference", "ssh://pi@board:22", "reference"),
        ("pixel", "pixel", None),
        ("pixel/neon", "pixel/neon", None),
        ("adb://gpu", "adb://gpu", None),
        ("/gpu", "/gpu", None),
    ],
)
def test_a_kernel_set_is_split_off(name: str, base: str, kernels: str | None) -> None:
    assert split_kernels(name) == (base, kernels)


def test_a_device_with_another_kernel_set_differs_in_that_alone() -> None:
    slow, other = find_profile("emulated-builtin-slow"), find_profile("emulated-builtin-slow/gpu")
    assert (other.name, other.kernels) == ("emulated-builtin-slow/gpu", "gpu")
    assert other.options == slow.options
    assert (slow.kernels, other.transport) == ("builtin", slow.transport)


def test_a_delegate_stays_with_the_kernel_sets_that_load_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "device_profiles").mkdir()
    profile = tmp_path / "device_profiles" / "mine.toml"
    profile.write_text(
        'transport = "emulated"\ndelegate = "libvendor.so"\ndelegate_options = { cores = "2" }\n'
    )
    monkeypatch.chdir(tmp_path)
    trust = Trust(lambda _request: True)
    for kernels, kept in (("reference", True), ("gpu", False), ("micro", False)):
        other = find_profile(f"mine/{kernels}", trust)
        assert (other.delegate is not None, bool(other.delegate_options)) == (kept, kept)


def test_a_run_finds_it_again_and_twice() -> None:
    twice = find_profiles(["emulated-builtin/gpu", "emulated-builtin/gpu"])
    again = find_run_profiles([profile.name for profile in twice])
    assert [one.name for one in again] == ["emulated-builtin/gpu", "emulated-builtin/gpu#2"]
    assert {one.kernels for one in again} == {"gpu"}


@pytest.mark.parametrize("name", ["ssh://all", "adb://all", "all", "emulated-all/gpu"])
def test_a_device_may_be_called_all(name: str) -> None:
    assert not names_all(name)


@pytest.mark.parametrize("name", ["emulated-all", "pixel/all"])
def test_where_one_device_is_wanted_all_of_them_are_refused(name: str) -> None:
    assert names_all(name)
    with pytest.raises(UserError, match="which search, replay and conform take alone"):
        find_profile(name)


@pytest.mark.slow
def test_emulated_all_is_what_is_installed_here() -> None:
    found = kernel_set_devices("emulated-all")
    assert [one.kernels for one in found][:3] == ["xnnpack", "builtin", "reference"]
    assert [one.name for one in found] == [f"emulated-{one.kernels}" for one in found]
    assert {"compiled-cpu", "gpu"} <= {one.kernels for one in found}


@pytest.mark.slow
def test_all_of_a_device_is_what_its_agent_offers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "device_profiles").mkdir()
    profile = tmp_path / "device_profiles" / "mine.toml"
    profile.write_text(f'transport = "emulated"\npython = "{sys.executable}"\nthreads = 2\n')
    monkeypatch.chdir(tmp_path)
    found = kernel_set_devices("mine/all", Trust(lambda _request: True))
    assert [one.name for one in found][:2] == ["mine/xnnpack", "mine/builtin"]
    assert {one.threads for one in found} == {2}
