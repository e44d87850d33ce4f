"""What compression did to the layers of a network on one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.diagnose.layer_matching import MatchedBy
from edgeflare.diagnose.option_differences import OptionDifference
from edgeflare.diagnose.tensor_difference import LARGEST, Difference
from edgeflare.models.non_finite_values import NonFiniteOnset

CutOff = tuple[float, float]
"""Shares of values that lie below a range, and above it."""

Grade = Literal["faulty", "coarse", "spread"]
"""What is to blame of compression: a layer whose error is beyond what its quantization explains, a
layer whose quantization is far from the best, or ordinary rounding in many layers."""


@dataclass(frozen=True, slots=True)
class LayerCompressionError:
    """What compression did to one layer.

    Attributes:
        layer: of the compressed model.
        matched_by: how the original's layer was found.
        total: between the two models' tensors behind the layer, real values; None if not seen.
        residual: largest difference that is new in this layer, in units of its output (of its
            largest value, where that is not quantized).
        explained: how large a difference quantization explains there, in the same units; infinite
            where the operator rounds unseen, in a state or another graph.
        constants: the constant whose error exceeds by most what rounding explains; None where no
            constant could be compared.
        options: those that decide numbers (strides, padding, …) and differ from the original's.
        margin_share: the share of the margin's error that the layer causes, of either sign; None
            where it was not computed, as for layers that are not `beyond`.
        cut_off: the shares of the original's values behind the layer that lie below and above the
            range of the compressed model's by more than a step; None where that has no range, or
            the original's values were not seen.

    """

    layer: LayerName
    matched_by: MatchedBy
    total: Difference | None
    residual: float
    explained: float
    constants: ConstantError | None
    options: tuple[OptionDifference, ...]
    margin_share: float | None = None
    cut_off: CutOff | None = None

    @property
    def overflows(self) -> bool:
        """Whether a constant is too large for the integers that hold it."""
        return self.constants is not None and self.constants.overflows

    @property
    def beyond(self) -> bool:
        """Whether the layer's error is larger than quantization explains."""
        changed = self.constants is not None and self.constants.beyond
        return self.residual > self.explained or changed

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
            "constants_overflow": constants is not None and constants.overflows,
            "options": [one.to_json() for one in self.options],
            "beyond": self.beyond,
            "margin_share": None if self.margin_share is None else _finite(self.margin_share),
            "cut_off": _sides(self.cut_off),
        }


Kind = Literal[
    "saturated", "range too wide", "one scale for unlike channels", "one scale for unlike things"
]
"""In which way a quantization is coarse."""

_ADVICE: dict[Kind, str] = {
    "saturated": "calibrate with inputs as the model is given them, preprocessed alike",
    "range too wide": "calibrate without the outlier that made the range so wide",
    "one scale for unlike channels": "quantize per channel, or equalize the channels before",
    "one scale for unlike things": "bring them to one range before they are joined, or put them"
    " out apart",
}


LISTED = 3
"""Layers that are listed where the error is due to all."""

ONLY_TFLITE = "the layers of an original are seen only if it is a .tflite"
NO_COUNTERPART = "no layer of the original is like one of the compressed model"
UNJUDGED = "the margin's error cannot be computed, so no layer is judged"

_MOST_SEEDS = 0.5
"""Share of the seeds: a file that differs from its original on more is not called healthy."""


@dataclass(frozen=True, slots=True)
class CoarseLayer:
    """A layer whose quantization is far from the best one with as many bits.

    Attributes:
        layer: of the compressed model; `INPUT` for the model's input.
        part: which of its tensors is quantized coarsely.
        kind: in which way.
        why: the figures that show it, as a sentence without its full stop.
        share: the share of the margin's error that a better quantization takes away.

    """

    layer: LayerName
    part: Literal["output", "weights"]
    kind: Kind
    why: str
    share: float

    @property
    def advice(self) -> str:
        """What to do about it."""
        return _ADVICE[self.kind]

    def __str__(self) -> str:
        return f"{self.layer} is coarse, {self.kind}: {self.why}; {self.advice}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            **self.layer.to_json(),
            "part": self.part,
            "kind": self.kind,
            "why": self.why,
            "advice": self.advice,
            "share": self.share,
        }


@dataclass(frozen=True, slots=True)
class CompressionError:
    """What compression did to the network on one input.

    Attributes:
        first: the first layer whose error is larger than quantization explains; None where there
            is none, or the layers could not be observed.
        most: the one of those layers that causes most of the margin's error, and at least a
            twentieth of it, never one that makes it smaller; the first of them where the shares are
            not known; else None.
        margin: by how much the original's margin is larger, in real values of the scores (see
            `MarginError`); None where that is not known, or no layer is `beyond`.
        layers: the layers that have a counterpart in the original, in execution order.
        unmatched: layers of the compressed model that have none.
        note: what could not be done, as a sentence without its full stop; else empty.
        coarse: the layers whose quantization is far from the best, largest share first; empty
            where there is a `most`.
        spread: where there is neither, the layers that cause most of the margin's error by
            ordinary rounding, three at most, and their shares.
        input_cut_off: `LayerCompressionError.cut_off` of the model's input.
        seen: whether the original's layers were observed.
        original: where values that are not finite begin in it; None where none were observed.
        judged: whether the margin's error is known; where it is not, no layer can be called coarse
            or healthy.
        apart_on_seeds: the share of the seeds on which twin and original differ; 0 where that is
            not known.

    """

    first: LayerName | None = None
    most: LayerName | None = None
    margin: float | None = None
    layers: tuple[LayerCompressionError, ...] = ()
    unmatched: tuple[LayerName, ...] = ()
    note: str = ""
    coarse: tuple[CoarseLayer, ...] = ()
    spread: tuple[tuple[LayerName, float], ...] = ()
    input_cut_off: CutOff | None = None
    seen: bool = False
    original: NonFiniteOnset | None = None
    judged: bool = True
    apart_on_seeds: float = 0.0

    @property
    def grade(self) -> Grade | None:
        """What is to blame, where compression is.

        None where the layers were not seen, the original is not finite, or no layer could be
        judged.
        """
        if not self.layers:
            return None
        if self.most is not None:
            return "faulty"
        if self.original is not None or not self.judged:
            return None
        return "coarse" if self.coarse else "spread"

    @property
    def said(self) -> str:
        """What is to blame, in one sentence without its full stop; empty where it is not known."""
        if self.grade == "faulty":
            if self.changed_throughout:
                return (
                    f"the constants of all {self.changed_throughout} layers that have any differ"
                    " from the original's by more than rounding, as after pruning or training, or"
                    " in a file that was made from another model; the layer named is the one that"
                    " changes a decision most"
                )
            said = f"the error of {self.most} is larger than its quantization explains"
            overflows = any(one.overflows for one in self.layers if one.layer == self.most)
            return f"{said}: its bias overflows its integers" if overflows else said
        if self.grade == "coarse":
            return "; ".join(str(one) for one in self.coarse)
        if self.grade == "spread":
            shares = ", ".join(f"{layer} {share:.0%}" for layer, share in self.spread)
            largest = f"; the largest shares have {shares}" if shares else ""
            return f"{self.ordinary_rounding}{largest}"
        return ""

    @property
    def ordinary_rounding(self) -> str:
        """What is said of a file in which no layer stands out."""
        said = "ordinary rounding in many layers"
        if self.apart_on_seeds > _MOST_SEEDS:
            return (
                f"{said}, though twin and original differ on {self.apart_on_seeds:.0%} of the seeds"
            )
        return f"{said}, which is what healthy files have"

    @property
    def changed_throughout(self) -> int:
        """The layers with constants, if three or more and rounding explains none; else 0."""
        changed = [one.constants.beyond for one in self.layers if one.constants is not None]
        return len(changed) if len(changed) > 2 and all(changed) else 0

    @property
    def other_options(self) -> str:
        """What is not the original's in the layer of `most`, in words; empty where nothing is."""
        for one in self.layers:
            if one.layer == self.most and one.options:
                return f"{one.layer} has {'; '.join(map(str, one.options))}"
        return ""

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
            "coarse": [layer.to_json() for layer in self.coarse],
            "spread": [{**layer.to_json(), "share": share} for layer, share in self.spread],
            "grade": self.grade,
            "said": self.said,
            "input_cut_off": _sides(self.input_cut_off),
            "layers": [layer.to_json() for layer in self.layers],
        }


def _sides(cut_off: CutOff | None) -> dict[str, float] | None:
    return None if cut_off is None else dict(zip(("below", "above"), cut_off, strict=True))


def _finite(value: float) -> float:
    return float(np.clip(value, -LARGEST, LARGEST)) if np.isfinite(value) else LARGEST
