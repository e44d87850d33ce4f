"""Tests of edgeflare.repair.shifts.model_to_repair."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.tflite_writer import Writer
from edgeflare.repair.shifts.model_to_repair import (
    NOTE,
    earlier_repair,
    read_model_to_repair,
    require_probabilities,
)
from edgeflare.repair.shifts.shifts import Shifts, append
from edgeflare.tasks.classification import ClassDecoder

INPUT = Tensor("image", (1, 3), "float32")
CLASSES = 3


def network(*outputs: Tensor) -> bytes:
    """A model that gives its input as each of these outputs."""
    writer = Writer()
    image = writer.tensor(INPUT)
    ends = [writer.operator("QUANTIZE", [image], writer.tensor(output)) for output in outputs]
    writer.begin_and_end([image], ends)
    return writer.content()


@pytest.mark.parametrize(
    "output",
    [
        Tensor("scores", (1, CLASSES), "int8", 1 / 256, -128),
        Tensor("scores", (1, CLASSES), "uint8", 1 / 256, 0),
        Tensor("scores", (1, 1, 1, CLASSES), "float32"),
    ],
    ids=lambda output: output.dtype,
)
def test_a_model_that_can_be_repaired(output: Tensor) -> None:
    content = network(output)
    target = read_model_to_repair(content, "a.tflite")
    assert target.output == output
    assert target.inputs == (INPUT,)
    assert target.classes == CLASSES
    assert target.sha256 == hashlib.sha256(content).hexdigest()
    assert earlier_repair(content) is None


def test_several_outputs_are_refused() -> None:
    one, other = (Tensor(name, (1, CLASSES), "float32") for name in ("scores", "boxes"))
    with pytest.raises(UserError, match=r"a\.tflite has 2 outputs, but only models with one"):
        read_model_to_repair(network(one, other), "a.tflite")


def test_an_output_of_another_type_is_refused() -> None:
    output = Tensor("scores", (1, CLASSES), "int32")
    with pytest.raises(UserError, match="output 'scores' is int32, but a repairer takes int8"):
        read_model_to_repair(network(output), "a.tflite")


@pytest.mark.parametrize(
    "output",
    [
        Tensor("scores", (1, CLASSES), "float32"),
        Tensor("scores", (1, CLASSES), "int8", 0.1, 3),
    ],
    ids=lambda output: output.dtype,
)
def test_logits_are_refused_whatever_their_type_and_probabilities_are_not(output: Tensor) -> None:
    require_probabilities(ClassDecoder(output, "probabilities"), "a.tflite")
    with pytest.raises(UserError, match=r"convert it with a softmax as its last layer$"):
        require_probabilities(ClassDecoder(output, "logits"), "a.tflite")


def test_a_model_that_was_repaired_already_is_refused() -> None:
    content = network(Tensor("scores", (1, CLASSES), "float32"))
    target = read_model_to_repair(content, "a.tflite")
    again = append(content, Shifts(np.zeros((CLASSES, CLASSES), np.int8)), target, "a.tflite")
    with pytest.raises(UserError, match=r"repair the model that it was made from, a\.tflite$"):
        read_model_to_repair(again, "b.tflite")
    before = earlier_repair(again)
    assert before is not None
    assert (before.name, before.sha256) == ("a.tflite", target.sha256)


@pytest.mark.parametrize("note", [b"no JSON", b"[1]", b"{}", b'{"name": 1, "sha256": []}'])
def test_a_note_that_no_repair_wrote_says_nothing(note: bytes) -> None:
    writer = Writer(network(Tensor("scores", (1, CLASSES), "float32")))
    writer.note(NOTE, note)
    assert earlier_repair(writer.content()) is None


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UserError, match=r"a\.tflite"):
        read_model_to_repair(b"no model", "a.tflite")
