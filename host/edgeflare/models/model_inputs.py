"""The inputs of one model, each matched to what the pair says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.encoder import Encoder
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import Tensor, without_ones
from edgeflare.core.tensor_rows import pack_rows, unpack_rows
from edgeflare.errors import UserError
from edgeflare.models.pair_input import PairInput
from edgeflare.models.pair_interface import PairInterface


class ModelInputs:
    """The inputs of a model, and what the pair says of each.

    Attributes:
        shape: of the inputs that are searched. Several arrays that are searched together are one
            input then, (values,), in the order in which the pair names them.

    """

    def __init__(
        self,
        interface: PairInterface,
        tensors: Sequence[Tensor],
        model: str,
        like: ModelInputs | None = None,
    ) -> None:
        """Match a model's inputs.

        Args:
            interface: of the pair.
            tensors: all inputs of the model but those that a state feeds.
            model: what the user calls the model, for messages.
            like: those of the pair's other model, whose shapes tell inputs apart that have other
                names here.

        Raises:
            UserError: an input is not described, or what is described is no input, or does not
                take what the pair says.

        """
        self._tensors, self._task = tuple(tensors), interface.opened_task
        shapes = None if like is None else like.tensors
        self._at = match_inputs(interface.inputs, tensors, model, shapes)
        self._searched = interface.searched
        self._fixed = tuple(one for one in interface.inputs if not one.search)
        self._shapes = [
            one.opened_domain.input_shape(self.tensor(one), model) for one in self._searched
        ]
        self._sizes = [prod(shape) for shape in self._shapes]
        self.shape = self._shapes[0] if len(self._shapes) == 1 else (sum(self._sizes),)
        for one, size in zip(self._searched, self._sizes, strict=True):
            if like is not None and size != like.size(one):
                raise UserError(
                    f"{model}: input {self.tensor(one).name!r} takes {size} values, but that of the"
                    f" other model {like.size(one)}: both models have to take inputs of one size"
                )

    def tensor(self, one: PairInput) -> Tensor:
        """Return the model's input that is one of the pair's."""
        return self._tensors[self._at[one.name]]

    def size(self, one: PairInput) -> int:
        """Return how many values one of the searched inputs has."""
        return self._sizes[self._searched.index(one)]

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """The model's inputs by the pair's names."""
        return {name: self._tensors[at] for name, at in self._at.items()}

    @property
    def fixed_names(self) -> tuple[str, ...]:
        """The pair's names of the inputs that the search leaves as a seed has them."""
        return tuple(one.name for one in self._fixed)

    def load(self, path: Path, limit: int | None = None) -> Seeds:
        """Load seeds as those of the pair are given.

        Raises:
            UserError: there are none, or they do not fit.

        """
        several = len(self._at) > 1
        if several and path.is_dir():
            raise UserError(
                f"seeds {path}: of a model with several inputs they are one .npz file, which has an"
                " array for each input: " + ", ".join(self._at)
            )

        def loaded(one: PairInput, shape: tuple[int, ...]) -> Seeds:
            array = one.array or (one.name if one.domain == "array" or several else "")
            # Of several arrays each is read whole, so that unlike numbers of seeds are noticed.
            return one.opened_domain.load_seeds(path, shape, array, None if several else limit)

        parts = [
            loaded(one, shape) for one, shape in zip(self._searched, self._shapes, strict=True)
        ]
        fixed = {
            one.name: loaded(one, one.opened_domain.input_shape(self.tensor(one))).inputs
            for one in self._fixed
        }
        counts = {len(part.inputs) for part in parts} | {len(rows) for rows in fixed.values()}
        if len(counts) > 1:
            raise UserError(
                f"seeds {path}: the arrays of {', '.join(self._at)} have different numbers of"
                f" seeds, {', '.join(map(str, sorted(counts)))}: give each input of each seed"
            )
        first = self._with_class_labels(parts[0], path)
        if len(parts) == 1 and not fixed:
            return first
        whole = [part.inputs.reshape(len(part), -1) for part in parts]
        return replace(
            first,
            inputs=(first.inputs if len(parts) == 1 else np.concatenate(whole, axis=1))[:limit],
            labels=None if first.labels is None else first.labels[:limit],
            names=first.names[:limit],
            fixed={name: rows[:limit] for name, rows in fixed.items()},
        )

    def _with_class_labels(self, seeds: Seeds, path: Path) -> Seeds:
        """Return seeds without labels where they are several for each, and no classes.

        Raises:
            UserError: they are several, and the task has classes.

        """
        labels = seeds.labels
        if labels is None or labels.ndim == 1:
            return seeds
        several = f"labels are {labels.shape[1]} integers for each seed"
        if self._task.class_labels:
            raise UserError(f"seeds {path}: {several}, expected one integer for each seed: a class")
        note = f"{several}: the task {self._task.name} ignores them"
        return replace(seeds, labels=None, notes=(note,))

    def encoder(self) -> Encoder:
        """Return what encodes searched inputs: for the only input, or rows of all searched ones."""
        encoders = [one.opened_domain.encoder(self.tensor(one)) for one in self._searched]
        if len(encoders) == 1:
            return encoders[0]
        tensors = [self.tensor(one) for one in self._searched]
        return _JoinedEncoder(encoders, tensors, self._sizes, self._shapes)

    def fixed(self, seeds: Seeds) -> FixedInputs | None:
        """Return the inputs that the search leaves as a seed has them; None where there are none.

        Several searched ones are put into the order of the model's inputs by it too.
        """
        if len(self._at) == 1:
            return None
        encoded = {
            self._at[one.name]: one.opened_domain.encoder(self.tensor(one)).encode(
                seeds.fixed[one.name]
            )
            for one in self._fixed
        }
        searched = tuple(self._at[one.name] for one in self._searched)
        return FixedInputs(self._tensors, searched, encoded, seeds.ids)


@dataclass(frozen=True, slots=True)
class FixedInputs:
    """What a model takes beside the searched inputs: of each seed, already encoded.

    Attributes:
        tensors: all inputs of the model, in its order.
        searched: the positions of the searched ones among them, in the order of the pair.
        encoded: the others by their positions, (seeds, *row) each.
        ids: of the seeds, in their order there; empty where they are 0, 1, ….

    """

    tensors: tuple[Tensor, ...]
    searched: tuple[int, ...]
    encoded: Mapping[int, NDArray[np.generic]]
    ids: tuple[int, ...] = ()

    def beside(self, encoded: NDArray[np.generic], seed_ids: Sequence[int]) -> NDArray[np.generic]:
        """Return the rows of a batch for the model; see `pack_rows`.

        Args:
            encoded: the batch as the encoder of the searched inputs made it.
            seed_ids: the seed of each input of it.

        """
        places = [self.ids.index(one) for one in seed_ids] if self.ids else list(seed_ids)
        arrays = {at: rows[places] for at, rows in self.encoded.items()}
        mine = unpack_rows([self.tensors[at] for at in self.searched], encoded)
        arrays |= dict(zip(self.searched, mine, strict=True))
        return pack_rows(self.tensors, [arrays[at] for at in range(len(self.tensors))])


def model_rows(
    encoder: Encoder, fixed: FixedInputs | None, inputs: NDArray[Any], seed_ids: Sequence[int]
) -> NDArray[np.generic]:
    """Return the rows that a model takes for inputs of these seeds.

    Args:
        encoder: of the inputs that are searched.
        fixed: what the model takes beside them; None where that is nothing.
        inputs: (batch, *shape).
        seed_ids: the seed of each of them.

    """
    encoded = encoder.encode(inputs)
    return encoded if fixed is None else fixed.beside(encoded, seed_ids)


class _JoinedEncoder:
    """Encodes several arrays that are searched as one."""

    def __init__(
        self,
        encoders: Sequence[Encoder],
        tensors: Sequence[Tensor],
        sizes: Sequence[int],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self._encoders, self._tensors, self._shapes = encoders, tensors, shapes
        self._cuts = np.cumsum(sizes)[:-1]

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Return the rows of a batch, (batch, values)."""
        parts = np.split(inputs, self._cuts, axis=1)
        encoded = [
            encoder.encode(part.reshape(len(inputs), *shape))
            for encoder, part, shape in zip(self._encoders, parts, self._shapes, strict=True)
        ]
        return pack_rows(self._tensors, encoded)


def match_inputs(
    described: Sequence[PairInput],
    tensors: Sequence[Tensor],
    model: str,
    like: Mapping[str, Tensor] | None = None,
) -> dict[str, int]:
    """Return the position of each described input among a model's.

    An input is found by its name; elsewhere by the shape that the other model has it in.

    Raises:
        UserError: one is not found, or one of the model's is not described.

    """
    known = ", ".join(f"{one.name!r} {one.shape}" for one in tensors) or "none"
    if len(described) == len(tensors) == 1 and not described[0].tensor:
        return {described[0].name: 0}
    if len(described) == 1 and not described[0].name:
        raise UserError(
            f"{model} has {len(tensors)} inputs ({known}), and the pair describes one: write an"
            " [inputs.NAME] for each into pair.toml, and [state] for those that an output feeds"
        )
    named = {one.tensor_name for one in described}
    free = [n for n, tensor in enumerate(tensors) if tensor.name not in named]
    found: dict[str, int] = {}
    for one in described:
        fitting = _fitting(one, tensors, free, like)
        if len(described) == len(tensors) == 1:
            fitting = [0]
        if len(fitting) != 1:
            raise UserError(
                f"{model} has no input {one.tensor_name!r}: its inputs are {known}; say which it is"
                f' with tensor = "…" under [inputs.{one.name}]'
            )
        found[one.name] = fitting[0]
    _require_each_once(
        found, [tensor.name for tensor in tensors], f"{model} has {len(tensors)} inputs ({known})"
    )
    return found


def _fitting(
    one: PairInput,
    tensors: Sequence[Tensor],
    free: Sequence[int],
    like: Mapping[str, Tensor] | None,
) -> list[int]:
    """Return the positions that a described input may have: of its name, else of its shape."""
    by_name = [n for n, tensor in enumerate(tensors) if tensor.name == one.tensor_name]
    if by_name or not like:
        return by_name[:1]
    shape = without_ones(like[one.name].shape)
    return [n for n in free if without_ones(tensors[n].shape) == shape]


def _require_each_once(found: Mapping[str, int], names: Sequence[str], has: str) -> None:
    """Refuse two descriptions of one input, and inputs that are not described."""
    if len(set(found.values())) < len(found):
        raise UserError(
            f"{has}, and two of {', '.join(found)} are the same one: say which each is with"
            ' tensor = "…"'
        )
    missing = [name for n, name in enumerate(names) if n not in found.values()]
    if missing:
        raise UserError(
            f"{has}, of which {', '.join(missing)} is not given: write an [inputs.NAME] for it into"
            " pair.toml, or a [state]"
        )
