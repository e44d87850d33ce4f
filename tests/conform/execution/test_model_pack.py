"""What a runtime says of a pack's nodes and tensors is traced to the pack's models."""

from __future__ import annotations

import pytest

from edgeflare.conform.execution.kernel_arm import RunFailure
from edgeflare.conform.execution.model_pack import ModelPack, is_misshapen
from posed_models import addition, mixed_models, of_constants, posed, unary

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
    assert ModelPack(MODELS).suspect(RunFailure("error", detail)) == place


def test_what_a_refusal_names_beyond_doubt_is_told_as_of_that_model_alone() -> None:
    pack = ModelPack(MODELS)
    said = RunFailure("refused", "TFLite Micro refuses NEG, node 3: Type INT32 is not supported.")
    alone = "TFLite Micro refuses NEG, node 0: Type INT32 is not supported."
    assert pack.refusals(said) == {3: RunFailure("refused", alone)}
    lacking = RunFailure("refused", "TFLite Micro has no operator NEG")
    assert pack.refusals(lacking) == {3: lacking}
    assert pack.refusals(RunFailure("error", said.detail)) == {}
    assert pack.refusals(RunFailure("refused", "refuses it: no reason given")) == {}


def test_an_accelerator_names_operators_of_which_it_refuses_some() -> None:
    pack = ModelPack([*MODELS, posed(unary("NEG", (1, 5)))])
    detail = (
        "the GPU accelerator of some runtime takes 2 of 4 nodes, and not ABS: Operation is not"
        ' supported.; NEG: Tensor "t0" has bad input dims size: 5: set fallback = true in the'
        " device's profile to run the others on the CPU"
    )
    assert pack.suspects(RunFailure("refused", detail)) == [(1, 2), (3, 4)]
    assert pack.refusals(RunFailure("refused", detail)) == {}
    assert pack.suspects(RunFailure("crash", detail)) == []
    assert pack.suspects(RunFailure("refused", "refuses it: no reason given")) == []


def test_an_error_says_that_a_result_has_another_shape() -> None:
    assert is_misshapen("output t2 has shape (3,), declared (4,)")
    assert not is_misshapen("tensor t3 has shape (1073741824, 7), which no memory holds")
    assert not is_misshapen("no reason.Node number 3 (NEG) failed to invoke.")


def test_equal_models_make_an_equal_file() -> None:
    one, other = (ModelPack(mixed_models(9)).content for _ in range(2))
    assert one == other != ModelPack(mixed_models(9, seed=1)).content
