"""What compression did to the layers of a network on one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.layer_difference import Difference, LayerName
from edgeflare.diagnose.layer_matching import MatchedBy
from edgeflare.diagnose.option_differences import OptionDifference
from edgeflare.models.non_finite_values import NonFiniteOnset
from edgeflare.pages.facts import in_words
from edgeflare.record.json_types import Number, Share

Grade = Literal["faulty", "coarse", "spread"]
"""What is to blame of compression: a layer whose error is beyond what its quantization explains, a
layer whose quantization is far from the best, or ordinary rounding in many layers."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Shares of the original's values that lie beyond the compressed model's range.

    Attributes:
        below: share below it by more than a step.
        above: share above it by more than a step.

    """

    below: Share
    above: Share


@dataclass(frozen=True, slots=True)
class LayerCompressionError:
    """What compression did to one layer.

    Attributes:
        layer: name of the layer in the compressed model.
        matched_by: how the original's layer was found.
        total: difference of the two models' tensors behind the layer, real values; None if not
            seen.
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


Kind = Literal[
    "saturated", "range-too-wide", "one-scale-for-unlike-channels", "one-scale-for-unlike-things"
]
"""Ways in which a quantization is coarse."""

_ADVICE: dict[Kind, str] = {
    "saturated": "calibrate with inputs as the model is given them, preprocessed alike",
    "range-too-wide": "calibrate without the outlier that made the range so wide",
    "one-scale-for-unlike-channels": "quantize per channel, or equalize the channels before",
    "one-scale-for-unlike-things": "bring them to one range before they are joined, or put them"
    " out apart",
}


LISTED = 3
"""Layers that are listed where the error is due to all."""

ONLY_TFLITE = "the layers of an original are seen only if it is a .tflite"
NO_COUNTERPART = "no layer of the original is like one of the compressed model"
UNJUDGED = "the margin's error cannot be computed, so no layer is judged"

_MOST_SEEDS = 0.5
"""Share of the seeds: a file that differs from its original on more is not called healthy."""


QuantizedPart = Literal["output", "weights"]
"""The tensor of a layer that is quantized coarsely."""


@dataclass(frozen=True, slots=True)
class CoarseLayer(LayerName):
    """A layer whose quantization is far from the best one with as many bits.

    Attributes:
        operator_index: position in execution order; -1 for the model's input.
        part: one of the operator's tensors.
        kind: way in which it is coarse.
        why: the figures that show it, as a sentence without its full stop.
        next_step: what to do about it.
        share: share of the margin's error that a better quantization with as many bits takes away.

    """

    operator_index: Annotated[int, msgspec.Meta(ge=-1)]
    part: QuantizedPart
    kind: Kind
    why: str
    next_step: str
    share: Number

    @property
    def said(self) -> str:
        """All of it, in a sentence without its full stop."""
        return f"{self} is coarse, {in_words(self.kind)}: {self.why}; {self.next_step}"


def coarse_layer(
    layer: LayerName, part: QuantizedPart, kind: Kind, why: str, share: float
) -> CoarseLayer:
    """Return a coarse layer with what helps against its kind."""
    place = (layer.operator_index, layer.name, layer.tensor)
    return CoarseLayer(*place, part, kind, why, _ADVICE[kind], share)


@dataclass(frozen=True, slots=True)
class LayerShare(LayerName):
    """A layer in which the error is ordinary rounding.

    Attributes:
        share: share of the margin's error.

    """

    share: Number


@dataclass(frozen=True, slots=True)
class CompressionError:
    """What compression did to the network on one input.

    Attributes:
        first: the first layer whose error is larger than quantization explains; None where there
            is none, or the layers could not be observed.
        most: the one of those layers that causes most of the margin's error, and at least a
            twentieth of it, never one that makes it smaller; the first of them where the shares are
            not known; else None.
        margin: how much larger the original's margin is, in real values of the scores (see
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
    spread: tuple[LayerShare, ...] = ()
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
            overflows = any(layer.overflows for layer in self.layers if layer.layer == self.most)
            return f"{said}: its bias overflows its integers" if overflows else said
        if self.grade == "coarse":
            return "; ".join(layer.said for layer in self.coarse)
        if self.grade == "spread":
            shares = ", ".join(f"{layer} {layer.share:.0%}" for layer in self.spread)
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
        changed = [layer.constants.beyond for layer in self.layers if layer.constants is not None]
        return len(changed) if len(changed) > 2 and all(changed) else 0

    @property
    def other_options(self) -> str:
        """What is not the original's in the layer of `most`, in words; empty where nothing is."""
        for layer in self.layers:
            if layer.layer == self.most and layer.options:
                return f"{layer.layer} has {'; '.join(map(str, layer.options))}"
        return ""

    @property
    def beyond(self) -> tuple[LayerCompressionError, ...]:
        """The layers whose error is larger than quantization explains."""
        return tuple(layer for layer in self.layers if layer.beyond)
