"""The domain of tokens: ids of a vocabulary, such as words or characters of a text."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from math import inf, log10, prod, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain, NearnessMeasure
from edgeflare.core.input_space import Input, InputSpace, Real
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds, ids_of, take
from edgeflare.core.tensor import Tensor
from edgeflare.domains.array_domain import ArrayEncoder
from edgeflare.domains.seed_files import (
    chosen_files,
    labels_of,
    read_npz,
    require_seeds,
    seed_content,
    seed_files,
)
from edgeflare.errors import UserError
from edgeflare.outside_text import json_value
from edgeflare_operators import MutationOperator
from edgeflare_operators.operator_registry import Sample
from edgeflare_operators.tokens import TokenSets

REPLACEMENT = 16.0
"""Levels between two inputs that differ in one id. Two that differ in k of them are
`REPLACEMENT` * sqrt(k) apart, so a search that bisects to less than a level tells up to 256
replacements apart."""

_WEIGHT = REPLACEMENT / sqrt(2.0)
_GOLDEN = (sqrt(5.0) - 1.0) / 2.0

_TOKEN_SUFFIXES = (".json",)
"""Suffixes of files that are read as lists of ids; other files are ignored."""

_MOST_BYTES = 2**27
"""Most bytes of a list's file: ten million ids."""

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
        if self._swap_sets:
            sets = [np.unique(np.array(ids, np.int32)) for ids in self._swap_sets]
        else:
            everything = np.arange(self.space.vocabulary, dtype=np.int32)
            sets = [np.delete(everything, sorted(self._kept))]
        return replace(operator, apply=partial(apply, sets=TokenSets(tuple(sets), self._padding)))

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
        return seed_files(path, _TOKEN_SUFFIXES)

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

    def nearness_db(self, input_: Input, seed: Input) -> float:
        """Return 10 log10 of all ids over those that differ; infinite where none does."""
        differing = int(np.count_nonzero(input_ != seed))
        return 10.0 * log10(input_.size / differing) if differing else inf

    @staticmethod
    def encode_file(input_: Input) -> bytes:
        """Return the JSON file of an input: the list of its ids."""
        return json.dumps(input_.tolist()).encode()

    @staticmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the input of a JSON file; None where it is no list of ids."""
        try:
            ids = json_value(data)
        except ValueError:
            return None
        if not isinstance(ids, list) or not all(type(id_) is int for id_ in ids):
            return None
        if not all(INT32.min <= id_ <= INT32.max for id_ in ids):
            return None
        return np.array(ids, np.int32)

    @staticmethod
    def fingerprint(input_: Input) -> Tokens:
        """Return the ids themselves."""
        return input_

    @staticmethod
    def count_near(fingerprints: Sequence[Tokens]) -> int:
        """Return how many inputs another one is near to, or equals; all are of one length."""
        if not fingerprints:
            return 0
        every = np.stack(fingerprints)
        most = int(MOST_DIFFERING * every.shape[1])
        return sum(
            int(np.count_nonzero(np.count_nonzero(every != row, axis=1) <= most) > 1)
            for row in every  # each is near to itself
        )


def _refuse_unknown_ids(what: str, ids: Collection[int], vocabulary: int) -> None:
    unknown = sorted(id_ for id_ in ids if not 0 <= id_ < vocabulary)
    if unknown:
        raise UserError(f"{what}: ids have to be 0 to {vocabulary - 1}, not {unknown}")


def load_token_seeds(
    path: Path, vocabulary: int, length: int, choice: SeedChoice = ALL_SEEDS, array: str = "tokens"
) -> Seeds:
    """Load seed lists of ids.

    Args:
        path: an `.npz` with an array of the name, integers (N, length), and maybe `labels`,
            integers (N,); or a folder of JSON files of one list each, taken in the order of their
            names.
        vocabulary: how many ids there are.
        length: ids of each list.
        choice: says which of them are taken.
        array: the name of the array in an `.npz`.

    Raises:
        UserError: there are none, or one is of another length, or no list of ids of the vocabulary.

    """
    require_seeds(path, "JSON files")
    labels = None
    folders: tuple[str, ...] = ()
    if path.is_dir():
        found = chosen_files(path, _TOKEN_SUFFIXES, choice)
        if not found.files:
            raise UserError(f"seeds {path}: the folder has no JSON files")
        lists = np.array([_read(file, length) for file in found.files], np.int64)
        names, ids, folders = found.names, found.ids, found.folders
    else:
        arrays = read_npz(path, (array, "labels"))
        raw = arrays[array]
        if raw.ndim != 2 or raw.dtype.kind not in "iu" or raw.shape[1] != length or not len(raw):
            raise UserError(
                f"seeds {path}: {array} are {raw.dtype} of shape {raw.shape}, expected integers"
                f" (N, {length})"
            )
        labels = labels_of(path, arrays, len(raw), array)
        places = choice.places(len(raw), labels)
        labels, ids = None if labels is None else take(labels, places), ids_of(places)
        lists = take(raw, places).astype(np.int64)
        names = tuple(map(str, places.tolist()))
    unknown = (lists < 0) | (lists >= vocabulary)
    if unknown.any():
        where = names[int(np.argwhere(unknown)[0][0])]
        raise UserError(
            f"seeds {path}: seed {where} has ids beyond the vocabulary, 0 to {vocabulary - 1}:"
            " correct or remove it"
        )
    return Seeds(lists.astype(np.int32), labels, names, ids=ids, folders=folders)


def _read(file: Path, length: int) -> list[int]:
    try:
        ids = json_value(seed_content(file, _MOST_BYTES))
    except ValueError:
        ids = None
    if not isinstance(ids, list) or not all(type(id_) is int for id_ in ids):
        raise UserError(f"seeds: {file} is no list of ids: correct or remove it")
    if len(ids) != length:
        raise UserError(f"seeds: {file} has {len(ids)} ids, but the model takes {length}")
    if not all(0 <= id_ < 2**31 for id_ in ids):
        raise UserError(f"seeds: {file} has numbers that are no ids: correct or remove it")
    return ids


@dataclass(frozen=True, slots=True)
class TokenSpace(InputSpace):
    """Ids of a vocabulary; in levels, a weight for each id at each position.

    An id at a position is a weight of `REPLACEMENT` / sqrt(2) for it and 0 for all others (one-hot
    encoding): (length,) ids are (length, vocabulary) levels. Weights between two inputs are a
    mixture of their ids, of which `nearest` takes each position's id by a threshold of the
    position's own, and `dithered` by one drawn at random. All thresholds differ, so the line from
    one input to another is a path of single replacements, in an order that is always the same.

    A search that computes in levels, such as `boundary`, keeps some six arrays of 8 bytes *
    length * vocabulary for each open chain.
    """

    @classmethod
    def of_vocabulary(cls, size: int) -> TokenSpace:
        """Return the space of the ids 0 to `size` - 1."""
        return cls("int32", 0, size - 1, cell_axes=1)

    @property
    def ordered(self) -> bool:
        """Return False: ids are names."""
        return False

    @property
    def vocabulary(self) -> int:
        """Return the number of ids."""
        return int(self.highest) + 1

    def levels(self, input_: Input) -> Real:
        """Return the weights of the ids of an input: (..., length) → (..., length, vocabulary)."""
        weights = np.zeros((*input_.shape, self.vocabulary))
        np.put_along_axis(weights, input_[..., np.newaxis].astype(np.intp), _WEIGHT, axis=-1)
        return weights

    def nearest(self, levels: Real) -> Input:
        """Return the ids that the thresholds of their positions take of a mixture."""
        return self._taken(levels, _thresholds(levels.shape[-2]))

    def dithered(self, levels: Real, rng: np.random.Generator) -> Input:
        """Return ids drawn from a mixture, each as often as its weight says."""
        return self._taken(levels, rng.random(levels.shape[:-1]))

    def between(self, begin: Input, end: Input, share: float) -> Input:
        """Return the input at that share of the path of single replacements from one to another.

        Each position has the id of `begin` or of `end`.
        """
        thresholds = _thresholds(begin.shape[-1])
        replaced_from = np.where(end > begin, 1.0 - thresholds, thresholds)
        return np.where(share > replaced_from, end, begin).astype(self.dtype)

    def distance(self, one: Input, other: Input) -> float:
        """Return `REPLACEMENT` * sqrt(the number of ids that differ), in levels."""
        return REPLACEMENT * sqrt(int(np.count_nonzero(one != other)))

    def limits(self, input_: Input) -> tuple[Real, Real]:
        """Return by how much the weight of each id may fall and rise, in levels."""
        weights = self.levels(input_)
        return -weights, _WEIGHT - weights

    def _taken(self, levels: Real, thresholds: NDArray[np.float64]) -> Input:
        """Return at each position the first id at which the weights so far exceed a threshold.

        A threshold is a share of all weights above 0. Where there is none, the id of the highest
        weight is taken.
        """
        weights = np.maximum(levels, 0.0)
        reached = np.cumsum(weights, axis=-1)
        whole = reached[..., -1:]
        taken = (reached > thresholds[..., np.newaxis] * whole).argmax(axis=-1)
        return np.where(whole[..., 0] > 0.0, taken, levels.argmax(axis=-1)).astype(self.dtype)


def _thresholds(length: int) -> NDArray[np.float64]:
    """Return a threshold for each position, between 0 and 1: evenly spread, and no two equal."""
    thresholds: NDArray[np.float64] = np.mod((np.arange(length) + 1) * _GOLDEN, 1.0)
    return thresholds
