"""The words that every report uses: names, figures, what ran where, and what was folded."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from documents import Document, finding, run_device, run_document, run_pair
from edgeflare.core.query import Arm
from edgeflare.models.run_host import describe_host
from edgeflare.pages.answers.answer_form import class_name
from edgeflare.pages.facts import details, number
from edgeflare.pages.markdown import markdown_page
from edgeflare.report.arm_lines import arm_lines, folded_line
from edgeflare.report.entry_words import sort
from edgeflare.report.figure_lines import line_style
from edgeflare.report.nearness_figure import draw_nearness
from edgeflare.report.run_figures import systematic_lines, unmutated_lines
from edgeflare.report.run_page import run_page
from edgeflare.run.run_document import from_json
from edgeflare.run.run_warnings import undelegated
from edgeflare.run.systematic.figures import (
    ClassFlow,
    ClippedOutput,
    OtherOrder,
    ScoreShift,
    SystematicDifferences,
)


@pytest.mark.parametrize(
    ("kind", "cause", "name"),
    [
        ("deviation", "kernel", "kernel"),
        ("deviation", None, "deviation"),
        ("crash", "kernel", "crash"),
        ("invalid-output", None, "invalid-output"),
    ],
)
def test_a_failure_is_sorted_by_its_kind(kind: str, cause: str | None, name: str) -> None:
    assert sort(finding(kind=kind, cause=cause)) == name


def test_a_class_without_a_name_is_a_number() -> None:
    assert [class_name(["ant"], label) for label in (0, 1, None)] == ["ant", "1", "–"]


def test_figures_are_rounded_to_be_read() -> None:
    assert [number(value) for value in (None, 1234.56, 0.04)] == ["–", "1,234.6", "0.0"]
    assert number(0.12345, 3) == "0.123"


FLOWS = tuple(ClassFlow(head="", name=name, left=21, came=0, p_corrected=1e-5) for name in "abcd")


def test_what_is_one_sided_has_a_line_of_each_kind_and_the_first_few_of_it() -> None:
    shift = ScoreShift(
        head="b", score="probability of the decision", lower=30, higher=2, median=-0.1,
        low=-0.12, high=-0.08, p_corrected=1e-6,
    )  # fmt: skip
    clipped = ClippedOutput(
        output="out", side="high", end=6.0, share=0.011, values=42, positions=1404
    )
    lines = systematic_lines(
        SystematicDifferences(
            first=Arm.ORIGINAL, second=Arm.DEVICE, orders=(), flows=FLOWS, shifts=(shift,),
            clipped=(clipped,),
        )
    )  # fmt: skip
    assert dict(lines) == {
        "score on device": "b: probability of the decision lower on 30 of the 32 seeds on which it "
        "changes, median -0.1 (95 % interval -0.12 to -0.08)",
        "flow to device": "21 seeds left a, 0 came to it (p 1e-05); 21 seeds left b, 0 came to it"
        " (p 1e-05); 21 seeds left c, 0 came to it (p 1e-05); 1 more",
        "cut off on device": "1.1% of the original's values of out lie above 6, where the range "
        "ends, those of 42 of its 1,404 positions on most seeds",
    }


def moved(
    second: str, what: Literal["outputs", "classes"], head: str, *pairs: tuple[str, str]
) -> OtherOrder:
    return OtherOrder(
        first="original", second=second, what=what, head=head, moved=pairs, before=0.2, after=1.0,
        seeds=40,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (
            moved("device", "classes", "left", *[("3", "4")] * 8),
            "the device's classes of left are the original's in another order: "
            + ", ".join(["(3 → 4)"] * 6)
            + " and 2 more; agreement as numbered 20%, mapped 100%",
        ),
        (
            moved("twin", "outputs", "", ("b", "a")),
            "the compressed model's output a is the original's b; agreement as named 20%, with "
            "that 100%",
        ),
    ],
    ids=["another order", "one output read alone"],
)
def test_another_order_is_a_warning_and_no_line(order: OtherOrder, said: str) -> None:
    found = SystematicDifferences(
        first=Arm.ORIGINAL, second=Arm.DEVICE, orders=(order,), flows=(), shifts=(), clipped=()
    )
    assert not systematic_lines(found)
    assert not systematic_lines(None)
    assert str(order) == said


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
        "inputs": 40, "deviating": 2, "by_tie": 2, "tied": 3, "rate": 0.05, "low": 0.0,
        "high": 0.2, "harm": harm, "harm_by_tie": harm, "labelled": 0, "right": None,
    }  # fmt: skip
    lines = dict(unmutated_lines(run_document(unmutated={"seeds": figures})))
    expected = f"do not count for the exit code: 3 of 40 seeds tie, and {said}"
    assert lines["seeds by a tie"] == expected


@pytest.fixture
def document(document: Document) -> Document:
    document["pair"] |= {"original": "/home/someone/a.onnx", "compressed": "models/b.tflite"}
    return document


def test_each_arm_and_each_device_is_named(document: Document) -> None:
    document["devices"].append(deepcopy(document["devices"][0]) | {"name": "another"})
    document["devices"][1]["provenance"] |= {
        "soc": "BCM2711", "os": "Debian 12", "threads": 4, "delegated_nodes": 3, "total_nodes": 11,
    }  # fmt: skip
    document["ensemble"] = ["xnnpack", "reference"]
    original, twin, first, second = arm_lines(from_json(document))
    assert original[0] == "original"
    assert original[1].startswith("a.onnx; host: laboratory, Linux")
    assert twin[0] == "twin"
    assert twin[1].startswith("b.tflite; host: laboratory, Linux; ")
    assert twin[1].endswith(f"numpy {np.__version__}, xnnpack kernels, also reference")
    assert first[0] == "device 1"
    assert f"; {document['devices'][0]['name']}: laboratory; " in first[1]
    assert second[0] == "device 2"
    assert "; another: BCM2711, laboratory, Debian 12; " in second[1]
    assert second[1].endswith("builtin kernels, 3 of 11 nodes delegated, 4 threads")


def test_one_of_a_kind_is_not_called_several() -> None:
    """As in a first try of a single seed, on a device that delegates the model's one node."""
    totals = {
        "seeds": 1, "searched": 1, "findings": 1, "queries": 1, "device_queries": 1, "ties": 1,
        "duplicates": {"triggers": 2, "distinct": 1, "exact": 2, "near": 2, "distinct_seeds": 1},
    }  # fmt: skip
    document = run_document(totals=totals, findings=[{"seed_id": 0, "queries": 1}])
    nodes = {"delegated_nodes": 0, "total_nodes": 1, "external_nodes": 0}
    device = run_device("board", **nodes, delegate="gpu")
    said = markdown_page(run_page(replace(document, devices=(device,))))
    said += "\n".join(undelegated([device]))
    assert "1 of 1 seed led to an input" in said
    assert re.findall(r"\b1 (?:queries|seeds|mutants|nodes)\b", said) == []


def test_the_host_is_named_by_runs_that_know_it(document: Document) -> None:
    document["host"] = msgspec.to_builtins(describe_host("a.tflite"))
    document["host"] |= {"machine": "x86_64", "soc": "EPYC", "os": "Debian 12"}
    runtime = f"{document['host']['runtime']} {document['host']['runtime_version']}"
    original, twin, _ = arm_lines(from_json(document))
    where = "host: EPYC, x86_64, Debian 12"
    assert original[1].endswith(f"; {where}; {runtime}")
    assert f"; {where}; {runtime}, " in twin[1]
    assert twin[1].endswith(" kernels")


def test_a_run_without_an_original_has_none(document: Document) -> None:
    document["pair"]["original"] = None
    document["totals"]["host_evaluations"].pop("original")
    assert [arm for arm, _ in arm_lines(from_json(document))] == ["twin", "device"]


def test_details_are_names_and_texts() -> None:
    known = {
        "pair": {"original": "/home/someone/a.onnx", "seeds": "/data/seeds.npz"},
        "seeds": 1200, "rng_seed": 123456, "goal": {"ties": False, "min_strength": 0.05},
        "std": [0.5, 1.0], "limit": None, "soc": "",
    }  # fmt: skip
    assert details(known) == (
        ("pair original", "a.onnx"),
        ("pair seeds", "seeds.npz"),
        ("seeds", "1,200"),
        ("rng seed", "123456"),
        ("goal ties", "no"),
        ("goal min strength", "0.05"),
        ("std", "0.5, 1"),
    )


def test_a_line_names_what_was_folded_and_what_was_proven() -> None:
    folded = {
        "operators": ["SHAPE", "PACK"], "sha256": 64 * "a", "equal_under": ["xnnpack", "builtin"],
        "inputs": 1,
    }  # fmt: skip
    assert folded_line(run_pair(folded_shapes=folded)) == (
        "shapes folded: SHAPE, PACK as constants; outputs equal to the file's own on 1 seed under"
        " the host's xnnpack, builtin kernels"
    )
    assert "on 16 seeds" in folded_line(run_pair(folded_shapes={**folded, "inputs": 16}))
    assert folded_line(run_pair()) == ""


NEAR = run_document(
    nearness={"db": [], "linf": [], "area": 0.0},
    findings=[{"distortion": {"l2": 9.0, "linf": 3.0}, "nearness_db": 30.0}],
)


@pytest.mark.slow
def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    names = ("_hidden", "$x^2$", r"$\broken{$", "plain")
    draw_nearness(dict.fromkeys(names, NEAR), tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_bytes()
    words = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314 - our own file
    for name in names:
        assert name in words


def test_lines_of_a_figure_differ_also_beyond_the_colours() -> None:
    styles = [line_style(number) for number in range(40)]
    assert not [style for at, style in enumerate(styles) if style in styles[:at]]
