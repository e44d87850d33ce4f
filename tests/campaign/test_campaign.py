"""The engine's laws, on linear models that answer in microseconds."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from documents import Document
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm
from edgeflare.core.tensor import RawBatch
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Evaluator
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_journal import RunJournal
from edgeflare_operators import MutationOperator
from laboratory import Laboratory, untimed
from linear_laboratory import linear_laboratory
from wrapped_evaluators import Fragile, Mortal, WrappedEvaluator, with_outputs

FEW = settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Document]:
    """A run of the laboratory to its end: its folder and its document."""
    laboratory = linear_laboratory(tmp_path_factory.mktemp("whole"))
    document = laboratory.run("run")
    assert laboratory.stopped is None
    return laboratory.folder / "run", document


def test_it_finds_what_deviates_and_says_how(whole: tuple[Path, Document]) -> None:
    folder, document = whole
    totals = document["totals"]
    assert totals["findings"] == len(document["findings"]) > 3
    assert totals["seeds"] == 24
    for finding in document["findings"]:
        assert finding["verified"]
        assert finding["labels"]["original"] != finding["labels"]["device"]
        assert (folder / finding["file"]).is_file()
        assert finding["queries"] <= 150
    # --find any asks original and device; the twin answers about seeds and findings only.
    assert totals["host_evaluations"] == {
        "original": totals["queries"] + totals["overhead_queries"],
        "twin-xnnpack": totals["overhead_queries"],
    }


def test_operators_are_used_as_the_domain_of_the_pair_binds_them(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rolling(_domain: ImageDomain, operator: MutationOperator) -> MutationOperator:
        return replace(operator, apply=lambda image, _rng: np.roll(image, 1))

    monkeypatch.setattr(ImageDomain, "bound", rolling)
    document = laboratory.run("run")
    run = RunDirectory(laboratory.folder / "run")
    assert document["findings"]
    for finding in document["findings"]:
        mutant, seed = (run.load_input(finding[key]) for key in ("file", "seed_file"))
        assert any(np.array_equal(mutant, np.roll(seed, by)) for by in range(1, seed.size))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["random", "dflare"])
def test_the_number_of_chains_changes_nothing(laboratory: Laboratory, strategy: str) -> None:
    runs = [
        untimed(laboratory.run(f"run-{chains}", chains=chains, strategy=strategy))
        for chains in (1, 256)
    ]
    assert runs[0] == runs[1]


def test_without_seeds_nothing_is_found_and_nothing_fails(laboratory: Laboratory) -> None:
    laboratory.images = laboratory.images[:0]
    document = laboratory.run("run")
    assert document["totals"]["seeds"] == 0
    assert document["warnings"] == document["findings"] == []


def test_another_run_seed_finds_other_inputs(
    laboratory: Laboratory, whole: tuple[Path, Document]
) -> None:
    other = laboratory.run("run", rng_seed=1)
    shas = ({one["sha256"] for one in document["findings"]} for document in (whole[1], other))
    assert not set.intersection(*shas)


@pytest.mark.parametrize("find", list(Find))
def test_what_is_found_is_what_was_looked_for(laboratory: Laboratory, find: Find) -> None:
    document = laboratory.run("run", goal=Goal(find))
    assert document["findings"]
    for finding in document["findings"]:
        f, h, g = (finding["labels"][arm] for arm in ("original", "twin", "device"))
        if find is Find.KERNEL:
            assert h != g
        else:
            assert f != g
        if find is Find.COMPRESSION:
            assert h == g
            assert finding["cause"] == "compression"
        assert not any(
            finding["tied"][arm]
            for arm in (("twin", "device") if find is Find.KERNEL else ("original", "device"))
        )


def test_kernels_can_be_compared_without_an_original(laboratory: Laboratory) -> None:
    del laboratory.models[Arm.ORIGINAL]
    document = laboratory.run("run", goal=Goal(Find.KERNEL))
    assert document["findings"]
    assert {finding["cause"] for finding in document["findings"]} == {"kernel"}
    assert document["totals"]["host_evaluations"]["original"] == 0


@pytest.mark.slow
@FEW
@given(stop_after=st.integers(1, 450), total=st.none() | st.integers(10, 750))
def test_stopped_and_resumed_is_as_if_never_stopped(
    laboratory: Laboratory,
    tmp_path_factory: pytest.TempPathFactory,
    stop_after: int,
    total: int | None,
) -> None:
    laboratory.folder, laboratory.images = tmp_path_factory.mktemp("runs"), laboratory.images[:12]
    whole = laboratory.run("whole", total_queries=total)
    parts = laboratory.run("parts", total_queries=total, stop_after=stop_after)
    while laboratory.stopped is not None:
        parts = laboratory.run("parts", total_queries=total, resume=True, stop_after=stop_after)
        stop_after += 450
    assert untimed(parts) == untimed(whole)


def test_an_interrupted_run_is_valid_and_goes_on_by_the_command_that_began_it(
    laboratory: Laboratory,
) -> None:
    document = laboratory.run("run", stop_after=300, chains=8)
    assert laboratory.stopped == document["stopped_by"] == "interrupt"
    assert document["unverified"] == []
    assert all(finding["verified"] for finding in document["findings"])
    with pytest.raises(UserError, match=r"--operators average-blur,.*, not pixel-change: repeat"):
        laboratory.run("run", resume=True, operators=("pixel-change",))


@FEW
@given(total=st.integers(1, 1000), chains=st.sampled_from([1, 3, 64]))
def test_the_bound_on_all_queries_holds_whatever_the_chains(
    laboratory: Laboratory, tmp_path_factory: pytest.TempPathFactory, total: int, chains: int
) -> None:
    laboratory.folder, laboratory.images = tmp_path_factory.mktemp("runs"), laboratory.images[:12]
    document = laboratory.run("run", total_queries=total, chains=chains)
    assert document["totals"]["queries"] <= total
    again = laboratory.run("again", total_queries=total, chains=9)
    assert untimed(again) == untimed(document)


def test_a_seed_that_deviates_itself_is_reported_and_not_searched(
    laboratory: Laboratory, whole: tuple[Path, Document]
) -> None:
    folder, first = whole
    found = first["findings"][0]
    laboratory.images[4] = RunDirectory(folder).load_input(found["file"])
    document = laboratory.run("second")
    (entry,) = (entry for entry in document["deviating_seeds"] if entry["seed_id"] == 4)
    assert entry["labels"] == found["labels"]
    assert entry["queries"] == 0
    assert entry["verified"]
    assert 4 not in {finding["seed_id"] for finding in document["findings"]}
    totals = document["totals"]
    searched = totals["seeds"] - totals["deviating_seeds"]
    assert totals["success_rate"] == totals["findings"] / searched
    said = laboratory.watched.progress[-1]
    assert (said.seeds, said.deviating_seeds) == (totals["seeds"], totals["deviating_seeds"])


def test_a_device_that_comes_back_costs_nothing(
    laboratory: Laboratory, whole: tuple[Path, Document]
) -> None:
    lost_at = {2, 5, 6, 11, 23}
    cut = laboratory.run("cut", wrap_device=lambda inner: WrappedEvaluator(inner, lost_at))
    assert untimed(cut) == untimed(whole[1])
    assert len(laboratory.recovered) >= 4  # two are lost at once


class Lying(WrappedEvaluator):
    """A device that answers wrongly from one of its calls on."""

    lies_from = 10**9

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        answer = super().submit(inputs)
        if self.calls < self.lies_from:
            return answer
        truth = answer.result()
        return with_outputs(truth, np.flip(truth.outputs, 1))


def test_a_device_that_changes_its_mind_has_flaky_findings(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"max_queries": 20, "chains": 256}
    made: list[Lying] = []

    def wrap(inner: Evaluator) -> Evaluator:
        made.append(Lying(inner))
        return made[-1]

    whole = laboratory.run("whole", **asked, wrap_device=wrap)
    stored = (*whole["findings"], *whole["deviating_seeds"])
    verifying = -(-3 * len(stored) // 16)
    monkeypatch.setattr(Lying, "lies_from", made[0].calls - verifying + 1)
    document = laboratory.run("lies", **asked, wrap_device=wrap)
    assert document["flaky"]
    told = (*document["findings"], *document["deviating_seeds"], *document["flaky"])
    assert {entry["seed_id"] for entry in told} == {entry["seed_id"] for entry in stored}


def test_a_device_that_is_gone_for_good_leaves_a_run_that_can_go_on(
    laboratory: Laboratory, whole: tuple[Path, Document]
) -> None:
    with pytest.raises(InfrastructureError, match="burnt down"):
        laboratory.run("run", wrap_device=lambda inner: Mortal(inner, 12))
    with closing(RunJournal.open(laboratory.folder / "run" / "run.db")) as journal:
        assert journal.about()["stopped_by"] == "infrastructure"
    left = json.loads((laboratory.folder / "run" / "run.json").read_bytes())
    assert left["stopped_by"] == "infrastructure"
    assert untimed(laboratory.run("run", resume=True)) == untimed(whole[1])


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("UPDATE answers SET device = x'00' WHERE role = 'seed'", "an answer has not the"),
        ("UPDATE answers SET device = x'00' WHERE role = 'step'", "an answer has not the"),
        ("UPDATE answers SET members = x'00'", "the answers of an ensemble are not"),
        ("DELETE FROM about WHERE key = 'seeds'", "it does not say how many seeds"),
    ],
)
def test_a_journal_with_what_no_run_has_is_damaged_and_not_gone_on_with(
    laboratory: Laboratory, damage: str, why: str
) -> None:
    laboratory.run("run", stop_after=300, chains=8)
    with closing(sqlite3.connect(laboratory.folder / "run" / "run.db")) as journal, journal:
        assert journal.execute(damage).rowcount > 0
    with pytest.raises(UserError, match=rf"run\.db is damaged \({why}"):
        laboratory.run("run", resume=True)


def test_a_campaign_draws_from_its_plan_alone(laboratory: Laboratory) -> None:
    document = laboratory.run("run", operators=("pixel-change", "salt-and-pepper"))
    drawn = {name for finding in document["findings"] for name in finding["operators"]}
    assert drawn == {"pixel-change", "salt-and-pepper"}


def test_a_device_that_crashes_on_an_input_is_a_finding(laboratory: Laboratory) -> None:
    document = laboratory.run("run", wrap_device=Fragile)
    crashes = [entry for entry in document["findings"] if entry["kind"] == "crash"]
    assert crashes
    assert all(entry["labels"]["device"] is None for entry in crashes)
    assert all(entry["strength"] is None for entry in crashes)
    assert all(entry["verified"] for entry in crashes)


@pytest.mark.parametrize("total", [None, 700])
def test_progress_bounds_the_queries_that_are_left(
    laboratory: Laboratory, total: int | None
) -> None:
    laboratory.run("run", total_queries=total)
    reports = laboratory.watched.progress
    spent = [report.queries for report in reports]
    left = [report.most_queries_left for report in reports]
    assert all(most >= spent[-1] - before for most, before in zip(left, spent, strict=True))
    assert left == sorted(left, reverse=True)
    assert left[0] < (total or 24 * 150)
    assert {report.seconds_left for report in reports} == {float("inf")}
    laboratory.run("timed", time_limit_seconds=1000.0)
    for report in laboratory.watched.progress:
        assert report.seconds_left == pytest.approx(1000.0 - report.seconds)
