"""Lost classes: of how many inputs, and what else is lost."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.core.answer import Answer
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows
from edgeflare.release.class_losses import class_losses
from edgeflare.run.systematic.figures import ClassFlow
from edgeflare.tasks.classification import ClassDecoder, HeadsDecoder

HEADS = (Tensor("age", (1, 3), "float32"), Tensor("mood", (1, 4), "float32"))
ONE = ClassDecoder(HEADS[1:], 0, "logits")
BOTH = HeadsDecoder(tuple(ClassDecoder(HEADS, at, "logits") for at in (0, 1)))


def read(decoder: Decoder, *labels: list[int]) -> list[Answer]:
    """Return answers that give each input the labels, a list for each output."""
    scores = [
        np.eye(tensor.shape[-1], dtype=np.float32)[its]
        for tensor, its in zip(decoder.outputs, labels, strict=True)
    ]
    return list(decoder.read(RawBatch(pack_rows(decoder.outputs, scores))))


def flow(name: str, left: int, head: str = "") -> ClassFlow:
    return ClassFlow(head=head, name=name, left=left, came=0, p_corrected=1e-4)


def test_a_class_is_lost_of_the_inputs_that_the_reference_gives_it() -> None:
    first = read(ONE, [1, 1, 1, 1, 2, 2])
    device = read(ONE, [0, 0, 1, 1, 0, 2])
    (found,) = class_losses(
        [flow("calm", 2)], ONE, (first, device), ({0, 1, 4}, set()), ["", "calm"]
    )
    assert (found.name, found.inputs, found.share) == ("calm", 4, 0.5)
    assert (found.harmed_elsewhere, found.helped_elsewhere) == (1, 0)


@pytest.mark.parametrize(("head", "harmed"), [("age", 0), ("mood", 2)])
def test_a_class_of_a_head_is_none_of_another_head(head: str, harmed: int) -> None:
    """Both heads have a class 1, which the first gives to the two inputs that are harmed."""
    first = read(BOTH, [1, 1, 0, 0, 2, 2], [0, 0, 1, 1, 1, 1])
    device = read(BOTH, [0, 0, 0, 0, 2, 2], [0, 0, 0, 0, 1, 1])
    (found,) = class_losses([flow("1", 2, head)], BOTH, (first, device), ({0, 1}, set()), [])
    assert (found.name, found.inputs) == (f"{head}: 1", 2 if head == "age" else 4)
    assert found.harmed_elsewhere == harmed


@pytest.mark.parametrize(
    ("helped", "harmed", "expected"), [(6, 0, []), (5, 0, ["calm"]), (6, 1, ["calm"])]
)
def test_a_class_that_the_reference_gives_too_often_is_not_lost(
    helped: int, harmed: int, expected: list[str]
) -> None:
    """Of ten inputs that leave it some are right then, and some were right before."""
    first, device = read(ONE, [1] * 10 + [2]), read(ONE, [0] * 10 + [2])
    changed = set(range(helped, helped + harmed)), {*range(helped), 10}
    found = class_losses([flow("calm", 10)], ONE, (first, device), changed, ["", "calm"])
    assert [loss.name for loss in found] == expected
