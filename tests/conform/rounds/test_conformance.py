"""The document of a conformance run: what was covered, refused and found, as the schema has it."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from conformed_runs import plain
from conforming import (
    ADD,
    CLAMPED,
    SUM,
    PlantedFault,
    SeenProgress,
    a_header,
    conforming,
    faulty_arms,
)
from drafting import relu_chain
from edgeflare.conform.findings.known_issues import KnownFaults
from edgeflare.conform.record.conform_finding import ConformFinding
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.rounds.conformance import conform_outcome
from edgeflare.conform.rounds.draft_verdict import judge_drafts
from edgeflare.conform.rounds.smallest_models import SmallestModels
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.run.run_directory import RunDirectory

REFUSED = PlantedFault("SUM", lambda one: one["keep_dims"] is True, failure="refused")
FUSED = PlantedFault("RELU", change=np.negative, joined=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[ConformRounds, list[ConformFinding]]:
    """A run with an ADD that is wrong, a SUM that is refused at times, and RELUs that are fused."""
    folder, arms = tmp_path_factory.mktemp("run"), faulty_arms(CLAMPED, REFUSED, FUSED)
    with conforming(folder, arms, (ADD, SUM)) as (rounds, source):
        rounds.draw(source, 48)
        (joined,) = judge_drafts([relu_chain([(2, 3), (2, 3)])], arms, {})
        rounds.state.add(joined)
        known, seen = KnownFaults(), SeenProgress()
        smallest = SmallestModels(rounds, seen, lambda: True)
        smallest.shrink(())
        found = smallest.findings(RunDirectory(folder), known)
    return rounds, found


def _document(run: tuple[ConformRounds, list[ConformFinding]]) -> dict[str, Any]:
    rounds, found = run
    document = conform_outcome(
        *(a_header((ADD, SUM)), rounds.state, rounds.coverage, found, None, "models", 1.23456)
    )
    return dict(plain(document))


def _check(document: dict[str, Any]) -> None:
    schema = (files("edgeflare.conform.record") / "conform.schema.json").read_bytes()
    jsonschema.validate(document, json.loads(schema), jsonschema.Draft202012Validator)


@pytest.mark.slow
def test_a_document_is_as_its_schema_says(
    run: tuple[ConformRounds, list[ConformFinding]],
) -> None:
    document = _document(run)
    _check(document)
    assert (document["stopped_by"], document["seconds"]) == ("models", 1.235)
    assert [
        (one["number"], one["operator"], one["counted"], len(one["smallest"]["operators"]))
        for one in document["findings"]
    ] == [(1, "ADD", True, 1), (2, "RELU then RELU", True, 2)]
    document["cells"][0]["verdicts"]["odd"] = 0
    with pytest.raises(jsonschema.ValidationError):
        _check(document)


def test_all_models_are_accounted_for(run: tuple[ConformRounds, list[ConformFinding]]) -> None:
    document = _document(run)
    assert document["models"] == 49
    by_cell = {(one["operator"], one["type"]): one["verdicts"] for one in document["cells"]}
    assert list(by_cell) == sorted(by_cell)
    assert sum(sum(one.values()) for one in by_cell.values()) == 50
    assert by_cell["RELU", "float32"] == {"right": 2}
    assert by_cell[ADD].keys() == {"device", "right"}
    (refused,) = document["refused"]
    assert refused == {
        "operator": "SUM",
        "type": "int8",
        "models": by_cell[SUM]["refused"],
        "always": False,
        "message": "planted",
    }


def test_what_is_always_refused_is_no_part_of_what_could_be_covered(tmp_path: Path) -> None:
    arms = faulty_arms(PlantedFault("SUM", failure="refused"))
    with conforming(tmp_path, arms, (ADD, SUM)) as (rounds, source):
        rounds.draw(source, 32)
    document = _document((rounds, []))
    _check(document)
    assert document["coverage"]["cells"] == {"covered": 1, "total": 1, "refused": 1}
    assert document["coverage"]["uncovered"]["cells"] == []
    assert document["graphs"] is None
    assert document["coverage"]["buckets"]["refused"] > 0
    assert [one["always"] for one in document["refused"]] == [True]


def test_an_error_that_json_has_no_number_for_is_none(
    run: tuple[ConformRounds, list[ConformFinding]],
) -> None:
    rounds, (first, *_) = run
    said = KernelJudgement("device", "not-finite", counted=True, worst=np.inf, unit="ulp")
    smallest = replace(first.smallest, judgement=said)
    document = _document((rounds, [replace(first, judgement=said, smallest=smallest)]))
    _check(document)
    (found,) = document["findings"]
    assert (found["worst"], found["smallest"]["worst"]) == (None, None)


def test_the_largest_rounding_is_a_figure_of_its_cell(tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    arms = faulty_arms(PlantedFault("ADD", change=lambda values: values + (values < 100)))
    with conforming(tmp_path, arms) as (rounds, source):
        rounds.draw(source, 8)
    (cell,) = _document((rounds, []))["cells"]
    assert cell["verdicts"]["rounding"] > 0
    assert (cell["rounding"], cell["rounding_unit"]) == (1.0, "steps")
    with conforming(tmp_path / "sound", faulty_arms()) as (rounds, source):
        rounds.draw(source, 8)
    (cell,) = _document((rounds, []))["cells"]
    assert (cell["verdicts"], cell["rounding"]) == ({"right": 8}, None)
