"""A conformance run on a terminal and in a summary: what counts first, and names stay text."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from conformed_runs import HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.conform.shown.conform_summary import ROWS, conform_summary
from edgeflare.conform.shown.conform_terminal import MOST, print_conformance
from edgeflare.conform.shown.retry_terminal import RetryLine, print_retry


def printed(document: dict[str, Any], width: int = 80) -> str:
    written = io.StringIO()
    print_conformance(Console(file=written, width=width), document, "runs/one")
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def test_what_fails_comes_first_on_a_terminal_with_its_whole_condition() -> None:
    shared = finding_entry(
        2, operator="TRANSPOSE_CONV", type="int16x8", verdict="shared", counted=False, failing=1,
        condition=["bias is yes", "a_very_long_name_of_a_setting ≥ another_very_long_name"],
    )  # fmt: skip
    said = printed(constructed_conformance([finding_entry(), shared]))
    assert said.startswith("board (tflite-runtime 2.14.0, builtin): 1 fault in 1 operator")
    assert "1 ADD uint8: wrong values when size ≥ 8, sum_ratio_log2 ≥ 7\n" in said
    assert "  by up to 255 steps; wrong: device, builtin; 50 models\n" in said
    assert "a_very_long_name_of_a_setting" in said
    assert "another_very_long_name" in said
    assert "builtin; 1 model\n" in said
    assert said.index("The device fails") < said.index("Device and twin fail alike")
    assert said.endswith("see it: edgeflare report runs/one --html")
    known = printed(constructed_conformance([finding_entry(known="a vendor's")]))
    assert "known: a vendor's" in known


def test_a_crash_has_no_size_and_an_infinity_is_named() -> None:
    crash = finding_entry(verdict="crash", symptom="crash", unit="", worst=0.0, condition=[])
    infinite = finding_entry(2, worst=None, unit="ulp", symptom="not finite")
    nothing = finding_entry(3, worst=0.0, unit="ulp", symptom="not finite")
    said = printed(constructed_conformance([crash, infinite, nothing]))
    assert said.count("  not finite; wrong: device") == 2
    assert "1 ADD uint8: crash always\n  wrong: device, builtin; 50 models" in said


def test_many_findings_are_cut_and_warnings_and_what_was_not_tried_are_shown() -> None:
    many = [finding_entry(number) for number in range(1, MOST + 2)]
    document = constructed_conformance(many, warnings=["take care"], model=HALF_TRIED)
    said = printed(document, 200)
    assert f"The device fails (the first {MOST} of {MOST + 1})" in said
    assert "warning: take care" in said
    assert "Mfcc × 2 (52 % of the arithmetic, the operator is not known)" in said.splitlines()[1]


def test_of_findings_that_were_tried_again_those_that_fail_come_first() -> None:
    written = io.StringIO()
    lines = [
        RetryLine(finding_entry(1), "mended", ""),
        RetryLine(finding_entry(2, known="a vendor's"), "still", "14 of 68 values are wrong"),
        RetryLine(finding_entry(3), "refused", "unknown \x1b[2J version"),
        RetryLine(finding_entry(4), "otherwise", "now crash, crash: SIGSEGV"),
    ]
    print_retry(Console(file=written, width=80), "board", lines)
    said = [line.strip() for line in written.getvalue().splitlines()]
    assert said[0] == "board: findings that fail: 2 of 4, mended: 1, refused: 1"
    titles = ["Still fails", "Fails in another way", "The device refuses the model", "Mended"]
    places = [said.index(title) for title in titles]
    assert places == sorted(places)
    assert "2 ADD uint8: wrong values when size ≥ 8, sum_ratio_log2 ≥ 7" in said
    assert "known: a vendor's" in said
    assert "now crash, crash: SIGSEGV" in said
    assert "\x1b" not in written.getvalue()


def test_a_summary_has_the_headline_the_findings_and_what_was_covered() -> None:
    said = conform_summary(constructed_conformance())
    assert said.startswith("## EdgeFlare kernel conformance: board\n\n❌ board (tflite-runtime")
    assert "### The device fails" in said
    row = (
        "| 1 | ADD uint8 | wrong values | size ≥ 8, sum\\_ratio\\_log2 ≥ 7 | 255 steps"
        " | device, builtin | 50 |"
    )
    assert row in said
    assert "75.0 % (90 of 120) of ranges of parameters" in said
    assert "The device refused models of 1 operator and type, and all models of 1." in said
    many = [finding_entry(number) for number in range(1, ROWS + 4)]
    assert "and 3 more" in conform_summary(constructed_conformance(many))


@pytest.mark.parametrize(
    ("changed", "mark", "said"),
    [
        ({}, "✅", "### The device fails, as is known"),
        ({"stopped_by": "sigterm"}, "⚠️", "It ended when it was stopped by SIGTERM."),
        ({"model": HALF_TRIED}, "⚠️", "Mfcc × 2 (52 % of the arithmetic, the operator is not"),
        ({"model": {**HALF_TRIED, "arithmetic_tried": 500}}, "✅", "Mfcc × 2"),
    ],
)
def test_a_summary_passes_a_whole_run_without_new_findings(
    changed: dict[str, Any], mark: str, said: str
) -> None:
    known = [finding_entry(known="a vendor's")]
    summary = conform_summary(constructed_conformance(known, **changed))
    assert f"\n{mark} board" in summary
    assert said in summary


def test_names_break_out_of_no_table_and_no_terminal_obeys_them() -> None:
    hostile = finding_entry(detail="\x1b[2J", condition=["a|b\n<c>\x1b]0;x\x07"])
    document = constructed_conformance([hostile], warnings=["\x1b[31m"])
    assert "\x1b" not in printed(document)
    hostile = finding_entry(condition=["a|b\n<c>"])
    assert "| a\\|b \\<c\\> |" in conform_summary(constructed_conformance([hostile]))
