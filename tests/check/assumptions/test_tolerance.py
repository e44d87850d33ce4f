"""How far values may be apart where nobody says it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.check.assumptions.tolerance import measured_tolerance
from edgeflare.models.pair import Pair, load_pair
from small_pairs import write_score_pair


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    task = '[task]\nname = "regression"\ntolerance = 1.0\ndistance = "l2"\n'
    described = f'[inputs.inputs]\ndomain = "array"\n{task}'
    return load_pair(write_score_pair(tmp_path, described))


def test_values_may_be_a_tenth_of_their_spread_apart(pair: Pair) -> None:
    found = measured_tolerance(pair)
    assert found is not None
    assert found[1] == 8
    alone = measured_tolerance(replace(pair, original=None))
    assert alone is not None
    assert alone[0] == pytest.approx(found[0], rel=0.05)


def test_values_that_do_not_vary_have_none(pair: Pair, tmp_path: Path) -> None:
    np.savez(tmp_path / "same.npz", inputs=np.ones((5, 6), np.float32))
    assert measured_tolerance(replace(pair, seeds=tmp_path / "same.npz")) is None
    assert measured_tolerance(replace(pair, seeds=tmp_path / "absent.npz")) is None
