"""A command on each kernel set of a device, some of which refuse the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from edgeflare.campaign.pair_panel import RefusedByDevice
from edgeflare.devices.profile import Profile
from edgeflare.matrix import kernel_set_runs
from edgeflare.matrix.kernel_set_runs import KernelSetRunner
from edgeflare.trust import KEPT_ONLY

SETS = ("builtin", "xnnpack", "reference")


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelSetRunner:
    profiles = [SimpleNamespace(name=f"board/{kernels}", kernels=kernels) for kernels in SETS]
    monkeypatch.setattr(kernel_set_runs, "kernel_set_devices", lambda _name, _trust: profiles)
    return KernelSetRunner("board/all", KEPT_ONLY, tmp_path / "matrix", lambda _line: None)


def test_a_kernel_set_that_refuses_the_model_stands_in_its_place(
    runner: KernelSetRunner, refusal: Callable[..., str]
) -> None:
    def refusing(*sets: str) -> Callable[[Profile, Path], None]:
        def look(profile: Profile, _: Path) -> None:
            if profile.kernels in sets:
                raise RefusedByDevice(f"{profile.kernels} takes no int16")

        return look

    found = runner.look(refusing("xnnpack"))
    assert [(run.profile.kernels, run.refused) for run in found] == [
        ("builtin", ""),
        ("xnnpack", "xnnpack takes no int16"),
        ("reference", ""),
    ]
    said = refusal(runner.look, refusing(*SETS))
    assert said == "no kernel set takes the model; the first of them: builtin takes no int16"
