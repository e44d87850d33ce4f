"""The tables of a matrix: which kernel sets deviate, are wrong, refuse and stand alone."""

from __future__ import annotations

import io
from typing import Any, cast

import pytest
from rich.console import Console

from conformed_runs import HALF_TRIED
from edgeflare.core.goal import Find, Goal
from edgeflare.devices.profile import Profile
from edgeflare.matrix.agreement import InputAgreement
from edgeflare.matrix.conform_matrix import conform_matrix
from edgeflare.matrix.conform_matrix_table import conform_matrix_markdown
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare.matrix.matrix import KernelSetFigures, Matrix
from edgeflare.matrix.matrix_table import print_matrix, sentences, to_markdown
from edgeflare.matrix.stored_inputs import StoredTrigger
from edgeflare_protos.kernel_sets import Kernels

TOLD = {"runtime": "litert", "runtime_version": "2.3", "delegated_nodes": 0, "total_nodes": 9}
REFUSAL = "the GPU accelerator takes 3 of 9 nodes, and not SHAPE: add --fold-shapes"


def row(kernels: str, deviating: int, alone: int = 0) -> KernelSetFigures:
    device = f"emulated-{kernels}"
    return KernelSetFigures(kernels, device, "", TOLD, 4, 0, deviating, deviating, alone)


def matrix(*, ties: bool = False) -> Matrix:
    refusing = KernelSetFigures("gpu", "emulated-gpu", REFUSAL)
    rows = (row("xnnpack", 0), row("builtin", 1), row("micro", 2, 1), refusing)
    triggers = tuple(
        StoredTrigger("micro", f"findings/{at}.png", at, "00", None)  # type: ignore[arg-type]
        for at in (0, 1)
    )
    apart = (("xnnpack", "micro"), ("builtin", "micro"))
    agreement = (
        InputAgreement(("micro",), "micro", apart),
        InputAgreement(("builtin", "micro"), None, (("xnnpack", "micro"),)),
    )
    return Matrix("search", "a|pair", Goal(Find.KERNEL, ties), rows, triggers, agreement)


def test_it_says_who_stands_alone_who_agrees_and_who_refuses() -> None:
    assert sentences(matrix()) == [
        "micro stands alone on 1 of 2 inputs: all others decide alike there",
        "xnnpack and builtin decide alike on all of 2 inputs",
        f"gpu refused: {REFUSAL}",
    ]


@pytest.mark.parametrize("ties", [False, True])
def test_on_a_terminal_a_refusal_is_one_line_and_ties_are_told(ties: bool) -> None:
    console = Console(file=io.StringIO(), width=80)
    print_matrix(console, matrix(ties=ties))
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert f"• gpu refused: {REFUSAL}\n" in said
    assert ("ties are no deviations" in " ".join(said.split())) == (not ties)


def test_markdown_has_what_strangers_named_escaped() -> None:
    said = to_markdown(matrix())
    assert r"# a\|pair" in said
    assert "| litert 2.3 | micro | 0/4 | 2/4 | 2/2 | 1 |" in said


def finding(operator: str, verdict: str, worst: float | None, **others: Any) -> dict[str, Any]:
    said = {"symptom": "wrong values", "unit": "steps", "counted": True, "known": None}
    return {
        "operator": operator,
        "type": "int8",
        "verdict": verdict,
        "worst": worst,
        **said,
        **others,
    }


def conformed(
    kernels: str,
    findings: list[dict[str, Any]],
    refused: tuple[str, ...] = (),
    model: dict[str, Any] | None = None,
) -> KernelSetRun[dict[str, Any]]:
    device = {"name": f"emulated-{kernels}", "runtime": "litert", "runtime_version": "2.3"}
    document = {
        "device": device,
        "models": 30,
        "cells": [{"operator": one, "type": "int8"} for one in ("ADD", "EXP", "SUM")],
        "refused": [{"operator": one, "type": "int8", "always": True} for one in refused],
        "findings": findings,
        "model": model,
    }
    return KernelSetRun(profile(kernels), document)


def profile(kernels: str) -> Profile:
    name = f"emulated-{kernels}"
    return Profile(name=name, transport="emulated", kernels=cast("Kernels", kernels))


def test_the_one_that_alone_is_wrong_is_named_and_those_that_refuse_do_not_vouch() -> None:
    matrix = conform_matrix(
        [
            conformed("xnnpack", [finding("EXP", "shared", 3.0, counted=False)]),
            conformed("builtin", [finding("SUM", "host", 9.0, counted=False)]),
            conformed(
                "gpu", [finding("ADD", "device", 2.0), finding("ADD", "device", 40.0)], ("SUM",)
            ),
            conformed("micro", [finding("SUM", "crash", None, symptom="crash")], ("EXP",)),
            KernelSetRun(profile("npu"), refused="there is no NPU"),
        ]
    )
    assert set(matrix.cells) == {("ADD", "int8"), ("EXP", "int8"), ("SUM", "int8")}
    add = matrix.cells["ADD", "int8"]
    assert (add["gpu"].state, add["gpu"].worst) == ("wrong", "40 steps")
    assert {one.state for name, one in add.items() if name != "gpu"} == {"right"}
    assert matrix.cells["SUM", "int8"]["gpu"].state == "refused"
    assert matrix.cells["SUM", "int8"]["micro"].worst == "crash"
    # Where the twin is as wrong, the device is wrong all the same.
    assert matrix.alone == {
        ("ADD", "int8"): "gpu",
        ("EXP", "int8"): "xnnpack",
        ("SUM", "int8"): "micro",
    }
    rows = {row.kernels: row for row in matrix.rows}
    assert (rows["gpu"].taken, rows["gpu"].refused, rows["gpu"].wrong) == (2, 1, 1)
    assert (rows["xnnpack"].new, rows["gpu"].new) == (0, 2)
    assert matrix.refused == {"npu": "there is no NPU"}
    assert "npu: there is no NPU" in conform_matrix_markdown(matrix)
    assert "| ADD int8 | · | · | 40 steps | · | gpu |" in conform_matrix_markdown(matrix)


def test_what_each_tried_of_the_users_model_comes_first() -> None:
    runs = [conformed("builtin", [], model=HALF_TRIED), conformed("xnnpack", [])]
    _, first, second, *_ = conform_matrix_markdown(conform_matrix(runs)).split("\n\n")
    assert first.startswith("builtin: 48 % of the arithmetic of kws.tflite was tried")
    assert "not tried: Mfcc × 2" in first
    assert second.startswith("| runtime")


def test_of_two_that_take_an_operator_neither_stands_alone() -> None:
    wrong = [finding("ADD", "device", 2.0)]
    two = [conformed("xnnpack", []), conformed("gpu", wrong), conformed("micro", [], ("ADD",))]
    assert conform_matrix(two).alone == {}
    assert conform_matrix([*two, conformed("builtin", wrong)]).alone == {}
