"""A domain of another package, and an operator on it: temperatures of rooms, from 0 to 40 °C."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.domain import Domain, Encoder
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds
from edgeflare.core.tensor import Tensor
from edgeflare.domains.array_domain import ArrayEncoder, load_array_seeds
from edgeflare_operators import operator


class RoomTemperatures(Domain):
    """Temperatures in °C, (rooms,) float32, stored as their bytes."""

    name = "room-temperatures"
    suffix = ".celsius"
    space = InputSpace("float32", 0.0, 40.0, cell_axes=1, level=0.1)

    def __init__(self, *, comfortable: float = 20.0) -> None:
        """Take the temperature that the model has as 0."""
        self._comfortable = comfortable

    @staticmethod
    def input_shape(tensor: Tensor, _model: str = "the model") -> tuple[int, ...]:
        """Return (rooms,)."""
        return (prod(tensor.shape),)

    @staticmethod
    def seed_files(path: Path) -> list[Path]:
        """Return an `.npz` itself, or the files of a folder."""
        return sorted(path.iterdir()) if path.is_dir() else [path]

    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str, choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load the array `inputs`."""
        return load_array_seeds(path, self.space, shape, choice, array or "inputs")

    def encoder(self, tensor: Tensor) -> Encoder:
        """Return what subtracts the comfortable temperature."""
        return ArrayEncoder(np.array(self._comfortable), np.array(10.0), tensor)

    @staticmethod
    def encode_file(one: Input) -> bytes:
        """Return the bytes of the temperatures."""
        return bytes(one.astype("<f4").tobytes())

    @staticmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the temperatures of a file."""
        return None if len(data) % 4 else np.frombuffer(data, "<f4").copy()

    @staticmethod
    def fingerprint(one: Input) -> NDArray[np.float64]:
        """Return whole degrees."""
        return np.rint(one.astype(np.float64))

    @staticmethod
    def count_near(fingerprints: Sequence[NDArray[np.float64]]) -> int:
        """Return how many have the whole degrees of another one."""
        known = [one.tobytes() for one in fingerprints]
        return sum(known.count(one) > 1 for one in known)


@operator("open-window", domain="room-temperatures")
def open_window(rooms: Input, rng: np.random.Generator) -> Input:
    """Make one room colder, by up to 15 °C."""
    cooled = rooms.copy()
    cooled[rng.integers(rooms.size)] -= np.float32(rng.uniform(0.0, 15.0))
    kept: Input = np.clip(cooled, 0.0, 40.0).astype(rooms.dtype)
    return kept
