"""What an app gets that resets nothing, of a score that reads the features too."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from edgeflare.campaign.opened_pair import open_pair
from edgeflare.campaign.unreset_twin import answers_without_reset
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.models.pair import Pair
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface
from edgeflare.run.plan import Plan
from graph_writer import GraphWriter

STEP = 0.5
THRESHOLD = 0.02
SEEDS = 12


def write_fading(path: Path) -> Path:
    """Write y = x + 0.3 y before, of an int8 x."""
    graph = GraphWriter()
    given = graph.tensor("x", (1, 1, 3), "INT8", (STEP, 0))
    x, y = (graph.tensor(name, (1, 1, 3), "FLOAT32") for name in ("real", "y"))
    graph.operator("DEQUANTIZE", [given], [x], schema.DequantizeOptionsT(), 2)
    eye, zeros = np.eye(3, dtype=np.float32), np.zeros(3, np.float32)
    w = graph.tensor("w", (3, 3), "FLOAT32", data=eye)
    again = graph.tensor("again", (3, 3), "FLOAT32", data=eye * np.float32(0.3))
    bias, state = (
        graph.tensor("b", (3,), "FLOAT32", data=zeros),
        graph.tensor("h", (1, 3), "FLOAT32"),
    )
    graph.graph.tensors[state].isVariable = True
    options = schema.SequenceRNNOptionsT()
    graph.operator("UNIDIRECTIONAL_SEQUENCE_RNN", [x, w, again, bias, state], [y], options)
    return graph.save(path, [given], [y])


@pytest.mark.parametrize("against", ["features", "dequantized"])
def test_a_reconstruction_is_compared_with_what_the_other_arms_are_compared_with(
    against: str, tmp_path: Path
) -> None:
    path = write_fading(tmp_path / "fading.tflite")
    x = np.random.default_rng(3).uniform(-1, 1, (SEEDS, 1, 1, 3)).astype(np.float32)
    np.savez(tmp_path / "seeds.npz", x=x)
    told = {"threshold": THRESHOLD, "spread": 0.1, "score": "reconstruction", "against": against}
    read = PairInput("x", "array", {"lowest": -1.0, "highest": 1.0})
    interface = PairInterface((read,), task="threshold", task_settings=told)
    pair = Pair("fading", str(path), path, tmp_path / "seeds.npz", interface)
    model = Interpreter(str(path))
    model.allocate_tensors()
    (taken,), (made,) = model.get_input_details(), model.get_output_details()
    decided: dict[str, list[bool]] = {"with": [], "without": []}
    for name, decisions in decided.items():
        model.reset_all_variables()
        for one in x:
            if name == "with":
                model.reset_all_variables()
            raw = np.round(one / STEP).astype(np.int8)
            model.set_tensor(taken["index"], raw)
            model.invoke()
            subtracted = one if against == "features" else raw * STEP
            error = ((model.get_tensor(made["index"]) - subtracted) ** 2).mean()
            decisions.append(bool(error >= THRESHOLD))
    plan = Plan("boundary", Goal(), ("emulated-builtin",), ensemble=("builtin",))
    with ExitStack() as stack:
        opened = open_pair(pair, plan, [find_profile("emulated-builtin")], stack)
        found = answers_without_reset(opened)
    assert found is not None
    assert found.images == SEEDS
    assert found.changed == sum(map(bool.__ne__, *decided.values()))
    # Against the dequantized input an inference after a reset gives no error at all.
    assert any(decided["with"]) == (against == "features")
    assert 0 < found.changed < SEEDS
