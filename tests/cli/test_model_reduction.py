"""`edgeflare explain --reduce`: operators that are right alone and wrong together are named."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.cli.model_reduction import ModelReduction
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import GraphNode, GraphValue, OperatorGraph
from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.explanation import Explanation
from edgeflare.diagnose.layer_difference import KernelOnset, LayerName, layer_difference
from edgeflare.diagnose.verdict import Verdict
from edgeflare.trust import decided_by_user
from explained_findings import apart, explanation

TENSOR = GraphValue("float32", (2, 3))


def _views() -> OperatorGraph:
    """Return a view of a view that SUB writes over, while the first view is read later."""
    axis = GraphValue("int32", (1,)).constant(np.zeros(1, np.int32))
    ones = TENSOR.constant(np.ones(TENSOR.shape, np.float32))
    squeeze = {"squeezeDims": (0,)}
    nodes = (
        GraphNode("ABS", (0,), (1,)),
        GraphNode("EXPAND_DIMS", (1, 7), (2,)),
        GraphNode("SQUEEZE", (2,), (3,), squeeze),
        GraphNode("SUB", (3, 8), (4,)),
        GraphNode("SQUEEZE", (2,), (5,), squeeze),
        GraphNode("NEG", (4,), (6,)),
        GraphNode("ABS", (5,), (9,)),
    )
    values = (TENSOR, TENSOR, GraphValue("float32", (1, 2, 3)), *[TENSOR] * 4, axis, ones, TENSOR)
    return OperatorGraph(values, nodes, (0,), (9, 6))


def _found(place: int) -> Explanation:
    """Return what is known of a finding where each layer is right by itself."""
    equal, parted = apart(None, 0.0), apart(None, 1.0)
    layer = LayerName(place, "ABS", "")
    onset = KernelOnset(
        "exposure", layer, layers=(layer_difference(layer, parted, equal, hidden=False),)
    )
    given = np.random.default_rng(0).uniform(-4, 4, TENSOR.shape).astype(np.float32)
    return explanation(Verdict("kernel", "so it is", None), onset, given=given)


@pytest.mark.slow
def test_what_is_wrong_together_is_named_and_is_a_known_issue() -> None:
    with connect(find_profile("emulated-builtin", decided_by_user(False))) as device:
        reduction = ModelReduction(graph_file(_views()), device, 60.0)
        told = reduction.told(_found(6))
        again = reduction.told(_found(6))
    together = told.kernel_onset.together
    assert together is not None
    assert "a view of a view" in together.arrangement
    assert "SUB" in together.operators
    assert "NEG" not in together.operators
    assert "LiteRT#8889" in told.next_step
    assert again.kernel_onset == told.kernel_onset
