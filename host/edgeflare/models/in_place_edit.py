"""Constants and quantizations of a `.tflite` file, overwritten in their places.

All else stays as it is, to the byte: operators and their order, metadata, alignment, and the length
of the file. So whatever runs the file before runs it afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph


class InPlaceEdit:
    """Changes to the constants and quantizations of a file's main graph.

    Tensors are named by their index, as in `Graph`.
    """

    def __init__(self, content: bytes, source: str = "the model") -> None:
        """Take a file.

        Args:
            content: the file.
            source: what the user calls it, for messages.

        """
        self._tensors = Graph(content, source).tensors
        self._source = source
        self._content = bytearray(content)
        self._model = schema.Model.GetRootAs(self._content)
        self._main = self._model.Subgraphs(0)
        graphs = [self._model.Subgraphs(at) for at in range(self._model.SubgraphsLength())]
        every = [graph.Tensors(at) for graph in graphs for at in range(graph.TensorsLength())]
        self._buffers_held = Counter(tensor.Buffer() for tensor in every)
        metadata = (self._model.Metadata(at) for at in range(self._model.MetadataLength()))
        self._buffers_held.update(entry.Buffer() for entry in metadata)
        quantizations = (tensor.Quantization() for tensor in every)
        self._places_held = Counter(
            _place(values)
            for quantization in quantizations
            if quantization is not None
            for values in (quantization.ScaleAsNumpy(), quantization.ZeroPointAsNumpy())
            if not isinstance(values, int)
        )
        self._written: dict[tuple[str, int], bytes] = {}

    def set_values(self, tensor: int, raw: NDArray[np.generic]) -> None:
        """Overwrite the raw values of a constant.

        Args:
            tensor: index of the tensor.
            raw: raw values of the tensor's shape and dtype.

        Raises:
            ValueError: the values are of another shape or dtype, or it is no constant.
            UserError: something else has the same values, and would change with it; or they were
                set to others before, as by two operators that read one tensor.

        """
        known = self._tensors[tensor]
        if not known.constant or (raw.shape, raw.dtype.name) != (known.shape, known.dtype):
            raise ValueError(
                f"{raw.dtype} {raw.shape} for {known.name!r}: {known.dtype} {known.shape}"
            )
        held = self._main.Tensors(tensor).Buffer()
        if self._buffers_held[held] > 1:
            raise self._shared(tensor, "values")
        content = np.ascontiguousarray(raw).tobytes()
        self._once(tensor, "values", content)
        self._bytes(held)[:] = np.frombuffer(content, np.uint8)

    def set_quantization(
        self, tensor: int, scales: Sequence[float], zero_points: Sequence[int]
    ) -> None:
        """Overwrite the quantization of a tensor.

        Args:
            tensor: index of the tensor.
            scales: as many as it has, each positive and finite; they are rounded to float32.
            zero_points: as many.

        Raises:
            ValueError: there are other numbers of them, or a scale that is none.
            UserError: another tensor has the same quantization, it was set to another one before,
                or the file has no zero points for the tensor and not all are 0.

        """
        known, rounded = self._tensors[tensor], np.asarray(scales, np.float32)
        points = np.asarray(zero_points, np.int64)
        if not len(scales) == len(zero_points) == len(known.scales):
            raise ValueError(f"{known.name!r} has {len(known.scales)} scales, not {len(scales)}")
        if not (np.isfinite(rounded) & (rounded > 0)).all():
            raise ValueError(f"no scales of {known.name!r}: {scales}")
        if not len(scales):
            return
        quantization = self._main.Tensors(tensor).Quantization()
        places: list[tuple[Any, NDArray[Any]]] = [(quantization.ScaleAsNumpy(), rounded)]
        if quantization.ZeroPointLength() == len(zero_points):
            places.append((quantization.ZeroPointAsNumpy(), points))
        elif any(zero_points):
            raise UserError(
                f"{self._source}: tensor {known.name!r} has no place for zero points: "
                "convert the model with another converter"
            )
        if any(self._places_held[_place(place)] > 1 for place, _ in places):
            raise self._shared(tensor, "quantization")
        self._once(tensor, "quantization", rounded.tobytes() + points.tobytes())
        for place, values in places:
            place[:] = values

    def content(self) -> bytes:
        """Return the file, as long as it was."""
        return bytes(self._content)

    def _bytes(self, buffer: int) -> NDArray[np.uint8]:
        """Return a buffer's bytes where they lie."""
        found = self._model.Buffers(buffer)
        if found.DataLength():
            return np.asarray(found.DataAsNumpy())
        return np.frombuffer(self._content, np.uint8, found.Size(), found.Offset())

    def _once(self, tensor: int, what: str, content: bytes) -> None:
        """Refuse what is set to something else than before."""
        if self._written.setdefault((what, tensor), content) != content:
            raise self._shared(tensor, what)

    def _shared(self, tensor: int, what: str) -> UserError:
        return UserError(
            f"{self._source}: the {what} of tensor {self._tensors[tensor].name!r} belong to "
            "something else too: convert the model without sharing constants"
        )


def _place(values: NDArray[np.generic]) -> int:
    """Return where an array's values lie in memory."""
    return int(values.__array_interface__["data"][0])
