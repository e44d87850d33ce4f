"""The seam of domains: what the inputs of a pair are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from edgeflare.core.encoder import Encoder
from edgeflare.core.input_space import Distances, Input, InputSpace
from edgeflare.core.input_view import InputView, view_by_shape
from edgeflare.core.nearness_measure import PSNR, SNR, NearnessMeasure, decibels
from edgeflare.core.seed_choice import ALL_SEEDS, SeedChoice
from edgeflare.core.seeds import Seeds
from edgeflare.core.tensor import Tensor
from edgeflare_operators import MutationOperator


class Domain(ABC):
    """What the inputs of a pair are, such as images.

    A package makes a domain known by an entry point, under the name that `pair.toml` has as
    `domain`:

        [project.entry-points."edgeflare.domains"]
        image = "my_package:ImageDomain"

    It is constructed with the keys of the input's table in `pair.toml` as keyword arguments, each
    of the type of its annotation; a key without a default has to be given. The constructor raises
    UserError where a value is out of its range.

    Attributes:
        name: as users write it; also the domain of its mutation operators.
        suffix: of the files in which inputs are stored, with the dot; no other domain has it, since
            it tells how a file is read.
        space: the values that inputs may have.
        default_linf: levels that one value of a mutant may differ from its seed, unless told
            otherwise; None for no bound.
        default_rms: the same of all values, root mean square.

    """

    name: ClassVar[str]
    suffix: ClassVar[str]
    space: InputSpace
    default_linf: ClassVar[float | None] = 250.0
    default_rms: ClassVar[float | None] = 90.0

    def paper_operators(self) -> tuple[MutationOperator, ...]:
        """Return the operators of DFlare's paper for such inputs; none unless overridden."""
        return ()

    def published_operators(self) -> tuple[MutationOperator, ...]:
        """Return those of its published code, in its order; the paper's unless overridden."""
        return self.paper_operators()

    def bound(self, operator: MutationOperator) -> MutationOperator:
        """Return an operator that knows what inputs of this very domain may hold.

        The same one unless overridden: most operators see that from the input.
        """
        return operator

    @abstractmethod
    def input_shape(self, tensor: Tensor, model: str = "the model") -> tuple[int, ...]:
        """Return the shape of the inputs that are encoded for an input of a model.

        Args:
            tensor: the model's input; of a model that is run frame by frame a whole clip of it,
                (frames, *shape).
            model: what the user calls the model, for messages.

        Raises:
            UserError: the model's input takes nothing of this domain.

        """

    @abstractmethod
    def seed_files(self, path: Path) -> list[Path]:
        """Return the files of which seeds at a path consist, in their order."""

    @abstractmethod
    def load_seeds(
        self, path: Path, shape: tuple[int, ...], array: str, choice: SeedChoice = ALL_SEEDS
    ) -> Seeds:
        """Load seeds.

        Args:
            path: an `.npz` file or a folder of files.
            shape: that each has to have.
            array: the name of the array of an `.npz`; where it is empty, what the domain's arrays
                are called.
            choice: which of them are taken; `ids` then says which those are. The others need not
                be read.

        Raises:
            UserError: there are none, or one is not of this domain and shape.

        """

    @abstractmethod
    def encoder(self, tensor: Tensor) -> Encoder:
        """Return what encodes inputs for an input of a model; see `input_shape`.

        Raises:
            UserError: the model's input takes nothing of this domain.

        """

    @abstractmethod
    def encode_file(self, one: Input) -> bytes:
        """Return the content of a file that keeps an input without loss."""

    @staticmethod
    @abstractmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the input that a file keeps; None where it is none, or damaged."""

    def view(self, one: Input) -> InputView:
        """Return how an input is shown; numbers as curves or bars unless overridden."""
        return view_by_shape(one, self.space)

    def view_file(self, data: bytes) -> InputView | None:
        """Return how a stored input is shown; None where the file holds none, or is damaged.

        Overridden where a file says more than the input it keeps, such as a sample rate.
        """
        one = self.decode_file(data)
        return None if one is None else self.view(one)

    @abstractmethod
    def fingerprint(self, one: Input) -> Any:
        """Return what tells whether two inputs are near duplicates."""

    @abstractmethod
    def count_near(self, fingerprints: Sequence[Any]) -> int:
        """Return how many inputs are near to, or equal to, another one, by their fingerprints."""

    @property
    def nearness_measure(self) -> NearnessMeasure:
        """The measure of `nearness_db`: PSNR where the values have limits, and SNR elsewhere.

        SNR depends on where a unit has its zero, as that of temperatures does.
        """
        return PSNR if isfinite(self.space.span) else SNR

    def nearness_db(self, one: Input, seed: Input) -> float:
        """Return how near an input is to its seed, in dB: larger is nearer, infinite for equal."""
        peak = self.space.span
        if not isfinite(peak):
            peak = float(np.sqrt(np.square(self.space.levels(seed)).mean()))
        return decibels(peak, self.distances(one, seed).l2, one.size)

    def distances(self, one: Input, seed: Input) -> Distances:
        """Return how far an input is from its seed, as the document of a run says it."""
        return self.space.distances(one, seed)
