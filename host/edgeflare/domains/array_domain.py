"""The domain of arrays: numbers of sensors, tables and features, between bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isnan, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.array_file import NotArrays, decode_npz, encode_npz, read_npy
from edgeflare.core.domain import Domain, Encoder
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds, ids_of, take
from edgeflare.core.tensor import Rounding, Tensor, quantize, row_layout, without_ones
from edgeflare.domains.seed_files import (
    chosen_files,
    labels_of,
    read_npz,
    require_seeds,
    seed_files,
)
from edgeflare.domains.windows import FeatureWindows, Windows
from edgeflare.errors import UserError
from edgeflare.record.json_types import JsonValue

DTYPES = ("float32", "int8", "uint8", "int16", "uint16", "int32")
"""Types that arrays may have: float32, and the integers that float64 computes with exactly."""

LEVELS = 255.0
"""Levels from the lower bound to the upper one, as many as an image has."""

MOST_RMS = 2.0
"""Levels, root mean square, between two arrays that are near duplicates, at most."""


class ArrayDomain(Domain):
    """Arrays of shape (time, channels) or (values,), stored as `.npz`."""

    name = "array"
    suffix = ".npz"

    def __init__(
        self,
        dtype: str = "float32",
        lowest: float = -inf,
        highest: float = inf,
        level: float | None = None,
        mean: tuple[float, ...] | float = 0.0,
        std: tuple[float, ...] | float = 1.0,
        rounding: Rounding = "half-away",
        windows: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Take arrays of one type between bounds.

        Args:
            dtype: one of `DTYPES`.
            lowest: the least that a value may be, in its own unit; -inf for no bound, which for an
                integer type is the type's.
            highest: the most; likewise.
            level: the step that a search counts in, in the values' unit; unless given, `LEVELS` of
                them lie between the bounds, and it is 1 where there is no bound.
            mean: what the model wants subtracted from the values; one number, or one for each value
                along the last axis.
            std: what it wants them divided by then, likewise.
            rounding: rounding of a quantized input, see `quantize`.
            windows: `length` and `step` of the windows along the first axis that a model is given
                one after the other, see `Windows`; None where it is given whole arrays.

        Raises:
            UserError: the type is none of these, the bounds are in the wrong order or have nothing
                of the type between them, or the level or std is not above 0.

        """
        if dtype not in DTYPES:
            raise UserError(f"dtype has to be one of {', '.join(DTYPES)}, not {dtype!r}")
        lowest, highest = _bounds_within(dtype, lowest, highest)
        if level is None:
            spread = highest - lowest
            level = spread / LEVELS if np.isfinite(spread) else 1.0
        if not (np.isfinite(level) and level > 0):
            raise UserError(f"level has to be a finite number above 0, not {level}")
        self._mean, self._std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
        if not (np.isfinite(self._mean).all() and np.isfinite(self._std).all()):
            raise UserError("mean and std have to be finite numbers")
        if not (self._std > 0).all():
            raise UserError(f"std has to be above 0, not {std}")
        self._rounding: Rounding = rounding
        self._windows = Windows.of(windows)
        self.space = InputSpace(dtype, lowest, highest, cell_axes=1, level=level)

    def input_shape(self, tensor: Tensor, model: str = "the model") -> tuple[int, ...]:
        """Return the tensor's own shape, without a batch dimension of 1; of windows all rows."""
        if self._windows is not None:
            tensor = self._windows.whole(tensor, model)
        if prod(tensor.shape) < 1:
            raise UserError(f"{model}: input {tensor.name!r} has no values, {tensor.shape}")
        shape, _ = row_layout([tensor])
        return shape or (1,)

    @staticmethod
    def seed_files(path: Path) -> list[Path]:
        """Return an `.npz` itself, or the `.npy` files of a folder."""
        return seed_files(path, ARRAY_SUFFIXES)

    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str = "", choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load arrays: the array `inputs` of an `.npz` unless told otherwise, or a folder."""
        return load_array_seeds(path, self.space, shape, choice, array or "inputs")

    def encoder(self, tensor: Tensor) -> Encoder:
        """Return what scales arrays, and quantizes them.

        Raises:
            UserError: mean or std does not fit the model's input.

        """
        windows = self._windows
        whole = tensor if windows is None else windows.whole(tensor)
        encoder = ArrayEncoder(self._mean, self._std, whole, self._rounding)
        if windows is None:
            return encoder
        return FeatureWindows(windows, encoder, whole.shape[0], tensor)

    @staticmethod
    def encode_file(input_: Input) -> bytes:
        """Return the `.npz` file of an array."""
        return encode_npz({"array": input_})

    @staticmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the array of an `.npz` file; None where it is none of a type of `DTYPES`."""
        one = decode_npz("array", data)
        return one if one is not None and one.dtype.name in DTYPES else None

    def fingerprint(self, input_: Input) -> NDArray[np.float64]:
        """Return the array in levels, (values,)."""
        return self.space.levels(input_).ravel()

    @staticmethod
    def count_near(fingerprints: Sequence[NDArray[np.float64]]) -> int:
        """Return how many arrays another one is near to, or equals; all are of one shape."""
        if not fingerprints:
            return 0
        every = np.stack(fingerprints)
        most = MOST_RMS**2 * every.shape[1]
        return sum(
            int(np.count_nonzero(np.square(every - row).sum(1) <= most) > 1)
            for row in every  # each is near to itself
        )


def _bounds_within(dtype: str, lowest: float, highest: float) -> tuple[float, float]:
    """Return bounds, those of an integer type where there are none."""
    limits = np.finfo(dtype) if dtype == "float32" else np.iinfo(dtype)
    if dtype != "float32":
        lowest = float(limits.min) if lowest == -inf else lowest
        highest = float(limits.max) if highest == inf else highest
        if any(float(bound) != np.rint(bound) for bound in (lowest, highest) if not isnan(bound)):
            raise UserError(
                f"the bounds of {dtype} have to be whole numbers, not {lowest:g} and {highest:g}"
            )
    if not lowest < highest:
        raise UserError(
            f"the lower bound has to be below the upper one, not {lowest:g} and {highest:g}"
        )
    if any(np.isfinite(b) and not limits.min <= b <= limits.max for b in (lowest, highest)):
        raise UserError(
            f"the bounds {lowest:g} and {highest:g} are beyond what {dtype} holds, "
            f"{limits.min} to {limits.max}: give another dtype or other bounds"
        )
    return lowest, highest


class ArrayEncoder:
    """Encodes arrays as a model's input: (value - mean) / std, quantized."""

    def __init__(
        self,
        mean: NDArray[np.float64],
        std: NDArray[np.float64],
        tensor: Tensor,
        rounding: Rounding = "half-away",
    ) -> None:
        """Take what is subtracted and divided by: one number, or one along the last axis.

        Raises:
            UserError: they are neither.

        """
        self._row, _ = row_layout([tensor])
        last = self._row[-1] if self._row else 1
        for key, values in (("mean", mean), ("std", std)):
            if values.ndim and values.shape not in ((1,), (last,)):
                raise UserError(
                    f"{key} has {values.size} values, but input {tensor.name!r} has {last} along "
                    f"its last axis: give 1{f' or {last}' if last > 1 else ''}"
                )
        self._mean, self._std, self._tensor = mean, std, tensor
        self._rounding: Rounding = rounding

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Encode arrays.

        Args:
            inputs: (batch, *shape) of the domain's dtype.

        Returns:
            (batch, *input shape without a batch dimension of 1), C-contiguous, in the input's
            dtype.

        """
        rows = inputs.reshape(len(inputs), *self._row)
        scaled = (rows - self._mean) / self._std
        if self._tensor.dtype == "float32" or self._tensor.scale:
            scaled = scaled.astype(np.float32)  # as TFLite quantizes; else float32 loses digits
        return np.ascontiguousarray(quantize(scaled, self._tensor, self._rounding))

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by the values of an array; see `DifferentiableEncoder`."""
        return gradient.reshape(self._row) / self._std


ARRAY_SUFFIXES = (".npy",)
"""Suffixes of files that are read as arrays; other files are ignored."""


def load_array_seeds(
    path: Path,
    space: InputSpace,
    shape: tuple[int, ...],
    choice: SeedChoice = ALL_SEEDS,
    array: str = "inputs",
) -> Seeds:
    """Load seed arrays.

    Args:
        path: an `.npz` with an array of the name, (N, *shape), and maybe `labels`, integers (N,);
            or a folder of `.npy` files of one each, taken in the order of their names.
        space: the values that they may have.
        shape: shape of one; dimensions of 1 may differ.
        choice: says which of them are taken.
        array: the name of the array in an `.npz`.

    Raises:
        UserError: there are none, or one has another shape or type, or values that are not finite
            or beyond the bounds.

    """
    require_seeds(path, ".npy files")
    labels = None
    folders: tuple[str, ...] = ()
    if path.is_dir():
        found = chosen_files(path, ARRAY_SUFFIXES, choice)
        if not found.files:
            raise UserError(f"seeds {path}: the folder has no .npy files")
        names, ids, folders = found.names, found.ids, found.folders
        arrays = [
            _shaped(str(file), read_array(file)[np.newaxis], shape)[0] for file in found.files
        ]
        inputs: NDArray[Any] = np.stack(arrays)
    else:
        read = read_npz(path, (array, "labels"))
        labels = labels_of(path, read, len(read[array]), array)
        places = choice.places(len(read[array]), labels)
        labels, ids = None if labels is None else take(labels, places), ids_of(places)
        inputs = _shaped(f"{path}: {array}", take(read[array], places), shape)
        names = tuple(map(str, places.tolist()))
    return Seeds(_held(path, inputs, space, names), labels, names, ids=ids, folders=folders)


def read_array(file: Path) -> NDArray[Any]:
    """Return the array of an `.npy` file.

    Raises:
        UserError: it is none, or cannot be read.

    """
    try:
        return read_npy(file)
    except NotArrays as error:
        raise UserError(
            f"seeds: {file} is no .npy file of numbers ({error}): correct or remove it"
        ) from error


def _shaped(what: str, arrays: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if not len(arrays):
        raise UserError(f"seeds {what}: there are none in it, {arrays.shape}")
    if without_ones(arrays.shape[1:]) != without_ones(shape):
        raise UserError(
            f"seeds {what}: one has shape {arrays.shape[1:]}, but the model takes {shape}: give "
            "seeds of that shape"
        )
    return arrays.reshape(len(arrays), *shape)


def _held(
    path: Path, inputs: NDArray[Any], space: InputSpace, names: Sequence[str]
) -> NDArray[Any]:
    """Return arrays in the type of a space; bools as 0 and 1."""
    if inputs.dtype == np.bool_:
        inputs = inputs.view(np.uint8)
    if not np.issubdtype(inputs.dtype, np.number) or np.iscomplexobj(inputs):
        raise UserError(f"seeds {path}: the arrays are {inputs.dtype}, expected {space.dtype}")
    finite = np.isfinite(inputs)
    if not finite.all():
        where = names[int(np.argwhere(~finite)[0][0])]
        raise UserError(
            f"seeds {path}: seed {where} has values that are not finite: correct or remove it"
        )
    limits = np.iinfo(space.dtype) if space.whole else np.finfo(space.dtype)
    lowest, highest = max(space.lowest, limits.min), min(space.highest, limits.max)
    outside = (inputs < lowest) | (inputs > highest)
    if outside.any():
        where = names[int(np.argwhere(outside)[0][0])]
        raise UserError(
            f"seeds {path}: seed {where} has values beyond the bounds {lowest:g} and "
            f"{highest:g}: widen lowest and highest, or remove it"
        )
    held = inputs.astype(space.dtype)
    if np.dtype(space.dtype).kind in "iu" and (held != inputs).any():
        raise UserError(f"seeds {path}: values are no whole numbers, but dtype is {space.dtype}")
    return np.ascontiguousarray(held)
