"""What a repair says of blocks: which are to blame, and which a search computes in more precision.

docs/repair/precision.md says what each figure means.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from edgeflare.record.json_types import Amount, Count, Number


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
        bytes: size of the file after the step.

    """

    block: str
    taken_back: bool
    promoted: Count
    margin_difference: Amount
    deviating: Count
    bytes: Count


class PrecisionDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the search for precision says of a candidate, and of the first one how it went.

    Attributes:
        path: the steps of the search; of the first candidate alone.
        promoted: names of the blocks that compute in float, in the order of their promotion.

    """

    path: tuple[PrecisionStep, ...] | None = None
    promoted: tuple[str, ...]
