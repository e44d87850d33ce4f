"""What an inference costs on a device."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from called_commands import EXAMPLES
from checked_figures import figures, file_figures
from edgeflare.campaign.pair_panel import open_pair
from edgeflare.core.goal import Find, Goal
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.models.pair import load_pair
from edgeflare.release import cost as cost_module
from edgeflare.release.cost import cost_figures
from edgeflare.release.figures.check_figures import CheckFigures, CostFigures, InferenceTime
from edgeflare.release.gates import judged_gates, read_limits
from edgeflare.release.sections import CheckSection, sections_of
from edgeflare.run.plan import Plan

EXAMPLE = EXAMPLES / "fashion_lenet4"


def measured(pair: Path, find: Find = Find.ANY) -> CostFigures:
    plan = Plan("boundary", Goal(find), ("emulated-xnnpack",), limit=8, ensemble=("xnnpack",))
    with ExitStack() as stack:
        opened = open_pair(load_pair(pair), plan, find_profiles(["emulated-xnnpack"]), stack)
        return cost_figures(opened, lambda: False)


def cost_of(known: CheckFigures) -> CheckSection:
    sections = sections_of(known, judged_gates(known, read_limits([])), None, str)
    return next(one for one in sections if one.name == "cost")


@pytest.mark.slow
def test_both_models_are_timed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(EXAMPLE)
    assert found.compressed is not None
    assert found.original is not None
    assert found.compressed.inferences == found.original.inferences >= 11
    assert 0 < found.compressed.median_seconds <= found.compressed.high_seconds
    assert found.ratio is not None
    assert found.ratio_low is not None
    assert found.ratio_high is not None
    assert found.ratio_low <= found.ratio <= found.ratio_high
    assert found.worker_bytes
    monkeypatch.setattr(cost_module, "_turns", lambda *_: [(0.001, 0.002)] * 11)
    found = measured(EXAMPLE)
    assert (found.ratio, found.ratio_low, found.ratio_high) == (0.5, 0.5, 0.5)


@pytest.mark.slow
def test_without_an_original_the_compressed_model_is_timed_alone(tmp_path: Path) -> None:
    pair = Path(shutil.copytree(EXAMPLE, tmp_path / "pair"))
    lines = (pair / "pair.toml").read_text().splitlines()
    (pair / "pair.toml").write_text("\n".join(x for x in lines if not x.startswith("original")))
    found = measured(pair, Find.KERNEL)
    assert found.compressed is not None
    assert (found.original, found.ratio) == (None, None)


def cost(ratio: tuple[float, float, float]) -> CostFigures:
    time = InferenceTime(
        inferences=100, first_seconds=0.01, median_seconds=0.002, high_seconds=0.003
    )
    return CostFigures(
        device="phone",
        compressed=time,
        original=time,
        ratio=ratio[0],
        ratio_low=ratio[1],
        ratio_high=ratio[2],
        worker_bytes=None,
        arena_bytes=None,
    )


@pytest.mark.parametrize(
    ("ratio", "state"),
    [((0.5, 0.4, 0.6), "pass"), ((1.0, 0.9, 1.1), "pass"), ((1.2, 1.1, 1.3), "attention")],
)
def test_a_compression_that_gains_no_time_is_said(
    ratio: tuple[float, float, float], state: str
) -> None:
    found = cost_of(figures(costs=(cost(ratio),)))
    assert found.state == state
    assert ("gains no time" in found.sentence) == (state == "attention")
    assert "2 ms instead of 2 ms; 1,000 bytes instead of 4,000" in found.sentence


def test_a_compression_that_gains_no_space_is_said() -> None:
    from msgspec.structs import replace  # noqa: PLC0415

    large = replace(file_figures(), compressed_bytes=4000)
    assert "gains no space" in cost_of(figures(file=large)).sentence
