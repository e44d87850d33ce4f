"""How the outputs of detectors hold boxes, classes and scores; and the anchors of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import NotArrays, read_arrays
from edgeflare.core.answer import Failure
from edgeflare.core.tensor import RawBatch, Tensor, pack_rows, unpack_rows
from edgeflare.errors import UserError
from edgeflare.regular_file import read_regular
from edgeflare.tasks.detection.box_matching import Boxes
from edgeflare.tasks.output_choice import OutputValues, output_values


class DecodedRows(NamedTuple):
    """What a batch holds, one place for each box that a model can give.

    Attributes:
        scores: (batch, places) float64, as the model gives them; below 0 in unused places of models
            that give probabilities.
        labels: (batch, places) int64 classes; those of the background are below 0.
        leads: (batch, places) float64, by how much a score is above that of the next class;
            infinite where it is not known.
        boxes: (batch, places, 4) float64: left, top, right, bottom as shares of the picture, or
            what `PlainBoxes.boxes` makes such ones of.
        failures: why a row holds no answer, by its position.

    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    leads: NDArray[np.float64]
    boxes: NDArray[np.float64]
    failures: dict[int, Failure]


class PlainBoxes(msgspec.Struct, frozen=True, tag_field="decoding"):
    """What decodings share. Unless overridden, their boxes are none to decode."""

    def boxes(self, encoded: NDArray[np.float64], places: NDArray[np.int64]) -> Boxes:
        """Return the boxes of some places of one row: (places, 4)."""
        return encoded[places]

    def reduced(
        self,
        row: NDArray[np.generic],
        outputs: Sequence[Tensor],  # noqa: ARG002 - few places take little room as they are
        places: NDArray[np.int64],  # noqa: ARG002
    ) -> NDArray[np.generic]:
        """Return a row whose candidates are those of some places, where others take much room.

        Args:
            row: one that can be decoded.
            outputs: all tensors of a row.
            places: positions of the candidates, the best that there are.

        """
        return row


class AnchorDecoding(PlainBoxes, frozen=True, dict=True, tag="anchors"):
    """Boxes relative to anchors, and a score for each class.

    Attributes:
        regressors: the position of the output (1, anchors, 4 or more): centre x, centre y, width
            and height in units of `size`, and what is not read, such as keypoints.
        scores: the position of the output (1, anchors, classes).
        anchors: centre x and y of each, as shares of the picture; or these with width and height,
            by which the regressors are multiplied.
        size: the units of the regressors in a picture, or in an anchor that has a size.
        class_offset: leading classes that are the background.

    """

    regressors: int
    scores: int
    anchors: tuple[tuple[float, ...], ...]
    size: float
    class_offset: int

    @property
    def read_at(self) -> tuple[int, ...]:
        """The positions of regressors and scores."""
        return self.regressors, self.scores

    def decode(self, batch: RawBatch, outputs: Sequence[Tensor]) -> DecodedRows:
        """Return the best class of each anchor, its boxes not yet decoded."""
        given = output_values(batch, outputs, self.scores)
        boxes = output_values(batch, outputs, self.regressors)
        size = len(given.real)
        each = given.real.reshape(size, len(self.anchors), -1)[:, :, self.class_offset :]
        labels = each.argmax(axis=2)
        best = np.take_along_axis(each, labels[:, :, None], axis=2)[:, :, 0]
        leads = np.full_like(best, np.inf)
        if each.shape[2] > 1:
            leads = best - np.partition(each, -2, axis=2)[:, :, -2]
        encoded = boxes.real.reshape(size, len(self.anchors), -1)
        return DecodedRows(best, labels, leads, encoded, {**given.failures, **boxes.failures})

    def boxes(self, encoded: NDArray[np.float64], places: NDArray[np.int64]) -> Boxes:
        """Return anchor + regressor / size as boxes."""
        anchors, shares = self._anchors[places], encoded[places, :4] / self.size
        if anchors.shape[1] == 4:
            shares = shares * np.tile(anchors[:, 2:], 2)
        centre, half = anchors[:, :2] + shares[:, :2], shares[:, 2:] / 2.0
        return np.concatenate([centre - half, centre + half], axis=1)

    def reduced(
        self, row: NDArray[np.generic], outputs: Sequence[Tensor], places: NDArray[np.int64]
    ) -> NDArray[np.generic]:
        """Return a row with the least score in all other places, and zeros elsewhere."""
        kept = []
        for at, array in enumerate(unpack_rows(outputs, row[None])):
            least = np.zeros_like(array)
            if at in (self.scores, self.regressors):
                least += array.min() if at == self.scores else 0
                mine, its = (values.reshape(len(self.anchors), -1) for values in (least, array))
                mine[places] = its[places]
            kept.append(least)
        (reduced,) = pack_rows(outputs, kept)
        return np.asarray(reduced)

    @cached_property
    def _anchors(self) -> NDArray[np.float64]:
        return np.array(self.anchors, np.float64)


class PostProcessDecoding(PlainBoxes, frozen=True, tag="postprocess"):
    """The four outputs of the operator TFLite_Detection_PostProcess.

    Attributes:
        places: the position of the output (1, n, 4): top, left, bottom, right.
        classes: the position of the output (1, n) of classes.
        scores: the position of the output (1, n) of scores from 0 to 1.
        count: the position of the output of one number, which says how many of the n are used.
        class_offset: leading classes that are the background.

    """

    places: int
    classes: int
    scores: int
    count: int
    class_offset: int

    @property
    def read_at(self) -> tuple[int, ...]:
        """The positions of all four."""
        return self.places, self.classes, self.scores, self.count

    def decode(self, batch: RawBatch, outputs: Sequence[Tensor]) -> DecodedRows:
        """Return the places that are used; others have the score -1.

        The operator writes nothing into those, so that they hold whatever was in their memory.
        """
        count, used = self._used(batch, outputs)
        size = len(used)
        each = [
            output_values(batch, outputs, at, used)
            for at in (self.places, self.classes, self.scores)
        ]
        boxes, labels, scores = (output.real.reshape(size, -1) for output in each)
        failures = {at: why for output in (*each, count) for at, why in output.failures.items()}
        return DecodedRows(
            np.where(used, scores, -1.0),
            _whole(labels) - self.class_offset,
            np.full_like(scores, np.inf),
            boxes.reshape(size, -1, 4)[:, :, [1, 0, 3, 2]],
            failures,
        )

    def reduced(
        self,
        row: NDArray[np.generic],
        outputs: Sequence[Tensor],
        places: NDArray[np.int64],  # noqa: ARG002 - those that are used are few
    ) -> NDArray[np.generic]:
        """Return a row with zeros in the places that are not used, so that it can be compared."""
        arrays = [array.copy() for array in unpack_rows(outputs, row[None])]
        _, used = self._used(RawBatch(row[None]), outputs)
        for at in (self.places, self.classes, self.scores):
            arrays[at].reshape(used.size, -1)[~used[0]] = 0
        (reduced,) = pack_rows(outputs, arrays)
        return np.asarray(reduced)

    def _used(
        self, batch: RawBatch, outputs: Sequence[Tensor]
    ) -> tuple[OutputValues, NDArray[np.bool_]]:
        """Return the count of each row, and which places it says are used: (batch, places)."""
        count = output_values(batch, outputs, self.count)
        places = prod(outputs[self.scores].shape)
        return count, np.arange(places) < count.real.reshape(len(count.real), 1)


class ObjectDecoding(PlainBoxes, frozen=True, tag="objects"):
    """One output of rows: left, top, right, bottom, score, class.

    Attributes:
        scores: the position of the output (1, n, 6); unused rows have the score -1.
        class_offset: leading classes that are the background.

    """

    scores: int
    class_offset: int

    @property
    def read_at(self) -> tuple[int, ...]:
        """The position of the one."""
        return (self.scores,)

    def decode(self, batch: RawBatch, outputs: Sequence[Tensor]) -> DecodedRows:
        """Return the rows."""
        given = output_values(batch, outputs, self.scores)
        rows = given.real.reshape(len(given.real), -1, 6)
        labels, unknown = _whole(rows[:, :, 5]) - self.class_offset, np.full(rows.shape[:2], np.inf)
        return DecodedRows(rows[:, :, 4], labels, unknown, rows[:, :, :4], given.failures)


BoxDecoding: TypeAlias = AnchorDecoding | PostProcessDecoding | ObjectDecoding
"""How one model's outputs are decoded."""


def _whole(labels: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return numbers of classes that a model gives as real ones."""
    return np.clip(np.rint(labels), -1e9, 1e9).astype(np.int64)


_MOST_ANCHOR_BYTES = 2**23
"""The largest size of a file of anchors, which may come from a stranger."""

_MOST_GRID_ANCHORS = 1_000_000


def read_anchors(path: Path) -> list[list[float]]:
    """Return the anchors of a file: an `.npz` with one array, or an `.npy`.

    Returns:
        A row for each anchor: centre x and y, as shares of the picture, or these with width and
        height.

    Raises:
        UserError: the file cannot be read, or has no such array.

    """
    try:
        arrays = read_arrays(read_regular(path, _MOST_ANCHOR_BYTES), _MOST_ANCHOR_BYTES)
    except OSError as error:
        raise UserError(f"anchors {path} cannot be read: {error.strerror or error}") from error
    except NotArrays as error:
        raise UserError(
            f"anchors {path}: not an .npz or .npy file of numbers ({error}): write it with "
            "numpy.savez(path, anchors=...)"
        ) from error
    shapes = ", ".join(str(array.shape) for array in arrays[:3])
    if len(arrays) != 1 or arrays[0].ndim != 2 or arrays[0].dtype.kind not in "fiu":
        raise UserError(
            f"anchors {path}: expected one array of numbers (anchors, 2) or (anchors, 4), but the "
            f"file has {shapes or 'none'}"
        )
    # As many digits as a float32 has, so that what is kept of them stays short.
    return [[float(f"{number:.9g}") for number in row] for row in arrays[0].tolist()]


def grid_anchors(cells: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Return anchors in the centres of cells, row by row.

    Args:
        cells: cells along an axis and anchors in a cell, for each grid.

    Returns:
        (anchors, 2) centres x and y, as shares of the picture.

    Raises:
        UserError: there are more than a million.

    """
    if sum(along * along * repeats for along, repeats in cells) > _MOST_GRID_ANCHORS:
        raise UserError(f"cells is {[list(cell) for cell in cells]}, more than a million anchors")
    grids = []
    for along, repeats in cells:
        centres = (np.arange(along) + 0.5) / along
        y, x = np.meshgrid(centres, centres, indexing="ij")
        grids.append(np.repeat(np.column_stack([x.ravel(), y.ravel()]), repeats, axis=0))
    return np.concatenate(grids)
