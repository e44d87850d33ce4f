"""The systematic differences of two arms: of how many classes and scores they are judged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.evaluated_query import EvaluatedQuery
from edgeflare.core.kept_rows import kept_row
from edgeflare.core.outcome import Outcome
from edgeflare.core.output_decoders import OutputDecoders
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.core.tensor_rows import pack_rows
from edgeflare.run.systematic.differences import systematic_differences
from edgeflare.run.systematic.figures import SystematicDifferences
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.clip_frames import ClipFrames
from edgeflare.tasks.heads_decoder import HeadsDecoder

ARMS = Arm.ORIGINAL, Arm.DEVICE


def differences_of(
    decoder: Decoder, labels: tuple[NDArray[np.int64], NDArray[np.int64]], classes: int
) -> SystematicDifferences | None:
    """Of models that are sure of labels, (seeds, parts), each with as many classes."""
    scores = [(9.0 * np.eye(classes, dtype=np.float32))[one] for one in labels]
    outputs = decoder.outputs
    raw = [
        pack_rows(outputs, [part.reshape(-1, *outputs[0].shape) for part in parts])
        for parts in (np.split(one, len(outputs), axis=1) for one in scores)
    ]
    answers = [list(decoder.read(RawBatch(one))) for one in raw]
    evaluated = [
        EvaluatedQuery(
            Outcome(dict(zip(ARMS, each, strict=True))),
            {arm: kept_row(decoder, one[at]) for arm, one in zip(ARMS, raw, strict=True)},
            0.0,
        )
        for at, each in enumerate(zip(*answers, strict=True))
    ]
    return systematic_differences(OutputDecoders(dict.fromkeys(ARMS, decoder)), ARMS, evaluated)


def leaving(labels: NDArray[np.int64], seeds: int) -> NDArray[np.int64]:
    """Labels of which the first part's first so many are another class."""
    others: NDArray[np.int64] = labels.copy()
    others[:seeds, 0] = 1
    return others


def test_flows_of_clips_are_of_the_classes_of_a_frame_and_not_of_all_their_decisions() -> None:
    clip = Tensor("scores", (4, 10), "float32")
    decoder = ClassDecoder(clip, "logits", frames=ClipFrames(4, "any"))
    labels = np.arange(4 * 60).reshape(60, 4) % 8 + 2
    labels[:15, 0] = 0
    found = differences_of(decoder, (labels, leaving(labels, 15)), 10)
    assert found is not None
    assert [(one.name, one.left, one.came) for one in found.flows] == [("0", 15, 0), ("1", 0, 15)]


def test_flows_of_heads_are_corrected_for_the_classes_of_all_of_them() -> None:
    outputs = tuple(Tensor(f"head {at}", (1, 2), "float32") for at in range(12))
    decoder = HeadsDecoder([ClassDecoder(one, "logits", outputs) for one in outputs])
    labels = np.zeros((60, 12), np.int64)
    assert differences_of(decoder, (labels, leaving(labels, 9)), 2) is None
    assert differences_of(decoder, (labels, leaving(labels, 20)), 2) is not None
