"""Neuron coverage in the journal: what is not as it should be is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from edgeflare.run.coverage_figures import ArmCoverage, NeuronCoverage, noted_coverage

FIGURES = NeuronCoverage(
    thresholds=(0.0, 0.5),
    seeds=2,
    findings=2,
    others=0,
    device_queries=4,
    arms=(
        ArmCoverage(
            arm="twin", neurons=4, seeds=(0.5, 0.25), with_findings=(0.75, 0.25), with_others=None
        ),
    ),
    notes=("the pair has 0 other seeds, fewer than the 2 findings",),
)


def test_it_is_read_as_it_was_noted() -> None:
    assert noted_coverage({"coverage": msgspec.to_builtins(FIGURES)}) == FIGURES


@pytest.mark.parametrize("about", [{}, {"coverage": None}])
def test_older_runs_and_those_that_were_stopped_have_none(about: dict[str, Any]) -> None:
    assert noted_coverage(about) is None


@pytest.mark.parametrize("noted", [[], {}, {**msgspec.to_builtins(FIGURES), "arms": 1}])
def test_a_damaged_journal_is_refused(noted: Any, refusal: Callable[..., str]) -> None:
    assert "run.db is damaged" in refusal(noted_coverage, {"coverage": noted})
