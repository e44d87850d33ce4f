"""The operators that have a differentiable translation, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from edgeflare.whitebox.translation import conversion_translations as conversions
from edgeflare.whitebox.translation import elementwise_translations as elementwise
from edgeflare.whitebox.translation import pool_translations as pools
from edgeflare.whitebox.translation import weighted_sum_translations as sums
from edgeflare.whitebox.translation.translated_operator import Translation

TRANSLATIONS: Final[Mapping[str, Translation]] = {
    "ADD": elementwise.add,
    "AVERAGE_POOL_2D": pools.average_pool,
    "CONV_2D": sums.convolution,
    "DEPTHWISE_CONV_2D": sums.depthwise_convolution,
    "DEQUANTIZE": conversions.dequantize,
    "FULLY_CONNECTED": sums.fully_connected,
    "HARD_SWISH": elementwise.hard_swish,
    "LOGISTIC": elementwise.logistic,
    "MAX_POOL_2D": pools.max_pool,
    "MEAN": pools.mean,
    "MUL": elementwise.multiply,
    "PAD": conversions.pad,
    "QUANTIZE": conversions.quantize,
    "RELU": elementwise.relu,
    "RELU6": elementwise.relu6,
    "RESHAPE": conversions.reshape,
    "SOFTMAX": elementwise.softmax,
    "TRANSPOSE": conversions.transpose,
}
"""Those of LeNet, ResNet and MobileNet, with channels last or first."""
