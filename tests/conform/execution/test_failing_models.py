"""What the failure of a pack says of its models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from edgeflare.conform.execution.failing_models import (
    is_misshapen,
    named_model,
    refusals,
    suspects,
)
from edgeflare.conform.execution.kernel_arm import PosedModel, RunFailure
from posed_models import addition, of_constants, posed, unary

MODELS = [posed(addition()), posed(unary("ABS")), posed(of_constants()), posed(unary("NEG"))]


@pytest.mark.parametrize(
    ("detail", "place"),
    [
        ("refuses it: Given shapes … Node number 0 (ADD) failed to prepare.", 0),
        ("no reason.Node number 3 (NEG) failed to invoke.", 3),
        ("Node number 3 (ABS) failed to invoke", None),  # of another graph
        ("Node number 4 (TfLiteXNNPackDelegate) failed to prepare", None),
        ("output t2 has shape (3,), declared (4,)", 0),
        ("output t3 has shape (3,), declared (4,)", 1),
        ("output t8 has shape (3,), declared (4,)", 3),
        ("tensor t3 has shape (1073741824, 7), which no memory holds", 1),
        ("output t9 has shape (3,), declared (4,)", None),
        ("some runtime 1.2 has no operator NEG version 1: convert the model", 3),
        ("some runtime 1.2 has no operator NEG version 2: convert the model", None),
        ("TFLite Micro refuses NEG, node 3: Type INT32 is not supported.", 3),
        ("TFLite Micro refuses NEG, node 1: Type INT32 is not supported.", None),
        ("TFLite Micro has no operator NEG", 3),
        ("SIGSEGV", None),
    ],
)
def test_the_model_is_found_that_a_failure_names(detail: str, place: int | None) -> None:
    assert named_model(MODELS, RunFailure("error", detail)) == place
    assert is_misshapen(detail) == detail.startswith("output")


def test_what_a_refusal_names_beyond_doubt_is_told_as_of_that_model_alone() -> None:
    said = RunFailure("refused", "TFLite Micro refuses NEG, node 3: Type INT32 is not supported.")
    alone = "TFLite Micro refuses NEG, node 0: Type INT32 is not supported."
    assert refusals(MODELS, said) == {3: RunFailure("refused", alone)}
    lacking = RunFailure("refused", "TFLite Micro has no operator NEG")
    assert refusals(MODELS, lacking) == {3: lacking}
    assert refusals(MODELS, RunFailure("error", said.detail)) == {}
    assert refusals(MODELS, RunFailure("refused", "refuses it: no reason given")) == {}


def _counted(*reasons: str, taken: int = 2, of: int = 4) -> str:
    """Return what is said where an accelerator takes some nodes, and not all."""
    told = "; ".join(reasons)
    return (
        f"the GPU accelerator of some runtime takes {taken} of {of} nodes, and not {told}: set"
        " fallback = true in the device's profile to run the others on the CPU"
    )


def test_an_accelerator_names_operators_of_which_it_refuses_some() -> None:
    models = [*MODELS, posed(unary("NEG", (1, 5)))]
    detail = _counted("ABS: Some shapes", 'NEG: Tensor "t0" has bad input dims size: 5')
    assert suspects(models, RunFailure("refused", detail)) == [(1, 2), (3, 4)]
    assert refusals(models, RunFailure("refused", detail)) == {}
    assert suspects(models, RunFailure("crash", detail)) == []
    assert suspects(models, RunFailure("refused", "refuses it: no reason given")) == []


def _of_version(model: PosedModel, version: int) -> PosedModel:
    (node,) = model.graph.nodes
    return replace(model, graph=replace(model.graph, nodes=(replace(node, version=version),)))


@pytest.mark.parametrize(
    ("reason", "alone"),
    [
        ("ABS: Operation is not supported.", {1: "ABS: Operation is not supported."}),
        ("NEG: Not supported op NEG", dict.fromkeys((3, 4), "NEG: Not supported op NEG")),
        ("NEG: Tensor type(INT64) is not supported. t8", {3: "t1"}),
        ("NEG: Tensor type(INT64) is not supported. t0", {}),  # the tensor of another operator
        ("NEG: Max version supported: 1. Requested version 2.", {4: "Requested version 2."}),
        ("ADD: src has no data", {0: "ADD: src has no data"}),  # the only one
        ("NEG: src has no data", {}),
    ],
)
def test_an_accelerators_reason_may_leave_no_doubt(reason: str, alone: dict[int, str]) -> None:
    models = [*MODELS[:2], posed(unary("EXP")), MODELS[3], _of_version(MODELS[3], 2)]
    said = refusals(models, RunFailure("refused", _counted(reason)))
    assert set(said) == set(alone)
    for at, words in alone.items():
        assert "takes 0 of 1 nodes, and not " in said[at].detail
        assert f"{words}: set fallback = true" in said[at].detail
