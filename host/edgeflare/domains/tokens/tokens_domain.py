"""The domain of tokens: ids of a vocabulary, such as words or characters of a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from math import inf, log10, prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain
from edgeflare.core.input import Input
from edgeflare.core.nearness_measure import NearnessMeasure
from edgeflare.core.seed_choice import ALL_SEEDS, SeedChoice
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import Tensor
from edgeflare.domains.array.array_encoder import ArrayEncoder
from edgeflare.domains.seed_files import seed_files
from edgeflare.domains.tokens.token_seeds import TOKEN_SUFFIXES, load_token_seeds
from edgeflare.domains.tokens.token_space import TokenSpace
from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare_operators import MutationOperator
from edgeflare_operators.operator_registry import Sample
from edgeflare_operators.tokens import TokenSets

Tokens = NDArray[np.int32]
"""Ids: (length,), int32."""

INT32 = np.iinfo(np.int32)

MOST_IDS = int(INT32.max)
"""The largest vocabulary."""

KEPT_TOKENS = NearnessMeasure("kept tokens", within=7.0, curve=(0.0, 30.0))
"""All ids over those that differ: 7 dB are a fifth of the ids, 20 dB a hundredth."""

MOST_DIFFERING = 0.05
"""The share of ids that differ between two inputs that are near duplicates, at most."""


class TokensDomain(Domain):
    """Inputs of one length, stored as a list in JSON."""

    name = "tokens"
    suffix = ".tokens.json"
    default_linf = None  # a difference of ids says nothing
    default_rms = None
    space: TokenSpace

    def __init__(
        self,
        vocabulary: int,
        length: int | None = None,
        padding: int | None = None,
        reserved: Sequence[int] = (),
        swap_sets: Sequence[Sequence[int]] = (),
    ) -> None:
        """Take ids of a vocabulary.

        Args:
            vocabulary: how many ids there are; they are 0 to one less.
            length: ids of an input; unless given, as many as the model takes.
            padding: the id behind the last token, which operators neither put in nor replace.
            reserved: further such ids, as of the begin, the end and the unknown word.
            swap_sets: sets of ids among which operators may replace; unless given, one of all ids
                but the padding and the reserved.

        Raises:
            UserError: an id is not of the vocabulary, a set has fewer than two ids or one that is
                reserved, or a size is too small.

        """
        if not 2 <= vocabulary <= MOST_IDS:
            raise UserError(f"vocabulary has to be 2 to {MOST_IDS} ids, not {vocabulary}")
        if length is not None and length < 1:
            raise UserError(f"length has to be 1 id or more, not {length}")
        kept = {*reserved, *(() if padding is None else (padding,))}
        _refuse_unknown_ids("padding and reserved", kept, vocabulary)
        if vocabulary - len(kept) < 2:
            raise UserError(
                f"the padding and the reserved leave fewer than two of {vocabulary} ids"
            )
        for number, ids in enumerate(swap_sets, 1):
            what = f"swap set {number}"
            _refuse_unknown_ids(what, set(ids), vocabulary)
            if len(set(ids)) < 2:
                raise UserError(f"{what} has to have two different ids or more, not {list(ids)}")
            if both := sorted(kept & set(ids)):
                raise UserError(f"{what} has the padding or a reserved id, {both}: take it out")
        self.space = TokenSpace.of_vocabulary(vocabulary)
        self.length = length
        self._padding = padding
        self._kept = kept
        self._swap_sets = swap_sets

    def bound(self, operator: MutationOperator) -> MutationOperator:
        """Return an operator that is handed the domain's sets, where it has a parameter `sets`."""
        if "sets" not in signature(operator.apply).parameters:
            return operator
        apply: Callable[..., Sample] = operator.apply
        return replace(operator, apply=partial(apply, sets=self._token_sets()))

    def input_shape(self, tensor: Tensor, model: str = "the model") -> tuple[int, ...]:
        """Return (length,).

        Raises:
            UserError: the model's input takes another number of ids.

        """
        takes = prod(tensor.shape)
        if self.length not in (None, takes):
            raise UserError(
                f"{model}: input {tensor.name!r} has shape {tensor.shape}, which are {takes} ids,"
                f" but length is {self.length}: correct or remove it"
            )
        return (takes,)

    @staticmethod
    def seed_files(path: Path) -> list[Path]:
        """Return an `.npz` itself, or the JSON files of a folder."""
        return seed_files(path, TOKEN_SUFFIXES)

    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str = "", choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load lists of ids: the array `tokens` of an `.npz` unless told otherwise, or a folder."""
        return load_token_seeds(path, self.space.vocabulary, shape[0], choice, array or "tokens")

    @staticmethod
    def encoder(tensor: Tensor) -> ArrayEncoder:
        """Return what hands ids over as they are."""
        return ArrayEncoder(np.zeros(()), np.ones(()), tensor)

    @property
    def nearness_measure(self) -> NearnessMeasure:
        """The measure of `nearness_db`."""
        return KEPT_TOKENS

    def nearness_db(self, one: Input, seed: Input) -> float:
        """Return 10 log10 of all ids over those that differ; infinite where none does."""
        differing = int(np.count_nonzero(one != seed))
        return 10.0 * log10(one.size / differing) if differing else inf

    @staticmethod
    def encode_file(one: Input) -> bytes:
        """Return the JSON file of an input: the list of its ids."""
        return json.dumps(one.tolist()).encode()

    @staticmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the input of a JSON file; None where it is no list of ids."""
        try:
            ids = json_value(data)
        except ValueError:
            return None
        if not isinstance(ids, list) or not all(type(one) is int for one in ids):
            return None
        if not all(INT32.min <= one <= INT32.max for one in ids):
            return None
        return np.array(ids, np.int32)

    @staticmethod
    def fingerprint(one: Input) -> Tokens:
        """Return the ids themselves."""
        return one

    @staticmethod
    def count_near(fingerprints: Sequence[Tokens]) -> int:
        """Return how many inputs another one is near to, or equals; all are of one length."""
        if not fingerprints:
            return 0
        every = np.stack(fingerprints)
        most = int(MOST_DIFFERING * every.shape[1])
        return sum(
            int(np.count_nonzero(np.count_nonzero(every != one, axis=1) <= most) > 1)
            for one in every  # each is near to itself
        )

    def _token_sets(self) -> TokenSets:
        if self._swap_sets:
            sets = [np.unique(np.array(ids, np.int32)) for ids in self._swap_sets]
        else:
            everything = np.arange(self.space.vocabulary, dtype=np.int32)
            sets = [np.delete(everything, sorted(self._kept))]
        return TokenSets(tuple(sets), self._padding)


def _refuse_unknown_ids(what: str, ids: Collection[int], vocabulary: int) -> None:
    unknown = sorted(one for one in ids if not 0 <= one < vocabulary)
    if unknown:
        raise UserError(f"{what}: ids have to be 0 to {vocabulary - 1}, not {unknown}")
