"""Conformance runs side by side: who is wrong, who refuses, and who stands alone."""

from __future__ import annotations

from typing import Any, cast

from conformed_runs import HALF_TRIED
from edgeflare.devices.profile import Profile
from edgeflare.matrix.conform_matrix import conform_matrix
from edgeflare.matrix.conform_matrix_table import conform_matrix_markdown
from edgeflare.matrix.kernel_set_runs import KernelSetRun
from edgeflare_protos.kernel_sets import Kernels


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


def run(
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
            run("xnnpack", [finding("EXP", "shared", 3.0, counted=False)]),
            run("builtin", [finding("SUM", "host", 9.0, counted=False)]),
            run("gpu", [finding("ADD", "device", 2.0), finding("ADD", "device", 40.0)], ("SUM",)),
            run("micro", [finding("SUM", "crash", None, symptom="crash")], ("EXP",)),
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
    runs = [run("builtin", [], model=HALF_TRIED), run("xnnpack", [])]
    _, first, second, *_ = conform_matrix_markdown(conform_matrix(runs)).split("\n\n")
    assert first.startswith("builtin: 48 % of the arithmetic of kws.tflite was tried")
    assert "not tried: Mfcc × 2" in first
    assert second.startswith("| runtime")


def test_of_two_that_take_an_operator_neither_stands_alone() -> None:
    wrong = [finding("ADD", "device", 2.0)]
    two = [run("xnnpack", []), run("gpu", wrong), run("micro", [], ("ADD",))]
    assert conform_matrix(two).alone == {}
    assert conform_matrix([*two, run("builtin", wrong)]).alone == {}
