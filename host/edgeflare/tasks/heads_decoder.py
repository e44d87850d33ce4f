"""The decoder of a classifier with several heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from msgspec import structs

from edgeflare.core.answer import Answer
from edgeflare.core.answer_view import AnswerView, classes_view
from edgeflare.core.joint_answer import MOST_SCORES, JointAnswer, joint_answer, split_decision
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

    @property
    def read_at(self) -> tuple[int, ...]:
        """The positions of the outputs of all heads."""
        return tuple(at for head in self._heads for at in head.read_at)

    @property
    def heads(self) -> tuple[Decoder, ...]:
        """The decoder of each head."""
        return self._heads

    def read(self, batch: RawBatch) -> Iterator[Answer]:
        """Yield the classes of all heads of each row."""
        return map(joint_answer, zip(*(head.read(batch) for head in self._heads), strict=True))

    def views(
        self, answers: Mapping[str, Answer], compared: tuple[str, str]
    ) -> tuple[AnswerView, ...]:
        """Return the classes of each head, under the name of its output."""
        joint = {arm: one for arm, one in answers.items() if isinstance(one, JointAnswer)}
        views: list[AnswerView] = []
        for place, head in enumerate(self._heads):
            parts = {arm: one.parts[place] for arm, one in joint.items()}
            name = head.tensor.name
            shown = head.views(parts, compared)
            views += [structs.replace(one, head=f"{name}, {one.head}") for one in shown]
            views += [] if shown else [classes_view(name, parts)]
        return tuple(views)

    @property
    def parts(self) -> tuple[int, ...]:
        """How many classes each head has."""
        return tuple(head.choices for head in self._heads)

    def to_json(self) -> dict[str, Any]:
        """Return the description of each head."""
        return {"heads": [dict(head.to_json()) for head in self._heads]}

    def describe(self, decision: int) -> str:
        """Return the class of each head, such as 3, 7."""
        labels = split_decision(decision, self.parts)
        return ", ".join(
            head.describe(label) for head, label in zip(self._heads, labels, strict=True)
        )
