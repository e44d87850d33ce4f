"""Tensors that get steps of their own, where an operator tied them to wider ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.quantized_range import QuantizedRange, least_error_range, range_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import captured
from edgeflare.repair.methods.rewrites import OwnSteps, give_own_steps
from edgeflare.repair.repair_methods import candidate_plans
from edgeflare.repair.repair_request import DEFAULT_REQUEST
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import judged, outputs, require_progress, untold
from operator_chain import ChainStep, write_tflite
from tampering import InterpreterProbe

SHAPE = (1, 8, 8, 2)
WIDE = 40.0
"""How much wider than the one branch the other one is that it is joined with."""


def drawn_images(count: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(size=(count, *SHAPE[1:])).astype(np.float32)


def steps() -> list[ChainStep]:
    """A narrow branch that is joined with a wide one and read beside it, and a pool of all."""
    rng = np.random.default_rng(4)

    def convolution(name: str, source: str, filters: int, given: int, width: float) -> ChainStep:
        weights = (rng.normal(size=(filters, 1, 1, given)) * width).astype(np.float32)
        bias = (rng.normal(size=filters) * width).astype(np.float32)
        return ChainStep(name, "CONV_2D", (source,), (1, 8, 8, filters), weights, bias)

    dense = rng.normal(size=(5, 4)).astype(np.float32)
    return [
        convolution("narrow", "image", 3, 2, 1.0),
        convolution("wide", "image", 3, 2, WIDE),
        ChainStep("joined", "CONCATENATION", ("narrow", "wide"), (1, 8, 8, 6)),
        convolution("of both", "joined", 4, 6, 1 / WIDE),
        convolution("of narrow", "narrow", 4, 3, 1.0),
        ChainStep("sum", "ADD", ("of both", "of narrow"), (1, 8, 8, 4)),
        ChainStep("pooled", "AVERAGE_POOL_2D", ("sum",), (1, 1, 1, 4), stride=8),
        ChainStep("dense", "FULLY_CONNECTED", ("pooled",), (1, 5), dense, np.zeros(5, np.float32)),
        ChainStep("softmax", "SOFTMAX", ("dense",), (1, 5)),
    ]


@cache
def network() -> QuantizedNetwork:
    """The network in int8, by the values of the images that it is fitted with."""
    chain, images = steps(), drawn_images(40, 0)
    original = write_tflite(chain, SHAPE)
    probe = InterpreterProbe(original, "builtin", capture=True)
    seen = [probe.run([one[None]]) for one in images]
    ranges = {
        step.name: (min(0.0, *(row[at].min() for row in seen)), max(row[at].max() for row in seen))
        for at, step in enumerate(chain)
    }
    tied: dict[str, Any] = {"narrow": ranges["joined"], "wide": ranges["joined"]}
    tied |= {"pooled": ranges["sum"], "image": (0.0, 1.0), "softmax": (0.0, 255 / 256)}
    content = write_tflite(chain, SHAPE, ranges | tied)
    return QuantizedNetwork(content, original, raw(images), images)


def raw(images: NDArray[np.float32]) -> NDArray[np.int8]:
    return (np.rint(images * 255) - 128).astype(np.int8)


@cache
def rewritten() -> OwnSteps:
    return give_own_steps(network(), untold)


def test_a_pool_of_all_and_a_join_are_rewritten() -> None:
    before, after = Graph(network().content), Graph(rewritten().content)
    assert [(one.by, one.tensor) for one in rewritten().rewrites] == [
        ("QUANTIZE", "narrow"),
        ("MEAN", "pooled"),
    ]
    assert all(one.step_after < 0.5 * one.step_before for one in rewritten().rewrites)
    names = [one.name for one in before.operators]
    names[names.index("AVERAGE_POOL_2D")] = "MEAN"
    names.insert(names.index("CONCATENATION"), "QUANTIZE")
    assert [one.name for one in after.operators] == names
    join = next(one for one in after.operators if one.name == "CONCATENATION")
    assert len({after.tensors[one].scales for one in (*join.inputs, *join.outputs)}) == 1


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_probabilities_come_nearer_to_the_original_on_every_kernel_set(kernels: Kernels) -> None:
    images = drawn_images(60, 1)
    wanted = outputs(network().original, images)

    def error(content: bytes) -> float:
        made = (outputs(content, raw(images), kernels).astype(np.float64) + 128) / 256
        return float(np.sqrt(((made - wanted) ** 2).mean()))

    assert error(rewritten().content) < 0.5 * error(network().content)


def test_candidates_are_the_rewrites_alone_and_before_all_that_fits_in_place() -> None:
    request = structs.replace(DEFAULT_REQUEST, method="rewrites")
    (plan,) = candidate_plans(request, network())
    made = plan.make(untold)
    assert [one.name for one in made] == [
        "rewrites",
        "rewrites+ranges",
        "rewrites+ranges+rounding",
        "rewrites+equalization+ranges+rounding",
    ]
    assert {one.details.rewrites.rewrites for one in made if one.details.rewrites} == {
        rewritten().rewrites
    }
    assert len({one.content for one in made}) == len(made)


def test_it_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    give_own_steps(network(), lambda done, of: told.append((done, of)))
    require_progress(told)


def test_a_pool_whose_means_span_as_much_as_its_values_is_left() -> None:
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    plain = np.broadcast_to(corners[:, None, None], (4, *SHAPE[1:])).copy()
    found = give_own_steps(replace(network(), rows=raw(plain), original_rows=plain), untold)
    assert [one.by for one in found.rewrites] == ["QUANTIZE"]


def test_whole_numbers_that_stand_for_themselves_are_left() -> None:
    writer = Writer(network().content)
    for name in ("narrow", "pooled"):
        at = next(one.index for one in network().graph.tensors if one.name == name)
        writer.graph.tensors[at].quantization = None
    with pytest.raises(UserError, match="no operator of the model forces a step"):
        give_own_steps(replace(network(), content=writer.content()), untold)


def test_what_forces_no_step_is_refused() -> None:
    """Neither a mean that has its own steps already, nor a join of what nothing else reads."""
    with pytest.raises(UserError, match="no operator of the model forces a step"):
        give_own_steps(judged("resnet").network, untold)


def test_what_only_a_mean_with_the_same_steps_sees_is_clipped_for_that_mean() -> None:
    """A step of the mean counts in full, and what is clipped a sixty-fourth."""
    known, graph = network(), network().original_graph
    (made,) = [one.outputs[0] for one in graph.layers if one.name == "ADD"]
    values = captured(known.original, known.original_rows, [made])[made].astype(np.float64)
    (before,) = [one for one in known.graph.layers if one.name == "ADD"]
    range_before = range_of(known.graph.tensors[before.outputs[0]])
    assert range_before is not None
    fitted = Graph(fit_ranges(known, untold)).tensors[before.outputs[0]]
    means = values.reshape(len(values), -1, 4).mean(axis=1)

    def error(one: QuantizedRange) -> float:
        return float(np.square(one.nearest(one.nearest(values).mean(axis=(1, 2))) - means).sum())

    alone = least_error_range(values, range_before)
    found = range_of(fitted)
    assert found is not None
    assert found.step < alone.step
    assert error(found) < 0.8 * error(alone)
