"""`edgeflare survey` on other tasks than images of one class: each has its own rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from called_commands import call_here, completed, document_of
from edgeflare.replay.past_run import PastRun
from segmentation_pairs import write_segmentation_pair
from small_pairs import write_clip_pair, write_text_pair, write_tokens_pair, write_two_inputs_pair
from state_pairs import REGRESSION, THRESHOLD, write_state_pair

pytestmark = pytest.mark.slow

SHORT = ("--severities", "5", "--device-queries", "80", "--findings", "2")
INPUTS = 40


@dataclass(frozen=True)
class Surveyed:
    """A kind of pair, and what a survey of it is to say.

    Attributes:
        write: writes the pair, with some inputs.
        conditions: how many the set `common` of its domain has.
        distance: what the task calls how far two answers are apart; None where it is no figure.

    """

    write: Callable[[Path], object]
    conditions: int
    distance: str | None


KINDS = {
    "segmentation": Surveyed(
        lambda folder: write_segmentation_pair(folder, 'name = "segmentation"'), 19, "mean IoU"
    ),
    "clip": Surveyed(write_clip_pair, 5, None),
    "text": Surveyed(write_text_pair, 8, "distance"),
    "tokens": Surveyed(write_tokens_pair, 0, None),
    "two inputs": Surveyed(write_two_inputs_pair, 8, None),
    "regression": Surveyed(lambda folder: write_state_pair(folder, REGRESSION, 3), 8, "distance"),
    "threshold": Surveyed(lambda folder: write_state_pair(folder, THRESHOLD, 1), 8, None),
}


def more_inputs(path: Path) -> None:
    """Give a pair more inputs: each lies between two of its own."""
    rng = np.random.default_rng(7)
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "labels"}
    (few,) = {len(values) for values in arrays.values()}
    ends = rng.integers(few, size=(2, INPUTS))
    share = rng.random(INPUTS)
    between: Any = {name: _between(values, ends, share) for name, values in arrays.items()}
    np.savez(path, **between)


def _between(
    values: NDArray[Any], ends: NDArray[np.int64], share: NDArray[np.float64]
) -> NDArray[Any]:
    one, other = values[ends]
    weights = share.reshape(-1, *(1,) * (values.ndim - 1))
    between: NDArray[Any] = one * weights + other * (1.0 - weights)
    return between.astype(values.dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_each_task_is_surveyed(kind: str, tmp_path: Path) -> None:
    expected = KINDS[kind]
    expected.write(tmp_path / "pair")
    more_inputs(tmp_path / "pair" / "seeds.npz")
    completed("survey", tmp_path / "pair", *SHORT, "--out", tmp_path / "run")
    survey = document_of(tmp_path / "run", "survey.json")
    rate = survey["overall"]["deviation"]
    assert 0.0 <= rate["low"] <= rate["value"] <= rate["high"] <= 1.0
    assert rate["high"] > 0.0
    assert survey["overall"]["items"] == INPUTS * max(1, expected.conditions)
    assert len(survey["by_condition"]["slices"]) == expected.conditions
    assert survey["distance"] == expected.distance
    run = document_of(tmp_path / "run")
    found = [*run["deviating_seeds"], *run["findings"]]
    assert len(found) == 2
    assert all(one["verified"] for one in found)


@pytest.mark.parametrize("kind", ["two inputs", "regression"])
def test_rare_events_are_estimated_or_refused_before_anything_runs(
    kind: str, tmp_path: Path
) -> None:
    KINDS[kind].write(tmp_path / "pair")
    more_inputs(tmp_path / "pair" / "seeds.npz")
    rare = ("survey", tmp_path / "pair", *SHORT, "--rare", "--rare-queries", "100")
    run = ("--out", tmp_path / "run")
    planned, said = call_here(*rare, *run, "--dry-run"), call_here(*rare, *run)
    if kind == "two inputs":
        assert (planned.code, said.code) == (0, 0), said.err
        found = document_of(tmp_path / "run", "survey.json")["rare"]
        assert 0.0 <= found["low"] <= found["value"] <= found["high"] <= 1.0
    else:
        assert (planned.code, said.code) == (2, 2)
        assert planned.complaint() == said.complaint()
        assert "leave out --rare" in said.complaint()
        assert not (tmp_path / "run").exists()


def test_a_survey_replayed_against_itself_shows_nothing_new(tmp_path: Path) -> None:
    """Of an input that deviates unchanged and under conditions, a survey stores one."""
    write_two_inputs_pair(tmp_path / "pair")
    more_inputs(tmp_path / "pair" / "seeds.npz")
    run, replay, again = (tmp_path / name for name in ("run", "replay", "again"))
    all_items = ("--severities", "5", "--device-queries", "400")
    completed("survey", tmp_path / "pair", *all_items, "--out", run)
    said = call_here("replay", run, "--baseline", run, "--out", replay)
    found = document_of(replay)
    assert (said.code, found["replay"]["new"], found["replay"]["deviating_seeds"]) == (0, [], [])
    assert _changed_and_unchanged(replay)
    said = call_here("replay", replay, "--baseline", replay, "--out", again)
    found = document_of(again)
    assert (said.code, found["replay"]["new"], found["replay"]["deviating_seeds"]) == (0, [], [])


def _changed_and_unchanged(run: Path) -> frozenset[int]:
    """Return the inputs that deviate under a condition, of which one is stored, and unchanged."""
    past = PastRun.open(run)
    return past.deviating & {entry.seed_id for entry in past.document.findings}
