"""Conditions of the field: what they cost a compressed model, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from called_commands import EXAMPLES
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.pair_file import Settings
from edgeflare.release import field
from edgeflare.release.answers import places
from edgeflare.release.field import field_figures
from edgeflare.run.plan import Plan

EXAMPLE = EXAMPLES / "fashion_lenet4"
PLAN = Plan("boundary", Goal(), ("emulated-xnnpack",), limit=30, ensemble=("xnnpack",))

pytestmark = pytest.mark.slow


def opened(pair: Pair, stack: ExitStack) -> OpenedPair:
    return open_pair(pair, PLAN, find_profiles(["emulated-xnnpack"]), stack)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as one:
        yield one


def test_each_cell_has_the_same_inputs(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field, "SEVERITIES", (2,))
    pair = opened(load_pair(EXAMPLE), stack)
    found = field_figures(pair, places(pair), lambda: False)
    assert found.inputs == 30
    assert found.cells == 20
    assert 0 < found.working <= found.cells
    assert {one.changes.inputs for one in found.ranked} == {30}
    assert found.unchanged.right == 28
    nets = [one.net for one in found.ranked]
    assert nets == sorted(nets, reverse=True)
    assert all(one.right >= 0.75 * found.unchanged.right for one in found.ranked)
    again = field_figures(pair, places(pair), lambda: False)
    assert again == found


def test_what_is_cut_off_is_as_far_in_all_cells(stack: ExitStack) -> None:
    pair = opened(load_pair(EXAMPLE), stack)
    asked = iter(range(1000))
    found = field_figures(pair, places(pair), lambda: next(asked) >= 10)
    assert (found.inputs, found.cells) == (25, 10)
    with pytest.raises(UserError, match="no time left"):
        field_figures(pair, places(pair), lambda: True)


def test_cells_that_lose_most_are_tried_on_other_inputs(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field, "INPUTS", 10)
    monkeypatch.setattr(field, "_FEWEST_AGAIN", 10)
    pair = opened(load_pair(EXAMPLE), stack)
    found = field_figures(pair, places(pair), lambda: False)
    assert found.further is not None
    named = {(one.condition, one.severity) for one in found.further.ranked}
    assert named == {(one.condition, one.severity) for one in found.ranked[:3]}
    assert (found.inputs, found.further.inputs, found.further.cells) == (10, 10, 3)
    others = field_figures(pair, places(pair)[10:20], lambda: False)
    assert others.unchanged == found.further.unchanged


def test_without_labels_nothing_is_judged(stack: ExitStack, tmp_path: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(tmp_path / "inputs.npz", images=arrays["images"][:30])
    pair = opened(load_pair(EXAMPLE, Settings(seeds=str(tmp_path / "inputs.npz"))), stack)
    with pytest.raises(UserError, match="judged by labels"):
        field_figures(pair, places(pair), lambda: False)
