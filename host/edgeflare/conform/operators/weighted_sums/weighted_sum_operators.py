"""All weighted sums."""

from __future__ import annotations

from edgeflare.conform.operators.weighted_sums.batch_matmul import BatchMatmul
from edgeflare.conform.operators.weighted_sums.convolutions import (
    Convolution,
    Convolution3d,
    DepthwiseConvolution,
)
from edgeflare.conform.operators.weighted_sums.fully_connected import FullyConnected
from edgeflare.conform.operators.weighted_sums.transpose_convolution import TransposeConvolution
from edgeflare.conform.specification.operator_specification import OperatorSpecification

WEIGHTED_SUMS: tuple[OperatorSpecification, ...] = (
    Convolution(),
    DepthwiseConvolution(),
    TransposeConvolution(),
    Convolution3d(),
    FullyConnected(),
    BatchMatmul(),
)
