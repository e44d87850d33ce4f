"""The inputs of one model, each matched to what the pair says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import DifferentiableEncoder, Encoder
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds, ids_of, take
from edgeflare.core.tensor import (
    GivenRows,
    Tensor,
    float_tensors,
    in_one_order,
    pack_rows,
    unpack_rows,
    without_ones,
)
from edgeflare.domains.frames_domain import FramesDomain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.domains.image.preprocess import image_tensor
from edgeflare.domains.seed_files import targets_of
from edgeflare.errors import UserError
from edgeflare.models.folder_labels import with_folder_labels
from edgeflare.models.pair_interface import PairInput, PairInterface


class ModelInputs:
    """The inputs of a model, and what the pair says of each.

    Attributes:
        shape: shape of the inputs that are searched. Several arrays that are searched together are
            one input then, (values,), in the order in which the pair names them.

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
            interface: what the pair's models take and give.
            tensors: all inputs of the model but those that a state feeds.
            model: what the user calls the model, for messages.
            like: those of the pair's other model, whose shapes tell inputs apart that have other
                names here. Seeds have its shapes: an array with its last dimension first here, or
                its first one last, is transposed for this model.

        Raises:
            UserError: an input is not described, or what is described is no input, or does not
                take what the pair says.

        """
        self._tensors, self._task = tuple(tensors), interface.opened_task
        shapes = None if like is None else like.tensors
        self._at = match_inputs(interface.inputs, tensors, model, shapes)
        self._described, self._searched = interface.inputs, interface.searched
        self._fixed = tuple(input_ for input_ in interface.inputs if not input_.search)
        self._shapes = [
            input_.opened_domain.input_shape(self.tensor(input_), model)
            for input_ in self._searched
        ]
        self._sizes = [prod(shape) for shape in self._shapes]
        self.shape = self._shapes[0] if len(self._shapes) == 1 else (sum(self._sizes),)
        self._axes = {} if like is None else self._transposed(interface.inputs, like, model)

    def _transposed(
        self, described: Sequence[PairInput], like: ModelInputs, model: str
    ) -> dict[str, _Axes]:
        """Return the inputs whose values another model takes in another order."""
        found = {}
        for input_ in described:
            mine, its = self.tensor(input_), like.tensor(input_)
            shape, wanted = input_.opened_domain.input_shape(mine, model), like.shape_of(input_)
            if prod(shape) != prod(wanted):
                raise UserError(
                    f"{model}: input {mine.name!r} takes {prod(shape)} values, but that of the"
                    f" other model {prod(wanted)}: both models have to take inputs of one size"
                )
            if in_one_order(shape, wanted):
                continue
            axes = _Axes.between(wanted, shape) if input_.domain == "array" else None
            if axes is None:
                raise UserError(
                    f"{model}: input {mine.name!r} is {mine.shape}, and that of the other model"
                    f" {its.shape}, which has its values in another order: convert both models with"
                    " inputs of one shape"
                )
            found[input_.name] = axes
        return found

    def _encoder(self, input_: PairInput) -> Encoder:
        """Return what encodes one of the pair's inputs, as the seeds have it."""
        tensor, axes = self.tensor(input_), self._axes.get(input_.name)
        if axes is None:
            return input_.opened_domain.encoder(tensor)
        encoder = input_.opened_domain.encoder(replace(tensor, shape=(1, *axes.seed)))
        assert isinstance(encoder, DifferentiableEncoder)  # noqa: S101 - of arrays
        return _TransposingEncoder(encoder, axes)

    @property
    def picture_sizes(self) -> tuple[tuple[int, int], ...]:
        """The (height, width) of each input that is a picture, or may be one by its shape."""
        sizes = []
        for input_ in self._described:
            domain, tensor = input_.opened_domain, self.tensor(input_)
            if isinstance(domain, ImageDomain | FramesDomain):
                height, width, _ = domain.input_shape(tensor)[-3:]
            else:
                try:
                    height, width, _ = image_tensor(tensor).shape
                except UserError:
                    continue
            sizes.append((height, width))
        return tuple(sizes)

    def tensor(self, input_: PairInput) -> Tensor:
        """Return the model's input that is one of the pair's."""
        return self._tensors[self._at[input_.name]]

    def shape_of(self, input_: PairInput) -> tuple[int, ...]:
        """Return the shape that one of the pair's inputs has in seeds."""
        return input_.opened_domain.input_shape(self.tensor(input_))

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """The model's inputs by the pair's names."""
        return {name: self._tensors[at] for name, at in self._at.items()}

    @property
    def fixed_names(self) -> tuple[str, ...]:
        """The pair's names of the inputs that the search leaves as a seed has them."""
        return tuple(input_.name for input_ in self._fixed)

    def load(
        self, path: Path, choice: SeedChoice = ALL_SEEDS, classes: Sequence[str] = ()
    ) -> Seeds:
        """Load seeds as those of the pair are given.

        Args:
            path: path of an `.npz` file, or a folder.
            choice: says which of them are taken.
            classes: the pair's names of the decisions, by which sub-folders are labels.

        Raises:
            UserError: there are none, or they do not fit.

        """
        several = len(self._at) > 1
        if several and path.is_dir():
            raise UserError(
                f"seeds {path}: of a model with several inputs they are one .npz file, which has an"
                " array for each input: " + ", ".join(self._at)
            )

        def loaded(input_: PairInput, shape: tuple[int, ...]) -> Seeds:
            array = input_.array or (input_.name if input_.domain == "array" or several else "")
            # Of several arrays each is read whole, so that unlike numbers of seeds are noticed.
            mine = ALL_SEEDS if several else choice
            return input_.opened_domain.load_seeds(path, shape, array, mine)

        parts = [
            loaded(input_, shape)
            for input_, shape in zip(self._searched, self._shapes, strict=True)
        ]
        fixed = {
            input_.name: loaded(input_, self.shape_of(input_)).inputs for input_ in self._fixed
        }
        counts = {len(part.inputs) for part in parts} | {len(rows) for rows in fixed.values()}
        if len(counts) > 1:
            raise UserError(
                f"seeds {path}: the arrays of {', '.join(self._at)} have different numbers of"
                f" seeds, {', '.join(map(str, sorted(counts)))}: give each input of each seed"
            )
        first = self._with_class_labels(parts[0], path)
        if self._task.class_labels:
            first = with_folder_labels(first, classes)
        if len(parts) == 1 and not fixed:
            return self._with_targets(first, path, choice)
        whole = [part.inputs.reshape(len(part), -1) for part in parts]
        inputs = first.inputs if len(parts) == 1 else np.concatenate(whole, axis=1)
        places = choice.places(len(first), first.labels)
        seeds = replace(
            first,
            inputs=take(inputs, places),
            labels=None if first.labels is None else take(first.labels, places),
            names=tuple(first.names[place] for place in places),
            fixed={name: take(rows, places) for name, rows in fixed.items()},
            ids=ids_of(places),
        )
        return self._with_targets(seeds, path, choice)

    def _with_targets(self, seeds: Seeds, path: Path, choice: SeedChoice) -> Seeds:
        """Return seeds with what the array `targets` of their file says is right."""
        arrays = {input_.array or input_.name for input_ in (*self._searched, *self._fixed)}
        targets = None if "targets" in arrays else targets_of(path)
        if targets is None:
            return seeds
        if seeds.labels is not None:
            raise UserError(f"seeds {path} have both labels and targets: remove what is not right")
        count, at = len(seeds), [*seeds.seed_ids]
        if len(targets) <= at[-1] or (choice.takes_all and len(targets) > count):
            raise UserError(
                f"seeds {path}: there are {len(targets)} targets, expected one for each of"
                f" {max(count, at[-1] + 1)} seeds"
            )
        return replace(seeds, targets=targets[at])

    def _with_class_labels(self, seeds: Seeds, path: Path) -> Seeds:
        """Return seeds without labels where they are several for each, and no classes."""
        labels = seeds.labels
        if labels is None or labels.ndim == 1:
            return seeds
        several = f"labels are {labels.shape[1]} integers for each seed"
        if self._task.class_labels:
            raise UserError(f"seeds {path}: {several}, expected one integer for each seed: a class")
        note = f"{several}: the task {self._task.name} ignores them"
        return replace(seeds, labels=None, notes=(note,))

    @property
    def features(self) -> ModelInputs | None:
        """These inputs before they are quantized, in float32.

        None where the pair's task does not read them, or no input is quantized.
        """
        floats = float_tensors(self._tensors)
        if not self._task.reads_features or floats == self._tensors:
            return None
        made = copy(self)
        made._tensors = floats
        return made

    def given(self, seeds: Seeds) -> GivenRows:
        """Return what the model is given for some inputs, each with the id of its seed."""
        features = self.features
        rows, real = (
            None
            if inputs is None
            else model_rows(inputs.encoder(), inputs.fixed(seeds), seeds.inputs, seeds.seed_ids)
            for inputs in (self, features)
        )
        assert rows is not None  # noqa: S101 - of the inputs themselves
        return GivenRows(rows, real)

    def encoder(self) -> Encoder:
        """Return what encodes searched inputs: for the only input, or rows of all searched ones."""
        encoders = [*map(self._encoder, self._searched)]
        if len(encoders) == 1:
            return encoders[0]
        tensors = [self.tensor(input_) for input_ in self._searched]
        return _JoinedEncoder(encoders, tensors, self._sizes, self._shapes)

    def fixed(self, seeds: Seeds) -> FixedInputs | None:
        """Return the inputs that the search leaves as a seed has them; None where there are none.

        Several searched ones are put into the order of the model's inputs by it too.
        """
        if len(self._at) == 1:
            return None
        encoded = {
            self._at[input_.name]: self._encoder(input_).encode(seeds.fixed[input_.name])
            for input_ in self._fixed
        }
        searched = tuple(self._at[input_.name] for input_ in self._searched)
        return FixedInputs(self._tensors, searched, encoded, seeds.place)


@dataclass(frozen=True, slots=True)
class FixedInputs:
    """What a model takes beside the searched inputs: of each seed, already encoded.

    Attributes:
        tensors: all inputs of the model, in its order.
        searched: the positions of the searched ones among them, in the order of the pair.
        encoded: the others by their positions, (seeds, *row) each.
        place: where a seed is among them, by its id.

    """

    tensors: tuple[Tensor, ...]
    searched: tuple[int, ...]
    encoded: Mapping[int, NDArray[np.generic]]
    place: Callable[[int], int]

    def beside(self, encoded: NDArray[np.generic], seed_ids: Sequence[int]) -> NDArray[np.generic]:
        """Return the rows of a batch for the model; see `pack_rows`.

        Args:
            encoded: the batch as the encoder of the searched inputs made it.
            seed_ids: the seed of each input of it.

        """
        # Nothing is beside inputs that are all searched, and these may be of other seeds.
        places = [*map(self.place, seed_ids)] if self.encoded else []
        arrays = {at: rows[places] for at, rows in self.encoded.items()}
        mine = unpack_rows([self.tensors[at] for at in self.searched], encoded)
        arrays |= dict(zip(self.searched, mine, strict=True))
        return pack_rows(self.tensors, [arrays[at] for at in range(len(self.tensors))])


def model_rows(
    encoder: Encoder, fixed: FixedInputs | None, inputs: NDArray[Any], seed_ids: Sequence[int]
) -> NDArray[np.generic]:
    """Return the rows that a model takes for inputs of these seeds.

    Args:
        encoder: encoder of the inputs that are searched.
        fixed: what the model takes beside them; None where that is nothing.
        inputs: (batch, *shape).
        seed_ids: the seed of each of them.

    """
    encoded = encoder.encode(inputs)
    return encoded if fixed is None else fixed.beside(encoded, seed_ids)


@dataclass(frozen=True, slots=True)
class _Axes:
    """How a model has an array whose channels come first where those of the seeds are last.

    Attributes:
        seed: the shape in the seeds.
        squeezed: the same without dimensions of 1.
        source: the axis of `squeezed` that moves.
        destination: the axis that it moves to.
        shape: the shape in the model.

    """

    seed: tuple[int, ...]
    squeezed: tuple[int, ...]
    source: int
    destination: int
    shape: tuple[int, ...]

    @classmethod
    def between(cls, seed: tuple[int, ...], shape: tuple[int, ...]) -> _Axes | None:
        """Return the axis that moves from one end to the other; None where none does."""
        squeezed = without_ones(seed)
        ends = {
            (-1, 0): (*squeezed[-1:], *squeezed[:-1]),
            (0, -1): (*squeezed[1:], *squeezed[:1]),
        }
        for (source, destination), moved in ends.items():
            if moved == without_ones(shape):
                return cls(seed, squeezed, source, destination, shape)
        return None


class _TransposingEncoder:
    """Encodes arrays as the seeds have them, and moves an axis then."""

    def __init__(self, encoder: DifferentiableEncoder, axes: _Axes) -> None:
        self._encoder, self._axes = encoder, axes

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Return the rows of a batch, in the model's shape."""
        axes, count = self._axes, len(inputs)
        encoded = self._encoder.encode(inputs).reshape(count, *axes.squeezed)
        # Axes from the end stand where they do without the batch, those from the start behind it.
        source, destination = (
            axis if axis < 0 else axis + 1 for axis in (axes.source, axes.destination)
        )
        moved = np.moveaxis(encoded, source, destination)
        return np.ascontiguousarray(moved).reshape(count, *axes.shape)

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by the values of an array as the seeds have it."""
        axes = self._axes
        moved = gradient.reshape(without_ones(axes.shape))
        return self._encoder.pulled_back(np.moveaxis(moved, axes.destination, axes.source))


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
    known = ", ".join(f"{tensor.name!r} {tensor.shape}" for tensor in tensors) or "none"
    if len(described) == len(tensors) == 1 and not described[0].tensor:
        return {described[0].name: 0}
    if len(described) == 1 and not described[0].name:
        raise UserError(
            f"{model} has {len(tensors)} inputs ({known}), and the pair describes one: write an"
            " [inputs.NAME] for each into pair.toml, and [state] for those that an output feeds"
        )
    named = {input_.tensor_name for input_ in described}
    free = [n for n, tensor in enumerate(tensors) if tensor.name not in named]
    found: dict[str, int] = {}
    for input_ in described:
        fitting = _fitting(input_, tensors, free, like)
        if len(described) == len(tensors) == 1:
            fitting = [0]
        if len(fitting) != 1:
            raise UserError(
                f"{model} has no input {input_.tensor_name!r}: its inputs are {known}; say which it"
                f' is with tensor = "…" under [inputs.{input_.name}]'
            )
        found[input_.name] = fitting[0]
    _require_each_once(
        found, [tensor.name for tensor in tensors], f"{model} has {len(tensors)} inputs ({known})"
    )
    return found


def _fitting(
    input_: PairInput,
    tensors: Sequence[Tensor],
    free: Sequence[int],
    like: Mapping[str, Tensor] | None,
) -> list[int]:
    """Return the positions that a described input may have: of its name, else of its shape.

    The pair's other model may call it by the pair's own name, where the first does not.
    """
    for name in (input_.tensor_name, input_.name) if like else (input_.tensor_name,):
        by_name = [n for n, tensor in enumerate(tensors) if tensor.name == name]
        if by_name:
            return by_name[:1]
    if not like:
        return []
    other = like[input_.name]
    alike = [n for n in free if without_ones(tensors[n].shape) == without_ones(other.shape)]
    return alike or [n for n in free if _take_the_same(input_, tensors[n], other)]


def _take_the_same(one: PairInput, tensor: Tensor, other: Tensor) -> bool:
    """Whether two inputs take the same inputs, as those do that have channels first and last."""
    try:
        shapes = [one.opened_domain.input_shape(of) for of in (tensor, other)]
    except UserError:
        return False
    return shapes[0] == shapes[1]


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
