"""CMode, CShape and NaN."""

from __future__ import annotations

import pytest

from drafting import check_sound, mutating, relu, relu_chain, taken
from edgeflare.conform.drafts.cells import cell_parameters
from edgeflare.conform.drafts.coverage import node_buckets
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode
from edgeflare.conform.drafts.layer_mutations import changed_modes, changed_shapes, special_input
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.drafts.uniform_drawing import drawn_node


@pytest.mark.parametrize("operator", ["ADD", "MEAN"])
@pytest.mark.parametrize("seed", range(5))
def test_modes_change_and_shapes_stay(operator: str, seed: int) -> None:
    draft = Draft((_drawn(operator, "int8", seed),))
    mutant = changed_modes(draft, mutating(seed))
    assert mutant is not None
    check_sound(mutant)
    shapes = [one.name for one in cell_parameters((operator, "int8")) if one.kind == "shape"]
    for name in shapes:
        assert mutant.nodes[0].configuration[name] == draft.nodes[0].configuration[name]


def test_a_mode_is_one_that_was_not_invoked_before() -> None:
    for seed in range(10):
        context = mutating(seed)
        draft = Draft((_drawn("MEAN", "float32", seed),))
        context.coverage.add(draft, taken(draft))
        mutant = changed_modes(draft, context)
        assert mutant is not None
        new = set(node_buckets(mutant.nodes[0])) - set(node_buckets(draft.nodes[0]))
        assert {bucket[2] for bucket in new} == {"keep_dims"}


def test_what_follows_a_changed_shape_follows_it() -> None:
    changed = 0
    for seed in range(10):
        draft = relu_chain([(2, 3)] * 3)
        mutant = changed_shapes(draft, mutating(seed))
        if mutant is not None:
            check_sound(mutant)
            shapes = {node.configuration["shape"] for node in mutant.nodes}
            # Fed layers have the shape of what feeds them, so only the first one's can change.
            assert len(shapes) == 1
            assert shapes != {(2, 3)}
            changed += 1
    assert changed


def test_an_operator_without_modes_has_no_mutant() -> None:
    assert changed_modes(relu_chain([(2, 3)]), mutating(0)) is None


def test_a_layer_is_given_a_tensor_in_which_nan_can_be() -> None:
    draft = relu_chain([(2, 3)] * 3)
    for seed in range(5):
        mutant = special_input(draft, mutating(seed))
        assert mutant is not None
        check_sound(mutant)
        assert sum(node.sources == (FRESH,) for node in mutant.nodes) == 2
    assert special_input(Draft((relu((2, 3)),)), mutating(0)) is None


def test_a_quantized_layer_cannot_be_given_nan() -> None:
    one = _drawn("RESHAPE", "int8", 0)
    value = NodeGraphs().result(one)
    assert value.quantization is not None
    configuration = {**one.configuration, "shape": value.shape}
    other = DraftNode("RESHAPE", "int8", configuration, 0, (0,))
    assert special_input(Draft((one, other)), mutating(0)) is None


def _drawn(operator: str, type_: str, seed: int) -> DraftNode:
    context = mutating(seed)
    node = drawn_node((operator, type_), context.coverage, context.graphs, context.rng)
    assert node is not None
    return node
