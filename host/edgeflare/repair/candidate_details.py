"""What methods say of their candidates in `repair.json`, and a repair of the blocks of its model.

docs/repair/precision.md says what the figures of blocks mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from edgeflare.record.json_types import Amount, Count, Number
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


class Block(msgspec.Struct, frozen=True):
    """Operators of the compressed model that are promoted together.

    Attributes:
        name: the operator with weights, as `explain` names layers.
        tensor: name of that operator's first output; empty where that is missing.
        operators: positions in the compressed model, that with weights first.

    """

    name: str
    tensor: str
    operators: tuple[Count, ...]


class Residual(msgspec.Struct, frozen=True):
    """The blocks of the model before, and the error that each adds itself.

    Attributes:
        blocks: all of them, in execution order.
        scores: each block's own error by the size of what it makes, by the block's name.
        blamed: the block with the greatest one; null where none adds an error.

    """

    blocks: tuple[Block, ...]
    scores: Mapping[str, Number]
    blamed: str | None


class PrecisionStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of the search for the blocks to promote.

    Attributes:
        block: the name of the one that is promoted or taken back.
        taken_back: whether it is the latter.
        promoted: how many blocks are promoted after the step.
        margin_difference: mean error of the margins after the step, on the inputs to fit with.
        deviating: inputs to fit with that deviate after the step.
        size_bytes: size of the file after the step.

    """

    block: str
    taken_back: bool
    promoted: Count
    margin_difference: Amount
    deviating: Count
    size_bytes: Count


class PrecisionDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the search for precision says of a candidate, and of the first one how it went.

    Attributes:
        path: the steps of the search; of the first candidate alone.
        promoted: names of the blocks that compute in float, in the order of their promotion.

    """

    path: tuple[PrecisionStep, ...] | None = None
    promoted: tuple[str, ...]
