"""What a repair says of operators that were rewritten."""

from __future__ import annotations

from typing import Literal

import msgspec

from edgeflare.record.json_types import Amount


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
