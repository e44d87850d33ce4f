"""Figures in words."""

from __future__ import annotations

import pytest

from documents import run_document
from edgeflare.report.figure_lines import systematic_lines, unmutated_lines
from edgeflare.run.systematic.figures import (
    ClassFlow,
    ClippedOutput,
    OtherOrder,
    ScoreShift,
    SystematicDifferences,
)

FLOWS = tuple(ClassFlow(head="", name=name, left=21, came=0, p=1e-5) for name in "abcd")


def test_what_is_one_sided_has_a_line_of_each_kind_and_the_first_few_of_it() -> None:
    shift = ScoreShift(
        head="b", score="probability of the decision", lower=30, higher=2, median=-0.1,
        low=-0.12, high=-0.08, p=1e-6,
    )  # fmt: skip
    clipped = ClippedOutput(output="out", side="high", end=6.0, share=0.011, values=42, of=1404)
    lines = systematic_lines(
        SystematicDifferences(
            first="original", second="device", orders=(), flows=FLOWS, shifts=(shift,),
            clipped=(clipped,),
        )
    )  # fmt: skip
    assert dict(lines) == {
        "score on device": "b: probability of the decision lower on 30 of the 32 seeds on which it "
        "changes, median -0.1 (95 % interval -0.12 to -0.08)",
        "flow to device": "21 seeds leave a, 0 come to it (p 1e-05); 21 seeds leave b, 0 come to it"
        " (p 1e-05); 21 seeds leave c, 0 come to it (p 1e-05); 1 more",
        "cut off on device": "1.1% of the original's values of out lie above 6, where the range "
        "ends, those of 42 of its 1,404 positions on most seeds",
    }


def test_another_order_is_a_warning_and_no_line() -> None:
    order = OtherOrder(
        first="original", second="device", what="classes", head="left", moved=(("3", "4"),) * 8,
        before=0.2, after=1.0, seeds=40,
    )  # fmt: skip
    found = SystematicDifferences(
        first="original", second="device", orders=(order,), flows=(), shifts=(), clipped=()
    )
    assert not systematic_lines(found)
    assert not systematic_lines(None)
    assert str(order) == (
        "the device's classes of left are the original's in another order: "
        + ", ".join(["(3 → 4)"] * 6)
        + " and 2 more; agreement as numbered 20%, mapped 100%"
    )


def test_an_output_that_is_read_alone_is_said_to_be_the_other_one() -> None:
    order = OtherOrder(
        first="original", second="twin", what="outputs", head="", moved=(("b", "a"),),
        before=0.3, after=1.0, seeds=40,
    )  # fmt: skip
    assert str(order) == (
        "the compressed model's output a is the original's b; agreement as named 30%, with that "
        "100%"
    )


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (None, "nothing says who is right of those that deviate by a tie"),
        ({"unlabelled": 2}, "nothing says who is right of those that deviate by a tie"),
        (
            {"original-right": 2},
            "of those that deviate by a tie 2 are harmed and 0 helped (p = 0.5)",
        ),
    ],
)
def test_harm_by_ties_is_counted_where_it_is_known_who_is_right(
    harm: dict[str, int] | None, said: str
) -> None:
    figures = {
        "images": 40, "deviating": 2, "by_tie": 2, "tied": 3, "rate": 0.05, "low": 0.0,
        "high": 0.2, "harm": harm, "harm_by_tie": harm, "labelled": 0, "right": None,
    }  # fmt: skip
    lines = dict(unmutated_lines(run_document(unmutated={"seeds": figures})))
    expected = f"do not count for the exit code: 3 of 40 seeds tie, and {said}"
    assert lines["seeds by a tie"] == expected
