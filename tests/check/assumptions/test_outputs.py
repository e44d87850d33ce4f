"""Which task the outputs of a model are assumed to be for."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from edgeflare.check.assumptions.assumption import Assumption
from edgeflare.check.assumptions.input_source import GivenInputs
from edgeflare.check.assumptions.outputs import assumed_classes, assumed_outputs
from edgeflare.models.tflite_graph import Graph
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
        ([((1, 1), "LOGISTIC")], {"name": "threshold", "threshold": 0.5}, "a probability"),
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


NAMES = ("shirt", "coat", "bag")


def inputs(folder: Path, *folders: str) -> GivenInputs:
    for name in folders:
        (folder / name).mkdir()
        (folder / name / "one.png").touch()
    return GivenInputs.at(folder)


def said(found: Assumption) -> str:
    return "; ".join(found.notes)


def test_a_model_names_its_own_classes(tmp_path: Path) -> None:
    packed = io.BytesIO(b"a model")
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("labels.txt", "shirt\ncoat\nbag\n")
    found = assumed_classes(packed.getvalue(), inputs(tmp_path, "Coat", "bag", "hat"), 3)
    assert found.settings.classes == NAMES
    assert "labels.txt in the model: shirt, coat, bag" in said(found)
    assert "those in hat have none" in said(found)


def test_names_that_are_too_many_leave_room_for_others(tmp_path: Path) -> None:
    packed = io.BytesIO(b"a model")
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("labels.txt", "background\nshirt\ncoat\nbag\n")
    (tmp_path / "labels.txt").write_text("shirt\ncoat\nbag\n")
    found = assumed_classes(packed.getvalue(), inputs(tmp_path, "coat"), 3)
    assert found.settings.classes == NAMES


def test_a_damaged_archive_behind_a_model_names_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    packed = io.BytesIO(b"a model")
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.txt", "shirt\ncoat\nbag\n" * 9)
    content = packed.getvalue()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x15
        assert assumed_classes(bytes(damaged), inputs(tmp_path), 3).settings.classes is None


@pytest.mark.parametrize("beside", [False, True])
def test_names_may_lie_with_the_inputs(beside: bool, tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    given = inputs(folder, "coat")
    (tmp_path if beside else folder).joinpath("labels.txt").write_text("shirt\ncoat\nbag\n\n")
    assert assumed_classes(b"", given, 3).settings.classes == NAMES
    other = assumed_classes(b"", given, 4)
    assert other.settings.classes is None
    assert "has 3 names for 4 scores, so it is not used" in said(other)


def test_names_in_another_encoding_are_not_used(tmp_path: Path) -> None:
    names = "Hemd\nMäntel\nTasche\n"
    for encoding in ("latin-1", "utf-16"):
        (tmp_path / "labels.txt").write_bytes(names.encode(encoding))
        found = assumed_classes(b"", GivenInputs.at(tmp_path), 3)
        assert found.settings.classes is None
        assert "labels.txt is no text in UTF-8: write it so" in said(found)
    (tmp_path / "labels.txt").write_bytes(names.encode("utf-8-sig"))
    found = assumed_classes(b"", GivenInputs.at(tmp_path), 3)
    assert found.settings.classes == ("Hemd", "Mäntel", "Tasche")


def test_one_sub_folder_for_each_score_is_taken_by_the_alphabet(tmp_path: Path) -> None:
    found = assumed_classes(b"", inputs(tmp_path, *NAMES), 3)
    assert found.settings.classes == ("bag", "coat", "shirt")
    assert "alphabetical order" in said(found)


def test_fewer_sub_folders_than_scores_are_no_labels_without_names(tmp_path: Path) -> None:
    found = assumed_classes(b"", inputs(tmp_path, *NAMES), 10)
    assert found.settings.classes is None
    assert f"write their names into {tmp_path / 'labels.txt'}" in said(found)


def test_numbers_are_labels(tmp_path: Path) -> None:
    found = assumed_classes(b"", inputs(tmp_path, "0", "7"), 10)
    assert found.settings.classes is None
    assert said(found) == "the inputs have the labels of their sub-folders"
