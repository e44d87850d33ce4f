"""Tests of edgeflare.conform.record.finding_files: a finding's model and arrays, as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from conformed_runs import addition
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure
from edgeflare.conform.graphs.operator_graph import Values
from edgeflare.conform.record.finding_files import load_finding, store_finding
from edgeflare.conform.rounds.posed_draft import posed
from edgeflare.conform.specification.exact_answer import steps
from edgeflare.run.run_directory import RunDirectory


def test_all_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    model = posed(Draft((addition(),)), {}).whole
    outputs: tuple[Values, ...] = (
        np.arange(4, dtype=np.uint8),
        np.array([[np.nan, -0.0]], np.float32),
    )
    answers = {
        "device": ModelAnswer(outputs),
        "xnnpack": ModelAnswer(failure=RunFailure("crash", "SIGSEGV")),
    }
    directory = RunDirectory(tmp_path)
    name = store_finding(directory, 12, model, answers, [steps(np.linspace(0, 1, 4))])
    assert name == "findings/000012.tflite"
    back = load_finding(directory, name)
    assert back.model == (tmp_path / name).read_bytes()
    assert [one.tobytes() for one in back.operands] == [one.tobytes() for one in model.operands]
    for one, other in zip(back.answers("device"), outputs, strict=True):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert back.answers("xnnpack") == ()
    assert back.answers("exact")[0].tolist() == np.linspace(0, 1, 4).tolist()


def test_the_same_finding_is_the_same_bytes(tmp_path: Path) -> None:
    model = posed(Draft((addition(),)), {}).whole
    for folder in ("one", "other"):
        store_finding(RunDirectory(tmp_path / folder), 1, model, {}, ())
    for suffix in ("tflite", "npz"):
        one, other = (
            tmp_path / folder / "findings" / f"000001.{suffix}" for folder in ("one", "other")
        )
        assert one.read_bytes() == other.read_bytes()
