"""Which task the outputs of a model are assumed to be for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.models.tflite_graph import Graph
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.outputs import assumed_outputs
from edgeflare.tasks.task_registry import find_task
from graph_writer import GraphWriter

PICTURE = (128, 128)
MAKERS = {"SOFTMAX": schema.SoftmaxOptionsT(beta=1.0)}

Output = tuple[tuple[int, ...], str]
"""Its shape, and the operator that makes it."""


def assumed(*outputs: Output, **known: Any) -> Assumption:
    writer = GraphWriter()
    x = writer.tensor("x", (1, *PICTURE, 3), "FLOAT32")
    axis = writer.constant("axis", np.array([3], np.int32))
    made: list[int] = []
    for at, (shape, maker) in enumerate(outputs):
        dtype = "INT64" if maker == "ARG_MAX" else "FLOAT32"
        made.append(writer.tensor(f"output_{at}", shape, dtype))
        also = [axis] if maker == "ARG_MAX" else []
        writer.operator(maker, [x, *also], [made[-1]], MAKERS.get(maker))
    graph = Graph(writer.content([x], made))
    return assumed_outputs(graph, known.get("state", {}), PICTURE, known.get("arrays", {}))


@pytest.mark.parametrize(
    ("outputs", "task", "said"),
    [
        ([((1, 10), "SOFTMAX")], None, "a score for each of 10 classes"),
        (
            [((1, 1), "LOGISTIC")],
            {"name": "threshold", "threshold": 0.5, "spread": 0.1},
            "a probability",
        ),
        ([((1, 1), "NEG")], {"name": "regression", "distance": "l2"}, "is a number"),
        ([((1, 64, 64, 1), "LOGISTIC")], {"name": "segmentation"}, "a mean IoU of .9"),
        ([((1, 128, 128), "ARG_MAX")], {"name": "segmentation"}, "a class for each pixel"),
        ([((1, 128, 128, 1), "NEG")], {"name": "regression", "distance": "l2"}, "nothing tells"),
        ([((1, 128), "L2_NORMALIZATION")], {"name": "regression", "distance": "l2"}, "nothing"),
        (
            [((1, 1), "NEG"), ((1, 2), "NEG")],
            {"name": "classification", "output": "1x2"},
            "the other output is compared as numbers alone",
        ),
        (
            [((1, 10), "SOFTMAX"), ((1, 3), "SOFTMAX")],
            {"name": "classification", "heads": ["1x10", "1x3"]},
            "each a score",
        ),
        (
            [((1, 896, 1), "NEG"), ((1, 896, 16), "NEG")],
            {
                "name": "detection",
                "cells": [[16, 2], [8, 6]],
                "size": 128.0,
                "scores": "logits",
                "outputs": ["1x896x16", "1x896x1"],
            },
            "as many boxes as MediaPipe's detectors",
        ),
        (
            [((1, 1917, 4), "NEG"), ((1, 1917, 91), "LOGISTIC")],
            {"name": "regression", "distance": "l2", "output": "1x1917x91"},
            "boxes need the anchors, which are not in the file",
        ),
    ],
)
def test_shapes_and_operators_tell_the_task(
    outputs: list[Output], task: dict[str, Any] | None, said: str
) -> None:
    found = assumed(*outputs)
    assert found.settings.task == task
    assert said in " ".join(found.notes)
    if task is not None:
        name, *_ = task.values()
        more = {"tolerance": 1.0} if name == "regression" else {}
        find_task(name, {key: one for key, one in task.items() if key != "name"} | more)


def test_targets_tell_values_from_scores() -> None:
    arrays = {"targets": np.zeros((5, 10), np.float32)}
    found = assumed(((1, 10), "NEG"), arrays=arrays).settings.task
    assert found == {"name": "regression", "distance": "l2"}
    for none in (np.zeros((0, 10), np.float32), np.array(3.0)):
        assert assumed(((1, 10), "NEG"), arrays={"targets": none}).settings.task is None


def test_a_state_is_no_output() -> None:
    found = assumed(((1, 10), "SOFTMAX"), ((1, 64), "NEG"), state={"h": "output_1"})
    assert found.settings.task is None
