"""The decoder of a classifier with several heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import MOST_SCORES, joint_answer, split_decision
from edgeflare.core.task import Decoder
from edgeflare.core.tensor import RawBatch
from edgeflare.errors import UserError


class HeadsDecoder(Decoder):
    """Reads the classes of several heads as one decision."""

    def __init__(self, heads: Sequence[Decoder]) -> None:
        """Make a decoder.

        Args:
            heads: the decoder of each head, all of the same rows; at least two.

        Raises:
            UserError: the heads have too many joint decisions to count.

        """
        self._heads = tuple(heads)
        self.tensor, self.outputs = heads[0].tensor, heads[0].outputs
        self.meaning = ", ".join(dict.fromkeys(head.meaning for head in heads))
        self.choices = prod(head.choices for head in heads)
        if self.choices > MOST_SCORES:
            known = " × ".join(str(head.choices) for head in heads)
            raise UserError(
                f"heads have {known} decisions together; at most {MOST_SCORES} can be told apart: "
                "name fewer heads, or compare frames by another rule than 'any'"
            )

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the classes of all heads of each row."""
        return map(joint_answer, zip(*(head.read(batch) for head in self._heads), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return the description of each head."""
        return {"heads": [dict(head.to_json()) for head in self._heads]}

    def describe(self, decision: int) -> str:
        """Return the class of each head, such as 3, 7."""
        labels = split_decision(decision, [head.choices for head in self._heads])
        return ", ".join(
            head.describe(label) for head, label in zip(self._heads, labels, strict=True)
        )
