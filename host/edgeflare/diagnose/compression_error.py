"""What compression did to the layers of a network on one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.diagnose.layer_matching import MatchedBy
from edgeflare.diagnose.tensor_difference import Difference


@dataclass(frozen=True, slots=True)
class LayerCompressionError:
    """What compression did to one layer.

    Attributes:
        layer: of the compressed model.
        matched_by: how the original's layer was found.
        total: between the two models' tensors behind the layer, real values; None if not seen.
        residual: largest difference that is new in this layer, in units of its output (of its
            largest value, where that is not quantized).
        explained: how large a difference quantization explains there, in the same units.
        constants: the constant whose error exceeds by most what rounding explains; None where no
            constant could be compared.
        options: names of options (strides, padding, …) that differ from the original's.
        margin_share: the share of the margin's error that the layer causes, of either sign; None
            where it was not computed, as for layers that are not `beyond`.

    """

    layer: LayerName
    matched_by: MatchedBy
    total: Difference | None
    residual: float
    explained: float
    constants: ConstantError | None
    options: tuple[str, ...]
    margin_share: float | None = None

    @property
    def beyond(self) -> bool:
        """Whether the layer's error is larger than quantization explains."""
        changed = self.constants is not None and self.constants.beyond
        return self.residual > self.explained or changed or bool(self.options)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        constants = self.constants
        return {
            **self.layer.to_json(),
            "matched_by": self.matched_by,
            "total": None if self.total is None else self.total.to_json(),
            "residual": _finite(self.residual),
            "explained": _finite(self.explained),
            "constants": None if constants is None else _finite(constants.steps),
            "constants_explained": None if constants is None else _finite(constants.explained),
            "options": list(self.options),
            "beyond": self.beyond,
            "margin_share": None if self.margin_share is None else _finite(self.margin_share),
        }


@dataclass(frozen=True, slots=True)
class CompressionError:
    """What compression did to the network on one input.

    Attributes:
        first: the first layer whose error is larger than quantization explains; None where there
            is none, or the layers could not be observed.
        most: the one of those layers that causes most of the margin's error, and at least a
            twentieth of it; the first of them where the shares are not known; else None.
        margin: by how much the original's margin is larger, in real values of the scores (see
            `MarginError`); None where that is not known, or no layer is `beyond`.
        layers: the layers that have a counterpart in the original, in execution order.
        unmatched: layers of the compressed model that have none.
        note: what could not be done, as a sentence without its full stop; else empty.

    """

    first: LayerName | None = None
    most: LayerName | None = None
    margin: float | None = None
    layers: tuple[LayerCompressionError, ...] = ()
    unmatched: tuple[LayerName, ...] = ()
    note: str = ""

    @property
    def beyond(self) -> tuple[LayerCompressionError, ...]:
        """The layers whose error is larger than quantization explains."""
        return tuple(layer for layer in self.layers if layer.beyond)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "first": None if self.first is None else self.first.to_json(),
            "most": None if self.most is None else self.most.to_json(),
            "margin": self.margin,
            "note": self.note,
            "unmatched": [layer.to_json() for layer in self.unmatched],
            "layers": [layer.to_json() for layer in self.layers],
        }


def _finite(value: float) -> float:
    return float(np.clip(value, -1e300, 1e300)) if np.isfinite(value) else 1e300
