"""Tests of edgeflare.conform.shown.conform_terminal."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from conformed_runs import HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.conform.shown.conform_terminal import MOST, print_conformance


def printed(document: dict[str, Any], width: int = 80) -> str:
    written = io.StringIO()
    print_conformance(Console(file=written, width=width), document, "runs/one")
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def test_what_fails_comes_first_with_its_whole_condition() -> None:
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


def test_a_crash_has_no_size_and_an_infinity_is_named() -> None:
    crash = finding_entry(verdict="crash", symptom="crash", unit="", worst=0.0, condition=[])
    infinite = finding_entry(2, worst=None, unit="ulp", symptom="not finite")
    nothing = finding_entry(3, worst=0.0, unit="ulp", symptom="not finite")
    said = printed(constructed_conformance([crash, infinite, nothing]))
    assert said.count("  not finite; wrong: device") == 2
    assert "1 ADD uint8: crash always\n  wrong: device, builtin; 50 models" in said
    assert "not finite; wrong: device" in said


def test_many_findings_are_cut_and_warnings_shown() -> None:
    many = [finding_entry(number) for number in range(1, MOST + 2)]
    said = printed(constructed_conformance(many, warnings=["take care"]))
    assert f"The device fails (the first {MOST} of {MOST + 1})" in said
    assert "warning: take care" in said


def test_a_run_without_findings_says_so() -> None:
    said = printed(constructed_conformance([]), 120)
    assert "no fault, in 96 models of 2 operators and types" in said
    known = printed(constructed_conformance([finding_entry(known="a vendor's")]))
    assert "no fault that is not known, 1 known" in known
    assert "known: a vendor's" in known


def test_what_was_not_tried_of_a_model_follows_the_headline() -> None:
    first, second, *_ = printed(constructed_conformance([], model=HALF_TRIED), 200).splitlines()
    assert "48 % of the arithmetic of kws.tflite was tried (3 of 4 operators)" in first
    assert "Mfcc × 2 (52 % of the arithmetic, the operator is not known)" in second


def test_no_terminal_obeys_names() -> None:
    hostile = finding_entry(detail="\x1b[2J", condition=["\x1b]0;x\x07"])
    document = constructed_conformance([hostile], warnings=["\x1b[31m"])
    assert "\x1b" not in printed(document)
