"""The decoder of detectors: from raw outputs to objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.answer_view import DetectionView, ShownBox
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.classification import least_probability
from edgeflare.tasks.detection.box_decodings import BoxDecoding, DecodedRows, decoding_from_json
from edgeflare.tasks.detection.detected import (
    NO_CANDIDATES,
    Candidates,
    Detected,
    DetectionRule,
    detected,
)
from edgeflare.tasks.detection.detection_answer import DetectionAnswer
from edgeflare.tasks.detection.object_differences import object_differences
from edgeflare.tasks.output_values import (
    row_fields,
    row_from_json,
    tensor_from_json,
    tie_width,
)

CANDIDATES = 64
"""Candidates below the threshold that are kept, the best. They tell what is nearest to appearing,
and what score is left where an object vanished."""

MOST_CANDIDATES = 2000
"""Candidates that are kept in all. BlazeFace has 6 to 27 above .5 where there is a face."""

MOST_CLASSES = 10_000
"""Classes that models and functions may number."""

MOST_SHOWN_BOXES = 20
"""Objects of each arm that are kept to be shown."""

_CERTAIN = 1e-6
"""Least distance of a probability from 0 and 1, whose logits are infinite."""

_NOTHING = np.empty(0)


class DetectionDecoder(Decoder):
    """Reads objects."""

    choices = 0
    shows_seeds = True
    compresses = True
    meaning = "boxes and scores"

    def __init__(
        self,
        outputs: tuple[Tensor, ...],
        decoding: BoxDecoding,
        rule: DetectionRule,
        logits: bool,
    ) -> None:
        """Make a decoder.

        Args:
            outputs: all tensors of a row.
            decoding: how they hold boxes.
            rule: which of them are objects, and which two are partners.
            logits: whether scores are taken before the sigmoid.

        """
        self.outputs, self.tensor = outputs, outputs[decoding.scores]
        self._decoding, self._rule, self._logits = decoding, rule, logits
        self._least = _logit(rule.threshold)
        self._reached = self._least if logits else rule.threshold
        self._nearly = tie_width(self.tensor)
        self._certain = max(_CERTAIN, least_probability(self.tensor))

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the objects of each row.

        An object whose right is left of its left, or whose bottom is above its top, is an
        "invalid-output", as are probabilities above 1 and numbers of classes beyond
        `MOST_CLASSES`.
        """
        rows = self._decoding.decode(batch, self.outputs)
        for at in range(len(rows.scores)):
            failure = rows.failures.get(at) or self._refusal(rows, at)
            found = None if failure else self._detected(rows, at)
            if (
                found is not None
                and (found.objects.boxes[:, 2:] < found.objects.boxes[:, :2]).any()
            ):
                found, failure = None, "invalid-output"
            yield self._answer(found, failure)

    def reduced(self, row: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return a row that keeps the candidates alone, where it holds boxes of anchors."""
        rows = self._decoding.decode(RawBatch(row[None]), self.outputs)
        if rows.failures:
            return row
        return self._decoding.reduced(row, self.outputs, self._places(rows, 0)[0])

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[DetectionView, ...]:
        """Return the objects of each arm, those that differ among the compared arms marked."""
        given = {arm: one for arm, one in answers.items() if isinstance(one, DetectionAnswer)}
        known = {arm: one.detected for arm, one in given.items() if one.failure is None}
        marks: dict[str, dict[int, str]] = {arm: {} for arm in known}
        if all(arm in known for arm in compared):
            first, second = compared
            for one in object_differences(known[first], known[second]):
                if one.first is not None:
                    marks[first][one.first] = one.kind
                if one.second is not None:
                    marks[second][one.second] = one.kind
        boxes = {
            arm: _shown(known[arm].objects, marks[arm]) if arm in known else None for arm in given
        }
        view = DetectionView(
            head="",
            classes=(),
            threshold=self._rule.threshold,
            overlap=self._rule.overlap,
            boxes=boxes,
        )
        return (view,)

    def describe_answer(self, answer: Answer, classes: Sequence[str] = ()) -> str:
        """Return how many objects there are, their classes and scores: "2 objects: .93, .81"."""
        if not isinstance(answer, DetectionAnswer) or answer.failure is not None:
            return super().describe_answer(answer, classes)
        objects = answer.detected.objects
        shown = [
            f"{_named(label, classes)}{f'{score:.2f}'.removeprefix('0')}"
            for label, score in zip(
                objects.labels[:MOST_SHOWN_BOXES].tolist(), objects.scores.tolist(), strict=False
            )
        ]
        if not shown:
            return "no object"
        more = ", …" if len(objects) > len(shown) else ""
        return f"{len(objects)} object{'s' * (len(objects) > 1)}: {', '.join(shown)}{more}"

    def to_json(self) -> dict[str, Any]:
        """Return the tensors, how they are decoded, and what makes objects and partners."""
        return {
            "tensor": asdict(self.tensor),
            "decoding": self._decoding.to_json(),
            "rule": asdict(self._rule),
            "logits": self._logits,
            **row_fields(self.outputs),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> DetectionDecoder:
        """Return the decoder that `to_json` described."""
        return cls(
            row_from_json(fields) or (tensor_from_json(fields["tensor"]),),
            decoding_from_json(fields["decoding"]),
            DetectionRule(**fields["rule"]),
            fields["logits"],
        )

    def _detected(self, rows: DecodedRows, at: int) -> Detected:
        scores, labels = rows.scores[at], rows.labels[at]
        places, excess = self._places(rows, at)
        given, leads = scores[places], rows.leads[at, places]
        leads = np.where(leads <= self._nearly, 0.0, leads)
        if self._logits:
            given, leads = _sigmoid(given), _sigmoid(given) - _sigmoid(given - leads)
        boxes = self._decoding.boxes(rows.boxes[at], places)
        candidates = Candidates(boxes, labels[places], given, excess[places], leads)
        return detected(candidates, self._rule)

    def _refusal(self, rows: DecodedRows, at: int) -> Failure | None:
        beyond = not self._logits and (rows.scores[at] > 1.0 + _CERTAIN).any()
        return "invalid-output" if beyond or (rows.labels[at] >= MOST_CLASSES).any() else None

    def _places(self, rows: DecodedRows, at: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the positions of a row's candidates, the best first, and the excess of all."""
        scores, labels = rows.scores[at], rows.labels[at]
        excess = self._excess(scores)
        usable = labels >= 0 if self._logits else (labels >= 0) & (scores >= 0.0)
        excess = np.where(usable, excess, -np.inf)
        reached = int((excess >= 0.0).sum())
        count = min(reached + CANDIDATES, MOST_CANDIDATES)
        places = np.argsort(-excess, kind="stable")[:count]
        places = places[usable[places]]
        return places, excess

    def _excess(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by how much the logits exceed the threshold's; 0 for ties."""
        logits = scores
        if not self._logits:
            shares = np.clip(scores, self._certain, 1.0 - self._certain)
            logits = np.log(shares / (1.0 - shares))
        tied = np.abs(scores - self._reached) <= self._nearly
        return np.where(tied, 0.0, logits - self._least)

    def _answer(self, found: Detected | None, failure: Failure | None) -> DetectionAnswer:
        if found is None:
            nothing = detected(NO_CANDIDATES, self._rule)
            return DetectionAnswer(None, False, _NOTHING, _NOTHING, failure, detected=nothing)
        return DetectionAnswer(0, found.tied, _NOTHING, _NOTHING, None, detected=found)


def _shown(objects: Candidates, marks: Mapping[int, str]) -> tuple[ShownBox, ...]:
    return tuple(
        ShownBox(
            tuple(float(f"{side:.6g}") for side in objects.boxes[at].tolist()),
            float(f"{objects.scores[at]:.6g}"),
            int(objects.labels[at]),
            marks.get(at, ""),
        )
        for at in range(min(len(objects), MOST_SHOWN_BOXES))
    )


def _named(label: int, classes: Sequence[str]) -> str:
    return f"{classes[label]} " if label < len(classes) else ""


def _logit(probability: float) -> float:
    return log(probability / (1.0 - probability))


def _sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -80.0, 80.0)))
    return shares
