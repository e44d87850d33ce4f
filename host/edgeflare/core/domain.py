"""The seam of domains: what the inputs of a pair are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from edgeflare.core.input import Input
from edgeflare.core.input_space import InputSpace
from edgeflare_operators import MutationOperator


class Domain(ABC):
    """What the inputs of a pair are, such as images.

    A package makes a domain known by an entry point, under the name that `pair.toml` has as
    `domain`:

        [project.entry-points."edgeflare.domains"]
        image = "my_package:ImageDomain"

    Attributes:
        name: as users write it; also the domain of its mutation operators.
        suffix: of the files in which inputs are stored, with the dot; no other domain has it, since
            it tells how a file is read.
        space: the values that inputs may have.

    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    space: InputSpace

    def paper_operators(self) -> tuple[MutationOperator, ...]:
        """Return the operators of DFlare's paper for such inputs; none unless overridden."""
        return ()

    def published_operators(self) -> tuple[MutationOperator, ...]:
        """Return those of its published code, in its order; the paper's unless overridden."""
        return self.paper_operators()

    @abstractmethod
    def encode_file(self, one: Input) -> bytes:
        """Return the content of a file that keeps an input without loss."""

    @abstractmethod
    def decode_file(self, data: bytes) -> Input | None:
        """Return the input that a file keeps; None where it is none, or damaged."""

    @abstractmethod
    def fingerprint(self, one: Input) -> Any:
        """Return what tells whether two inputs are near duplicates."""

    @abstractmethod
    def count_near(self, fingerprints: Sequence[Any]) -> int:
        """Return how many inputs are near to, or equal to, another one, by their fingerprints."""
