"""What a device does on the drawn inputs of a check."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgeflare.check.figures.device import InvocationVariant
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.record.json_types import Count, CountFromOne, Share
from edgeflare.run.run_document import RunDevice


class DrawnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a device does on drawn inputs, beside the host.

    Attributes:
        device: the device, and what is known of it.
        inputs: how many were drawn.
        samples: those of them that have a picture or a sound of the package.
        failed_here: inputs without an answer of the device, by kind of failure.
        failed_alone: on how many of them it has none where the host has one.
        answered: how many the host gives a finite answer to.
        outputs: how its outputs are.
        repeated: how many inputs it was given once more.
        unsteady: those of them on which its outputs were others then.
        variants: what it answers to some of them in other ways.
        warnings: a sentence each, without its full stop.

    """

    device: RunDevice
    inputs: CountFromOne
    samples: Count
    failed_here: Mapping[str, Count]
    failed_alone: Count
    answered: Count
    outputs: tuple[DrawnOutput, ...]
    repeated: Count
    unsteady: Count
    variants: tuple[InvocationVariant, ...]
    warnings: tuple[str, ...]

    @property
    def sqnr_db(self) -> float | None:
        """SQNR of the output that is farthest from the host's; None where all are equal to it."""
        errors = (one.error for one in self.outputs if one.error is not None)
        return min((one.sqnr_db for one in errors if one.sqnr_db is not None), default=None)


class DrawnOutput(msgspec.Struct, frozen=True, kw_only=True):
    """How an output of a device is on drawn inputs.

    Attributes:
        output: name of the output.
        error: how far it is from the host's; null where no input was answered.
        not_finite: inputs on which it has NaN or infinity.
        not_finite_alone: those of them on which the host has none.
        constant: whether it is the same for all inputs.
        constant_on_host: likewise on the host.
        railed: the share of its values at an end of its range.

    """

    output: str
    error: LayerError | None
    not_finite: Count
    not_finite_alone: Count
    constant: bool
    constant_on_host: bool
    railed: Share
