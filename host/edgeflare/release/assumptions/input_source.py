"""What lies where the inputs are: pictures, sounds, or arrays of some names and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare import array_file
from edgeflare.array_file import NotArrays
from edgeflare.core.tensor import without_ones
from edgeflare.domains.array_domain import ARRAY_SUFFIXES, read_array
from edgeflare.domains.audio.sound_seeds import SOUND_SUFFIXES
from edgeflare.domains.image.image_domain import IMAGE_SUFFIXES
from edgeflare.domains.seed_files import seed_files
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import GraphTensor

Kind: TypeAlias = Literal["pictures", "sounds", "arrays", "npz", ""]

NOT_INPUTS = ("labels", "targets", "names", "sample_rate")
"""Arrays of an `.npz` that say something about the inputs."""


@dataclass(frozen=True, slots=True)
class GivenInputs:
    """What lies where the inputs are.

    Attributes:
        path: path of a file or a folder.
        kind: what it holds; empty where that is not known, which whoever loads it says.
        files: files of that kind in a folder.
        arrays: arrays of an `.npz`, by their names; of a folder of `.npy` files one named "".
        objects: names of the arrays of an `.npz` that hold Python objects, and are not read.

    """

    path: Path
    kind: Kind = ""
    files: tuple[Path, ...] = ()
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    objects: tuple[str, ...] = ()

    @classmethod
    def at(cls, path: Path) -> GivenInputs:
        """Return what lies at a path.

        Raises:
            UserError: an `.npz` or an `.npy` file there is none, or arrays in a folder are unlike.

        """
        if path.suffix.lower() == ".npz" and path.is_file():
            try:
                archive = array_file.read_npz(path, array_file.names_without_objects(path))
            except NotArrays as error:
                raise UserError(
                    f"{path}: not an .npz file of arrays ({error}): write it with numpy.savez"
                ) from error
            objects = tuple(name for name in archive.names if name not in archive.arrays)
            return cls(path, "npz", arrays=archive.arrays, objects=objects)
        if not path.is_dir():
            return cls(path)
        found: dict[Kind, list[Path]] = {
            "pictures": seed_files(path, IMAGE_SUFFIXES),
            "sounds": seed_files(path, SOUND_SUFFIXES),
            "arrays": seed_files(path, ARRAY_SUFFIXES),
        }
        kind = max(found, key=lambda name: len(found[name]))
        if not found[kind]:
            return cls(path)
        arrays = {"": _stacked(found[kind])} if kind == "arrays" else {}
        return cls(path, kind, tuple(found[kind]), arrays)

    def fitting(self, tensor: GraphTensor, frames: int = 0) -> list[str]:
        """Return the names of the arrays that hold inputs of a tensor's shape, one for each label.

        Args:
            tensor: input tensor of the model.
            frames: whether they have another axis before, that of the frames of a clip.

        """
        wanted = without_ones(tensor.shape)
        said = [self.arrays[name] for name in ("labels", "targets") if name in self.arrays]
        return [
            name
            for name, array in self.arrays.items()
            if name not in NOT_INPUTS
            and array.dtype.kind in "biuf"
            and all(its.ndim and len(its) == len(array) for its in said if array.ndim)
            and array.size
            and array.ndim > 1 + frames
            and without_ones(array.shape[1 + frames :]) == wanted
        ]

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the sub-folders in which the files lie, in alphabetical order."""
        inside = {file.parent.name for file in self.files if file.parent != self.path}
        return tuple(sorted(inside))

    @property
    def listed(self) -> str:
        """The arrays, as messages list them."""
        known = [
            f"{name} {array.dtype} {array.shape}"
            for name, array in self.arrays.items()
            if name not in NOT_INPUTS
        ]
        known += [f"{name} of Python objects" for name in self.objects if name not in NOT_INPUTS]
        return ", ".join(known) or "none"


def _stacked(files: list[Path]) -> NDArray[Any]:
    """Return the arrays of files as one."""
    arrays = [read_array(file) for file in files]
    for file, array in zip(files, arrays, strict=True):
        if array.shape != arrays[0].shape:
            raise UserError(
                f"{files[0]} has the shape {arrays[0].shape} and {file} {array.shape}: give arrays"
                " of one shape"
            )
    return np.stack(arrays)
