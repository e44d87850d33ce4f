from __future__ import annotations

import pytest

from edgeflare.devices.bundle.bundle_target import TARGETS, find_target, native_target
from edgeflare.errors import UserError


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_is_found_by_its_name(name: str) -> None:
    assert find_target(name).name == name


def test_an_unknown_target_is_answered_with_those_that_are_known() -> None:
    with pytest.raises(UserError, match=r"linux-arm64.*linux-aarch64, linux-x86_64, android-arm64"):
        find_target("linux-arm64")


@pytest.mark.parametrize(
    ("machine", "target"),
    [("x86_64", "linux-x86_64"), ("aarch64", "linux-aarch64"), ("arm64", "linux-aarch64")],
)
def test_a_machine_runs_the_programs_of_its_own_target(machine: str, target: str) -> None:
    assert native_target(machine).name == target


def test_other_machines_cannot_make_bundles() -> None:
    with pytest.raises(UserError, match="riscv64"):
        native_target("riscv64")
