"""`edgeflare search --coverage`: the figures of a real pair, and what is said without them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from called_commands import EXAMPLE, SMALL, call_here, completed, document_of, refused
from edgeflare.report.run_page import NOT_MEANT
from onnx_models import linear_weights, write_linear_onnx

pytestmark = pytest.mark.slow

COVERAGE = ("--coverage", "0,.25,.5,.75", "--fail-on", "none")


@pytest.fixture(scope="module")
def covered(tmp_path_factory: Any) -> tuple[Path, Any]:
    """A search with neuron coverage: its folder, and what it said."""
    run = tmp_path_factory.mktemp("covered") / "run"
    return run, call_here("search", EXAMPLE, *SMALL, *COVERAGE, "--out", run)


def test_each_arm_has_its_shares_at_each_threshold(covered: tuple[Path, Any]) -> None:
    run, said = covered
    told = document_of(run)
    coverage, found = told["coverage"], told["totals"]["findings"]
    assert said.code == 0
    assert told["plan"]["coverage"] == coverage["thresholds"] == [0, 0.25, 0.5, 0.75]
    assert coverage["seeds"] == coverage["findings"] == coverage["others"] == found > 2
    assert [one["arm"] for one in coverage["arms"]] == ["original", "twin", "device"]
    assert coverage["device_queries"] == 3 * found
    assert coverage["notes"] == []
    for arm in coverage["arms"]:
        assert arm["neurons"] == coverage["arms"][0]["neurons"] > 100
        for key in ("with_findings", "with_others"):
            assert all(
                0 < few <= more < 1 for few, more in zip(arm["seeds"], arm[key], strict=True)
            )
            assert arm[key] == sorted(arm[key], reverse=True)


def test_it_is_measured_anew_when_a_run_goes_on_and_comes_to_the_same(
    covered: tuple[Path, Any], tmp_path: Path
) -> None:
    """Thresholds are the same in any order, and if one is said twice."""
    run = Path(shutil.copytree(covered[0], tmp_path / "run"))
    again = ("--coverage", ".5,0,.75,.25,.5", "--fail-on", "none")
    said = completed("search", EXAMPLE, *SMALL, *again, "--out", run, "--resume")
    assert document_of(run)["coverage"] == document_of(covered[0])["coverage"]
    assert f"coverage {9 * document_of(run)['coverage']['findings']}/" in said.err


def test_other_thresholds_are_another_command(covered: tuple[Path, Any]) -> None:
    assert "begun with --coverage 0,0.25,0.5,0.75, not without --coverage" in refused(
        "search", EXAMPLE, *SMALL, "--out", covered[0], "--resume"
    )


def test_all_reports_have_the_table(covered: tuple[Path, Any], tmp_path: Path) -> None:
    run = Path(shutil.copytree(covered[0], tmp_path / "run"))
    plain, pages = call_here("report", run), call_here("report", run, "--html", "--summary")
    assert pages.code == 0
    shown = (plain.out, (run / "report.html").read_text(), (run / "summary.md").read_text())
    for text in (covered[1].out, *shown):
        assert " ".join(NOT_MEANT.split()) in " ".join(text.split())
        assert "other seeds" in text


def test_the_search_is_the_one_without_it(covered: tuple[Path, Any], finished: Any) -> None:
    """Coverage draws from no generator of the search."""
    plain = document_of(finished.folder)
    assert [one["sha256"] for one in plain["findings"]] == [
        one["sha256"] for one in document_of(covered[0])["findings"]
    ]
    assert "coverage" not in plain
    assert plain["plan"]["coverage"] == []


def test_without_findings_it_is_that_of_the_seeds(tmp_path: Path) -> None:
    same = ("--original", EXAMPLE / "compressed.tflite", "--device", "emulated-xnnpack")
    short = ("--first", "3", "--max-queries", "20", "--coverage", "0")
    said = completed("search", EXAMPLE, *same, *short, "--out", tmp_path / "run")
    coverage = document_of(tmp_path / "run")["coverage"]
    assert (coverage["seeds"], coverage["findings"], coverage["others"]) == (3, 0, 0)
    assert all(arm["with_findings"] is arm["with_others"] is None for arm in coverage["arms"])
    assert "No search ended in a finding" in said.out


def test_an_original_that_is_no_tflite_is_left_out(tmp_path: Path) -> None:
    write_linear_onnx(tmp_path / "original.onnx", linear_weights())
    run, original = tmp_path / "run", ("--original", tmp_path / "original.onnx")
    short = ("--first", "4", "--max-queries", "40", "--shrink", "0", "--coverage", "0")
    said = completed("search", EXAMPLE, *original, *short, "--fail-on", "none", "--out", run)
    coverage = document_of(run)["coverage"]
    assert [one["arm"] for one in coverage["arms"]] == ["twin", "device"]
    (note,) = [one for one in coverage["notes"] if "original" in one]
    assert note.endswith("its layers are seen only if it is a .tflite file")
    assert "warning: neuron coverage: the original is left out" in said.err
