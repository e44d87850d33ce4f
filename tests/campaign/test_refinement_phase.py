"""Findings refined by the real engine, on linear models."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.campaign import refinement_phase
from edgeflare.campaign.refinement_phase import KEPT_STRENGTH
from edgeflare.campaign.search_phase import SearchPhase
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from edgeflare.run.derive_document import derive_document
from edgeflare.run.gate import counting
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json
from edgeflare.run.run_journal import RunJournal
from edgeflare.run.seed_ids import SeedIds
from laboratory import Laboratory, untimed
from wrapped_evaluators import Fragile, Mortal

BOTH: dict[str, Any] = {"strengthen": 40, "shrink": 80}


@pytest.fixture
def laboratory(laboratory: Laboratory) -> Laboratory:
    """A device that rounds as the twin does, and one that differs from it, by turns."""
    laboratory.images = laboratory.images[:6]
    laboratory.more_devices = (laboratory.models[Arm.TWIN],)
    laboratory.plan = replace(laboratory.plan, strategy="boundary", max_queries=400)
    return laboratory


@pytest.mark.parametrize("find", list(Find))
def test_findings_become_stronger_or_nearer_and_stay_findings(
    laboratory: Laboratory, find: Find
) -> None:
    asked: dict[str, Any] = {"goal": Goal(find)}
    if find is Find.KERNEL:
        asked["seed_ids"] = SeedIds.of([4])  # kernels deviate near no other seed
    plain = {one["seed_id"]: one for one in laboratory.run("plain", **asked)["findings"]}
    stronger = laboratory.run("stronger", **asked, strengthen=40)["findings"]
    nearer = laboratory.run("nearer", **asked, shrink=80)["findings"]

    assert {one["seed_id"] for one in stronger} == set(plain)
    assert {one["seed_id"] for one in nearer} == set(plain)
    for one in (*stronger, *nearer):
        before = plain[one["seed_id"]]
        assert one["verified"]
        assert (one["kind"], one["cause"]) == ("deviation", before["cause"])
        assert one["refined"]["strength_before"] == before["strength"]
        assert one["refined"]["distortion_before"] == before["distortion"]
        assert one["queries"] == before["queries"]
    assert all(one["strength"] >= plain[one["seed_id"]]["strength"] for one in stronger)
    assert any(one["strength"] > 1.3 * plain[one["seed_id"]]["strength"] for one in stronger)
    far = {i: one["distortion"]["l2"] for i, one in plain.items()}
    assert all(one["distortion"]["l2"] <= far[one["seed_id"]] for one in nearer)
    assert any(one["distortion"]["l2"] < 0.8 * far[one["seed_id"]] for one in nearer)
    assert {one["refined"] for one in plain.values()} == {None}


def test_shrinking_keeps_most_of_the_strength_that_was_reached(laboratory: Laboratory) -> None:
    stronger = laboratory.run("stronger", strengthen=40)["findings"]
    both = laboratory.run("both", **BOTH)["findings"]
    for one, other in zip(stronger, both, strict=True):
        assert other["strength"] >= other["refined"]["strength_before"] - 1e-9
        assert other["strength"] >= KEPT_STRENGTH * one["strength"] - 1e-9
        assert other["distortion"]["l2"] <= one["distortion"]["l2"]


def test_the_search_does_not_look_at_the_least_strength(laboratory: Laboratory) -> None:
    plain = laboratory.run("plain")
    judged = laboratory.run("judged", strengthen=60, shrink=80, min_strength=0.1)
    assert judged["totals"]["queries"] == plain["totals"]["queries"]
    assert judged["totals"]["success_rate"] == plain["totals"]["success_rate"]
    before = {one["seed_id"]: one["strength"] for one in plain["findings"]}
    reached = [one for one in judged["findings"] if one["strong"]]
    assert any(before[one["seed_id"]] < 0.1 for one in reached)
    for one in judged["findings"]:
        assert one["strong"] == (one["strength"] >= 0.1)


def test_shrinking_does_not_fall_below_the_least_strength(laboratory: Laboratory) -> None:
    asked: dict[str, Any] = {"strengthen": 60, "min_strength": 0.05}
    stronger = laboratory.run("stronger", **asked)["findings"]
    nearer = laboratory.run("nearer", **asked, shrink=80)["findings"]
    assert any(one["strong"] for one in stronger)
    for one, other in zip(stronger, nearer, strict=True):
        assert other["strength"] >= min(one["strength"], 0.05) - 1e-9
        assert other["distortion"]["l2"] <= one["distortion"]["l2"]


def test_strengthening_ends_where_it_is_enough(laboratory: Laboratory) -> None:
    whole = laboratory.run("whole", strengthen=60)["findings"]
    enough = laboratory.run("enough", strengthen=60, min_strength=0.02)["findings"]
    assert sum(one["refined"]["queries"] for one in enough) < sum(
        one["refined"]["queries"] for one in whole
    )


def test_distances_are_judged_after_shrinking_and_all_findings_stay(laboratory: Laboratory) -> None:
    plain = laboratory.run("plain", within_db=20.0)
    shrunk = laboratory.run("shrunk", within_db=20.0, shrink=80)
    assert shrunk["totals"]["success_rate"] == plain["totals"]["success_rate"]
    assert len(counting(from_json(shrunk), "any")) > len(counting(from_json(plain), "any"))
    for one in (*plain["findings"], *shrunk["findings"]):
        assert one["within"] == (one["nearness_db"] >= 20.0)


def test_a_gate_is_decided_alike_by_fewer_queries(laboratory: Laboratory) -> None:
    whole = laboratory.run("whole", within_db=25.0, shrink=80)
    gate = laboratory.run("gate", within_db=25.0, shrink=80, refine="gate")
    assert [one["within"] for one in gate["findings"]] == [
        one["within"] for one in whole["findings"]
    ]
    assert {one["within"] for one in gate["findings"]} == {True, False}
    assert gate["totals"]["refine_queries"] < whole["totals"]["refine_queries"]
    for one, other in zip(gate["findings"], whole["findings"], strict=True):
        assert one["within"] or one["sha256"] == other["sha256"]


def test_only_what_reports_show_first_is_refined_also_where_the_run_goes_on(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refinement_phase, "SHOWN", 3)
    plain = laboratory.run("plain")["findings"]
    shown = laboratory.run("shown", shrink=80, refine="shown")
    refined = [one for one in shown["findings"] if one["refined"]]
    assert len(refined) == 3 < len(plain)
    strongest = sorted(plain, key=lambda one: -one["strength"])[:3]
    assert {one["seed_id"] for one in refined} == {one["seed_id"] for one in strongest}
    monkeypatch.setattr(refinement_phase, "SHOWN", 5)  # what was chosen once stays so
    resumed = laboratory.run("shown", shrink=80, refine="shown", resume=True)
    assert untimed(resumed) == untimed(shown)


def test_progress_is_of_all_findings_whatever_has_ended(laboratory: Laboratory) -> None:
    findings = laboratory.run("run", shrink=20)["findings"]
    told = laboratory.watched.refinements
    assert {one.ended for one in told} >= {0, len(findings)}
    assert {one.findings for one in told} == {len(findings)}


def test_time_that_ends_the_search_cuts_no_refinement(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In place of the clock: the time is up once three chains have ended.
    monkeypatch.setattr(SearchPhase, "stopped", lambda phase: len(phase._ended) >= 3)
    document = laboratory.run("run", time_limit_seconds=1000.0, shrink=80, chains=2)
    assert document["stopped_by"] == "time-limit"
    assert document["findings"]
    assert all(one["refined"]["queries"] > 20 for one in document["findings"])


def test_both_images_are_kept_and_the_distances_are_theirs(laboratory: Laboratory) -> None:
    for one in laboratory.run("run", **BOTH)["findings"]:
        refined = one["refined"]
        seed = pixels(laboratory, one["seed_file"])
        for image, distortion in (
            (one["file"], one["distortion"]),
            (refined["file_before"], refined["distortion_before"]),
        ):
            change = np.abs(pixels(laboratory, image).astype(int) - seed)
            assert distortion["l2"] == pytest.approx(np.sqrt((change**2).sum()))
            assert distortion["linf"] == change.max()
            assert distortion["changed"] == (change > 0).sum()


def pixels(laboratory: Laboratory, name: str) -> NDArray[np.uint8]:
    path: Path = laboratory.folder / "run" / name
    return np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED), np.uint8)


def test_it_is_overhead_and_keeps_its_budget(laboratory: Laboratory) -> None:
    plain = laboratory.run("plain")["totals"]
    document = laboratory.run("run", **BOTH)
    totals, findings = document["totals"], document["findings"]
    assert totals["queries"] == plain["queries"]
    assert totals["mean_device_queries"] == plain["mean_device_queries"]
    assert totals["device_queries"] == plain["device_queries"]
    spent = [one["refined"]["queries"] for one in findings]
    assert all(1 < n <= 1 + 40 + 80 for n in spent)
    assert totals["overhead_queries"] == plain["overhead_queries"] + sum(spent)
    assert totals["overhead_device_queries"] == plain["overhead_device_queries"] + sum(
        one["refined"]["device_queries"] for one in findings
    )
    assert totals["host_evaluations"]["original"] == (
        plain["host_evaluations"]["original"] + sum(spent)
    )


def test_what_it_costs_is_apart_from_the_search_and_by_step(laboratory: Laboratory) -> None:
    """On two devices; a query of each finding shows that it still is one, and is of no step."""
    of_refining = ("refine", "strengthen", "shrink")

    def costs(name: str, **plan: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        totals = laboratory.run(name, **plan)["totals"]
        kept = {
            key: value
            for key, value in totals.items()
            if key == "refined" or key.startswith(of_refining)
        }
        return totals, kept

    assert costs("plain")[1] == {"refine_seconds": 0.0}
    _, stronger = costs("stronger", strengthen=40)
    totals, both = costs("both", **BOTH)
    found = totals["findings"]
    assert both["refined"] == found
    for of in ("queries", "device_queries"):
        refined, strengthened, shrunk = (both[f"{step}_{of}"] for step in of_refining)
        assert refined == found + strengthened + shrunk
        assert stronger[f"strengthen_{of}"] == strengthened  # the same up to where shrinking begins
        assert stronger[f"refine_{of}"] == found + strengthened
    assert 0 < both["strengthen_queries"] <= 40 * found
    assert 0 < both["shrink_queries"] <= 80 * found
    assert both["strengthen_seconds"] + both["shrink_seconds"] == pytest.approx(
        totals["refine_seconds"]
    )
    assert min(both.values()) > 0
    assert not any(key.startswith("shrink") for key in stronger)


def test_the_number_of_chains_changes_nothing(laboratory: Laboratory) -> None:
    runs = [untimed(laboratory.run(f"run-{n}", chains=n, **BOTH)) for n in (1, 256)]
    assert runs[0] == runs[1]


def test_cut_off_and_resumed_is_as_if_never_cut_off(laboratory: Laboratory) -> None:
    devices: list[Mortal] = []

    def mortal(calls: int = 10**6) -> Callable[[Evaluator], Evaluator]:
        def wrap(inner: Evaluator) -> Evaluator:
            devices.append(Mortal(inner, calls))
            return devices[-1]

        return wrap

    searched = laboratory.run("searched", wrap_device=mortal())
    whole = laboratory.run("whole", **BOTH, wrap_device=mortal())
    assert untimed(searched) != untimed(whole)
    used = [device.calls for device in devices]
    search, all_of_it = min(used[:2]), min(used[2:])
    cut_off_while_refining, steps = 0, 0
    for calls in np.linspace(search, all_of_it - 1, 3).astype(int):
        name = f"cut-{calls}"
        with pytest.raises(InfrastructureError, match="burnt down"):
            laboratory.run(name, **BOTH, wrap_device=mortal(int(calls)))
        with closing(RunJournal.open(laboratory.folder / name / "run.db")) as journal:
            spent = [one.queries for one in journal.refinements().values()]
            under_way = sum(map(len, journal.answers("refine").values()))
            totals = derive_document(RunDirectory(laboratory.folder / name), journal).totals
        done, steps = len(spent), steps + under_way
        if totals.refined is not None:  # what has not ended is of no step yet
            assert totals.refined == done
            assert sum(spent) <= (totals.refine_queries or 0) <= sum(spent) + under_way
            split = (totals.strengthen_queries or 0) + (totals.shrink_queries or 0)
            assert split == sum(spent) - done
        cut_off_while_refining += done < len(whole["findings"])
        devices.clear()
        again = laboratory.run(name, resume=True, **BOTH, wrap_device=mortal())
        assert untimed(again) == untimed(whole)
        asked_again = min(device.calls for device in devices)
    assert cut_off_while_refining
    assert steps
    # What was answered before is told again from the journal, and asked of no device.
    assert asked_again < all_of_it - search


def test_what_no_deviation_is_stays_as_it_was(laboratory: Laboratory) -> None:
    def crashes(name: str, **plan: Any) -> list[dict[str, Any]]:
        document = laboratory.run(name, **plan, strategy="random", wrap_device=Fragile)
        return [one for one in untimed(document)["findings"] if one["kind"] == "crash"]

    assert crashes("plain")
    assert crashes("refined", **BOTH) == crashes("plain again")


def test_a_seed_that_deviates_itself_is_not_refined(laboratory: Laboratory) -> None:
    found = laboratory.run("first")["findings"][0]
    laboratory.images[4] = RunDirectory(laboratory.folder / "first").load_input(found["file"])
    laboratory.more_devices = ()
    document = laboratory.run("second", **BOTH)
    (entry,) = (entry for entry in document["deviating_seeds"] if entry["seed_id"] == 4)
    assert entry["refined"] is None
    assert entry["distortion"]["l2"] == 0
    assert all(entry["refined"] for entry in document["findings"])


def test_what_does_not_show_again_has_no_strength_before(laboratory: Laboratory) -> None:
    laboratory.more_devices = ()
    found = laboratory.run("run", **BOTH, stop_after=20, chains=4)["findings"]
    assert found
    laboratory.models[Arm.DEVICE] = laboratory.models[Arm.ORIGINAL]
    document = laboratory.run("run", resume=True, **BOTH)
    lost = {entry["seed_id"]: entry["refined"] for entry in document["flaky"]}
    assert {one["seed_id"] for one in found} <= set(lost)
    assert {refined["strength_before"] for refined in lost.values()} == {None}
    totals = document["totals"]
    assert totals["refine_queries"] == totals["refined"] == len(lost)
    assert not totals.get("shrink_seconds")  # the queries that did not show it are of no step
