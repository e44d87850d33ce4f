"""What methods say of their candidates in `repair.json`."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from edgeflare.record.json_types import Amount
from edgeflare.repair.precision_details import PrecisionDetails
from edgeflare.repair.shift_details import ShiftDetails


class CandidateDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What methods say of their candidates, by section.

    Attributes:
        rewrites: operators that were rewritten.
        precision: what the search for precision found.
        shifts: what a repair by shifts says of itself.

    """

    rewrites: RewriteDetails | None = None
    precision: PrecisionDetails | None = None
    shifts: ShiftDetails | None = None


NO_DETAILS: Final = CandidateDetails()
"""Details of a candidate of which its method says nothing."""


class Rewrite(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that forced one step on unlike values, and what frees them.

    Attributes:
        operator: the operator, as `explain` names layers.
        by: what computes in its place (MEAN), or what was put in front of it (QUANTIZE).
        tensor: name of the tensor that has steps of its own now.
        step_before: size of a step of that tensor before.
        step_after: size of a step of that tensor now.

    """

    operator: str
    by: Literal["MEAN", "QUANTIZE"]
    tensor: str
    step_before: Amount
    step_after: Amount


class RewriteDetails(msgspec.Struct, frozen=True, kw_only=True):
    """What was rewritten in a candidate.

    Attributes:
        rewrites: the operators, in execution order.

    """

    rewrites: tuple[Rewrite, ...]
