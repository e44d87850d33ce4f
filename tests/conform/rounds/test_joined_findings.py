"""Operators that fail joined alone: told apart, shrunk, accepted, and tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conforming import SeenProgress, a_header, conforming
from edgeflare.conform.drafts.cell_pairs import allowed_pairs
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode
from edgeflare.conform.drafts.pair_drawing import PairDrawing
from edgeflare.conform.execution.kernel_arm import RunFailureKind
from edgeflare.conform.findings.known_findings import KnownFinding, known_text, read_known
from edgeflare.conform.graphs.operator_graph import Values
from edgeflare.conform.record.conform_finding import ConformFinding
from edgeflare.conform.record.stored_model import stored_model
from edgeflare.conform.retried_findings import retried_findings
from edgeflare.conform.rounds.judged_draft import judge_drafts
from edgeflare.conform.rounds.smallest_models import found_findings
from edgeflare.run.run_directory import RunDirectory
from exact_arm import ExactArm, PlantedFault

CELLS: tuple[Cell, ...] = (("ABS", "float32"), ("NEG", "float32"), ("RELU", "float32"))


def _wrong(values: Values) -> Values:
    """Return other values, which ABS and NEG do not make the same again."""
    return np.asarray(3 * values - 1, values.dtype)


FUSED = PlantedFault("NEG", change=_wrong, joined=True, after="RELU")
"""A kernel that runs RELU and NEG at once, and is wrong."""

OTHER = PlantedFault("ABS", change=_wrong, joined=True, after="NEG")
"""Likewise of NEG and ABS."""

DIES = PlantedFault("NEG", failure="crash", joined=True, after="RELU")

Arms = tuple[ExactArm, ExactArm]


def _arms(*faults: PlantedFault, twin: Sequence[PlantedFault] = ()) -> Arms:
    return ExactArm("device", faults), ExactArm("xnnpack", twin)


def _run(
    folder: Path, arms: Arms, known: Sequence[KnownFinding] = (), *, over: bool = False
) -> list[ConformFinding]:
    """Return the findings of a run of 24 models of up to four operators, or of its journal."""
    with conforming(folder, arms, CELLS) as (rounds, _):
        rounds.coverage = Coverage(CELLS, allowed_pairs(CELLS))
        rounds.draw(PairDrawing(rounds.coverage, np.random.default_rng(1)), 24)
        return found_findings(rounds, RunDirectory(folder), known, SeenProgress(), lambda: over)


def _found(folder: Path, arms: Arms, *drafts: Draft) -> list[ConformFinding]:
    """Return the findings of some drafts."""
    with conforming(folder, arms) as (rounds, _):
        for one in judge_drafts(drafts, arms, {}):
            rounds.state.add(one)
        return found_findings(rounds, RunDirectory(folder), (), SeenProgress(), lambda: False)


def _chain(*operators: str, shape: tuple[int, ...] = (2, 3)) -> Draft:
    return Draft(
        tuple(
            DraftNode(operator, "float32", {"shape": shape}, at, (at - 1 if at else FRESH,))
            for at, operator in enumerate(operators)
        )
    )


def _names(found: Sequence[ConformFinding]) -> list[tuple[str, int]]:
    return [(one.operator, one.failing) for one in found]


def test_one_fault_in_many_models_is_one_small_finding(tmp_path: Path) -> None:
    (found,) = _run(tmp_path, _arms(FUSED))
    assert (found.number, found.operator, found.type) == (1, "RELU then NEG", "float32")
    assert (found.judgement.verdict, found.judgement.symptom) == ("device", "wrong values")
    assert found.counts
    assert found.failing == 4
    small = found.smallest
    assert [node.operator for node in small.draft.nodes] == ["RELU", "NEG"]
    assert small.draft.nodes[1].sources == (0,)
    assert small.elements == 1
    assert 1 < small.device_runs <= 300
    assert (small.judgement.verdict, small.judgement.symptom) == ("device", "wrong values")


def test_what_the_twin_joins_alike_is_listed_and_does_not_count(tmp_path: Path) -> None:
    (found,) = _run(tmp_path, _arms(FUSED, twin=[FUSED]))
    assert (found.operator, found.judgement.verdict) == ("RELU then NEG", "shared")
    assert not found.counts
    assert found.smallest.device_runs <= 100


def test_a_run_that_is_resumed_comes_to_the_same(tmp_path: Path) -> None:
    first, again = _arms(FUSED), _arms(FUSED)
    found = [one.to_json() for one in _run(tmp_path, first)]
    assert [one.to_json() for one in _run(tmp_path, again)] == found
    assert len(again[0].models) < len(first[0].models)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert [one.to_json() for one in _run(elsewhere, _arms(FUSED))] == found


def test_without_time_models_of_the_same_operators_are_one_finding(tmp_path: Path) -> None:
    found = _run(tmp_path, _arms(FUSED), over=True)
    assert len({one.operator for one in found}) == len(found)
    assert {one.smallest.device_runs for one in found} == {0}
    assert sum(one.failing for one in found) == _run(tmp_path, _arms(FUSED))[0].failing


def test_a_model_with_the_operators_of_a_finding_may_fail_by_others(tmp_path: Path) -> None:
    pair, longer = _chain("RELU", "NEG"), _chain("RELU", "NEG", "ABS")
    assert _names(_found(tmp_path, _arms(FUSED), pair, longer)) == [("RELU then NEG", 2)]
    apart = tmp_path / "apart"
    apart.mkdir()
    # Its NEG is no longer the one that RELU feeds.
    other = _chain("RELU", "ABS", "NEG", "ABS")
    found = _found(apart, _arms(FUSED, OTHER), pair, longer, other)
    assert _names(found) == [("NEG then ABS", 1), ("RELU then NEG", 2)]


@pytest.mark.parametrize("operators", [["ABS", "RELU", "NEG"], ["RELU", "NEG", "ABS", "RELU"]])
def test_operators_that_the_fault_does_not_need_are_left_out(
    tmp_path: Path, operators: list[str]
) -> None:
    (found,) = _found(tmp_path, _arms(FUSED), _chain(*operators, shape=(4, 5)))
    assert found.operator == "RELU then NEG"
    assert found.smallest.elements == 1


def test_a_fault_of_three_operators_keeps_three(tmp_path: Path) -> None:
    between = PlantedFault("NEG", change=_wrong, joined=True, after="RELU", least_operators=3)
    (found,) = _found(tmp_path, _arms(between), _chain("ABS", "RELU", "NEG", "ABS", "RELU"))
    assert len(found.smallest.draft.nodes) == 3
    assert "RELU then NEG" in found.operator


@pytest.mark.parametrize(("failure", "most"), [("crash", 120), ("hang", 36)])
def test_what_takes_processes_or_time_is_shrunk_with_few_models(
    tmp_path: Path, failure: RunFailureKind, most: int
) -> None:
    longer = _chain("ABS", "RELU", "NEG", shape=(3, 4))
    device, twin = _arms(replace(DIES, failure=failure))
    (found,) = _found(tmp_path, (device, twin), _chain("RELU", "NEG"), longer, longer)
    assert (found.operator, found.failing, found.counts) == ("RELU then NEG", 3, True)
    assert found.judgement.symptom == failure
    assert found.smallest.device_runs <= most
    failing = [one for one in device.models if len(one.graph.nodes) > 1]
    # Three were drawn, two compared, and the smallest is run once more for its answers.
    assert len(failing) <= 3 + 2 + most // 3 + 2


def test_what_counts_is_numbered_before_what_does_not(tmp_path: Path) -> None:
    wrong = PlantedFault("ABS", change=_wrong)
    arms = _arms(wrong, FUSED, twin=[wrong])
    found = _found(tmp_path, arms, _chain("ABS"), _chain("RELU", "NEG"))
    assert [(one.number, one.operator, one.counts) for one in found] == [
        (1, "RELU then NEG", True),
        (2, "ABS", False),
    ]
    assert [one.smallest.file for one in found] == [
        "findings/000001.tflite",
        "findings/000002.tflite",
    ]


def test_what_report_writes_is_known_in_the_next_run(tmp_path: Path) -> None:
    (found,) = _run(tmp_path, _arms(FUSED))
    device = a_header().device
    path = tmp_path / "known.toml"
    path.write_text(known_text({"device": device, "findings": [found.to_json()]}))
    known = read_known(path)
    (again,) = _run(tmp_path, _arms(FUSED), known)
    assert (again.operator, again.counts) == ("RELU then NEG", False)
    assert again.known is not None
    other = tmp_path / "other"
    other.mkdir()
    assert [(one.operator, one.counts) for one in _run(other, _arms(OTHER), known)] == [
        ("NEG then ABS", True)
    ]


@pytest.mark.parametrize("fault", [FUSED, DIES])
def test_a_finding_that_is_tried_again_is_what_it_was(tmp_path: Path, fault: PlantedFault) -> None:
    (found,) = _run(tmp_path, _arms(fault))
    stored = stored_model(RunDirectory(tmp_path), found.to_json())
    (still,) = retried_findings([stored], _arms(fault))
    assert (still.outcome, still.counts) == ("still", True)
    assert {*still.answers} == {"device", "xnnpack"}
    (mended,) = retried_findings([stored], _arms())
    assert (mended.outcome, mended.counts) == ("mended", False)
    (both,) = retried_findings([stored], _arms(fault, twin=[fault]))
    assert not both.counts
    assert both.judgement.wrong == ("device", "xnnpack")
