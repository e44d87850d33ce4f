"""The seam between what draws models and the rounds that have them run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeflare.conform.drafts.draft import Draft


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """What became of a draft, as far as drawing needs it.

    Attributes:
        nodes: for each node, whether the device took it alone; one that crashes it or answers
            wrongly was taken. None where nobody knows, since what feeds it gave no answer, or the
            draft was not run.
        whole: whether the device took the model of all nodes.

    """

    nodes: tuple[bool | None, ...]
    whole: bool

    @classmethod
    def not_run(cls, draft: Draft) -> DraftOutcome:
        """Return the outcome of a draft that was left out, of which nobody knows anything."""
        return cls((None,) * len(draft.nodes), whole=False)


class DraftSource(Protocol):
    """Draws models one after the other.

    What is drawn depends on the generator that it was made with and on what it was told, so that
    a run is resumed by telling it the same again.
    """

    def ask(self, count: int) -> list[Draft]:
        """Return the next models, fewer than asked for only where there are no more."""

    def tell(self, drafts: Sequence[Draft], outcomes: Sequence[DraftOutcome]) -> None:
        """Take what became of models that were asked for, in any order."""
