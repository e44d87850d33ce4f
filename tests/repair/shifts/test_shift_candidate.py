"""Tests of edgeflare.repair.shifts.shift_candidate: when shifts are a candidate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgeflare.bench.bench_statistics import Estimate
from edgeflare.repair.shifts.cross_validation import JudgedRepairer
from edgeflare.repair.shifts.shift_candidate import why_none
from edgeflare.repair.shifts.shift_fitting import Fitted

SURE = JudgedRepairer(
    repair_count=5.0,
    repair_ratio=0.5,
    inducing_count=0.0,
    inducing_ratio=0.0,
    improvement_count=5.0,
    improvement_ratio=0.5,
    induced_agreeing=0.1,
    sampled_repaired=4.0,
    sampled_induced=3.0,
    sampled_ratio=0.9,
    net=Estimate(0.1, 0.05, 0.15),
)
FITTED = Fitted(np.array([[0.0, 0.125], [-0.125, 0.0]]), 1.0)


def test_a_sure_gain_on_held_out_folds_is_a_candidate() -> None:
    assert why_none(SURE, FITTED) is None


@pytest.mark.parametrize(
    ("mended", "broken", "ratio"), [(0.0, 12.0, None), (0.0, 0.2, None), (4.0, 5.0, 1.1)]
)
def test_none_is_where_more_inputs_as_they_come_begin_to_deviate_than_are_mended(
    mended: float, broken: float, ratio: float | None
) -> None:
    judged = replace(SURE, sampled_repaired=mended, sampled_induced=broken, sampled_ratio=ratio)
    why = why_none(judged, FITTED)
    assert why is not None
    assert f"{broken:.1f} begin to deviate, and {mended:.1f} no longer do" in why


def test_nothing_to_mend_and_nothing_broken_is_no_hindrance() -> None:
    judged = replace(SURE, sampled_repaired=0.0, sampled_induced=0.0, sampled_ratio=None)
    assert why_none(judged, FITTED) is None


def test_none_is_where_the_net_may_be_none() -> None:
    why = why_none(replace(SURE, net=Estimate(0.1, 0.0, 0.2)), FITTED)
    assert why == (
        "the net on held-out folds is not surely above zero (+10.0 points, 95 % interval +0.0 to"
        " +20.0 points)"
    )


def test_none_is_where_no_boundary_is_shifted() -> None:
    why = why_none(SURE, Fitted(np.zeros((2, 2)), None))
    assert why is not None
    assert "no shift of a boundary gains anything" in why
