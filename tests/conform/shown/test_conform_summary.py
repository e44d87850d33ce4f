"""Tests of edgeflare.conform.shown.conform_summary."""

from __future__ import annotations

from conformed_runs import HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.conform.shown.conform_summary import ROWS, conform_summary


def test_it_has_the_headline_the_findings_and_what_was_covered() -> None:
    said = conform_summary(constructed_conformance())
    assert said.startswith("## EdgeFlare kernel conformance: board\n\n❌ board (tflite-runtime")
    assert "1 fault in 1 operator, in 96 models" in said
    assert "### The device fails" in said
    row = (
        "| 1 | ADD uint8 | wrong values | size ≥ 8, sum\\_ratio\\_log2 ≥ 7 | 255 steps"
        " | device, builtin | 50 |"
    )
    assert row in said
    assert "75.0 % (90 of 120) of ranges of parameters" in said
    assert "The device refused models of 1 operator and type, and all models of 1." in said


def test_known_findings_do_not_fail_it_and_a_run_that_was_cut_off_may_have_more() -> None:
    known = [finding_entry(known="a vendor's")]
    assert "\n✅ board" in conform_summary(constructed_conformance(known))
    said = conform_summary(constructed_conformance(known, stopped_by="sigterm"))
    assert "\n⚠️ board" in said
    assert "This is not the whole run. It ended when it was stopped by SIGTERM." in said
    assert "### The device fails, as is known" in said


def test_a_run_that_tried_little_of_a_model_passes_nothing() -> None:
    said = conform_summary(constructed_conformance([], model=HALF_TRIED))
    assert "\n⚠️ board" in said
    assert "Mfcc × 2 (52 % of the arithmetic, the operator is not known)" in said
    most = {**HALF_TRIED, "arithmetic_tried": 500}
    assert "\n✅ board" in conform_summary(constructed_conformance([], model=most))


def test_a_long_table_is_cut() -> None:
    many = [finding_entry(number) for number in range(1, ROWS + 4)]
    assert "and 3 more" in conform_summary(constructed_conformance(many))


def test_names_break_out_of_no_table() -> None:
    hostile = finding_entry(condition=["a|b\n<c>"])
    assert "| a\\|b \\<c\\> |" in conform_summary(constructed_conformance([hostile]))
