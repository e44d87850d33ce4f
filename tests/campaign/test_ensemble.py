"""Campaigns in which the host answers first and the device is asked again where it is in doubt."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from documents import as_json
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from laboratory import CLASSES, SIDE, Laboratory, linear, untimed

KERNEL = Goal(Find.KERNEL)


@pytest.fixture
def ensemble(laboratory: Laboratory) -> Laboratory:
    """A device that rounds other weights than the twin, a member like it, and one unlike it."""
    rng = np.random.default_rng(9)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)

    def off(rng_seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        noise = np.random.default_rng(rng_seed).normal(scale=0.02, size=weights.shape)
        return weights + noise.astype(np.float32)

    laboratory.models = {
        Arm.ORIGINAL: linear(weights),
        Arm.TWIN: linear(off(1), 0.005),
        Arm.DEVICE: linear(off(2), 0.005),
    }
    laboratory.members = {"builtin": linear(off(2), 0.01), "reference": linear(off(3), 0.005)}
    laboratory.plan = replace(laboratory.plan, strategy="boundary", goal=KERNEL, max_queries=400)
    return laboratory


def test_the_device_confirms_what_members_foretell_which_is_no_query_but_a_device_query(
    ensemble: Laboratory,
) -> None:
    document = ensemble.run("run")
    totals = document["totals"]
    assert totals["success_rate"] > 0.9
    assert totals["device_queries"] < totals["queries"] / 3
    stored = len(document["findings"]) + len(document["deviating_seeds"])
    assert totals["overhead_queries"] == totals["seeds"] + 3 * stored
    searched = {entry["seed_id"]: entry for entry in document["findings"]}
    for entry in searched.values():
        assert 1 <= entry["device_queries"] < entry["queries"]
    journal = RunJournal.open(ensemble.folder / "run" / "run.db")
    chains = journal.chains().values()
    journal.close()
    assert totals["queries"] == sum(row.queries for row in chains)
    assert totals["device_queries"] == sum(row.device_queries for row in chains)
    # Each query asks every host's model once, whether the device is asked too or not.
    evaluations = totals["host_evaluations"]
    assert evaluations == {
        "original": totals["queries"] + totals["overhead_queries"],
        "twin-xnnpack": totals["queries"] + totals["overhead_queries"],
        "twin-builtin": totals["queries"] + totals["seeds"],
        "twin-reference": totals["queries"] + totals["seeds"],
    }


def test_the_budget_counts_queries_and_not_what_is_asked_again(ensemble: Laboratory) -> None:
    ensemble.members = {}
    document = ensemble.run("run", max_queries=60, goal=Goal(Find.KERNEL, min_strength=0.9))
    totals = document["totals"]
    assert totals["findings"] == 0
    assert totals["queries"] == 60 * totals["searched"]
    assert totals["device_queries"] > 0


def test_members_that_are_not_asked_cost_nothing_in_the_search(ensemble: Laboratory) -> None:
    totals = ensemble.run("run", strategy="random", goal=Goal(), max_queries=40)["totals"]
    assert totals["host_evaluations"]["twin-builtin"] == totals["seeds"]
    assert totals["device_queries"] == totals["queries"]


@pytest.mark.slow
@pytest.mark.parametrize("goal", [KERNEL, Goal()], ids=lambda goal: goal.find)
def test_the_number_of_chains_changes_nothing(ensemble: Laboratory, goal: Goal) -> None:
    ensemble.images = ensemble.images[:12]
    one, other = (
        untimed(ensemble.run(f"run-{n}", chains=n, goal=goal, max_queries=60)) for n in (7, 256)
    )
    assert one == other


@pytest.mark.slow
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(stop_after=st.integers(1, 450), total=st.none() | st.integers(10, 750))
def test_stopped_and_resumed_is_as_if_never_stopped(
    ensemble: Laboratory,
    tmp_path_factory: pytest.TempPathFactory,
    stop_after: int,
    total: int | None,
) -> None:
    ensemble.folder, ensemble.images = tmp_path_factory.mktemp("runs"), ensemble.images[:12]
    whole = ensemble.run("whole", total_queries=total)
    parts = ensemble.run("parts", total_queries=total, stop_after=stop_after)
    while ensemble.stopped is not None:
        stop_after += 450
        parts = ensemble.run("parts", total_queries=total, resume=True, stop_after=stop_after)
    assert untimed(parts) == untimed(whole)


def test_a_run_that_was_stopped_counts_what_its_open_chains_have_asked(
    ensemble: Laboratory,
) -> None:
    document = ensemble.run("run", stop_after=200, chains=8)
    assert document["stopped_by"] == "interrupt"
    totals = document["totals"]
    evaluations = totals["host_evaluations"]
    assert totals["queries"] >= 200
    assert evaluations["twin-builtin"] == totals["queries"] + totals["seeds"]
    assert 0 < totals["device_queries"] < totals["queries"]
    (ensemble.folder / "run" / "run.json").unlink()
    assert as_json(load_document(RunDirectory(ensemble.folder / "run")))["totals"] == totals
