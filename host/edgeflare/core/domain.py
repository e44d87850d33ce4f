"""The seam of domains: what the inputs of a pair are, how they are encoded, how near they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, log10, sqrt
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edgeflare.core.input_space import Distances, Input, InputSpace
from edgeflare.core.seeds import ALL_SEEDS, SeedChoice, Seeds
from edgeflare.core.tensor import Tensor
from edgeflare.core.views import InputView, view_by_shape
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
        suffix: suffix of the files in which inputs are stored, with the dot; no other domain has
            it, since it tells how a file is read.
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

    def window_count(self) -> int | None:
        """Return how many windows an input has; None where it has none, or settings do not say."""
        return None

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
                `(frames, *shape)`.
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
            shape: shape that each input has to have.
            array: the name of the array of an `.npz`; where it is empty, what the domain's arrays
                are called.
            choice: choice of the seeds that are taken, whose positions are then in `ids`. The
                others need not be read.

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
    def encode_file(self, input_: Input) -> bytes:
        """Return the content of a file that keeps an input without loss."""

    @staticmethod
    @abstractmethod
    def decode_file(data: bytes) -> Input | None:
        """Return the input that a file keeps; None where it is none, or damaged."""

    def view(self, input_: Input) -> InputView:
        """Return how an input is shown; numbers as curves or bars unless overridden."""
        return view_by_shape(input_, self.space)

    def view_file(self, data: bytes) -> InputView | None:
        """Return how a stored input is shown; None where the file holds none, or is damaged.

        Overridden where a file says more than the input it keeps, such as a sample rate.
        """
        one = self.decode_file(data)
        return None if one is None else self.view(one)

    @abstractmethod
    def fingerprint(self, input_: Input) -> Any:
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

    def nearness_db(self, input_: Input, seed: Input) -> float:
        """Return how near an input is to its seed, in dB: larger is nearer, infinite for equal."""
        peak = self.space.span
        if not isfinite(peak):
            peak = float(np.sqrt(np.square(self.space.levels(seed)).mean()))
        return decibels(peak, self.distances(input_, seed).l2, input_.size)

    def distances(self, input_: Input, seed: Input) -> Distances:
        """Return how far an input is from its seed, as the document of a run says it."""
        return self.space.distances(input_, seed)


class Encoder(Protocol):
    """Turns inputs of a domain into the values of one of a model's inputs."""

    def encode(self, inputs: NDArray[Any]) -> NDArray[np.generic]:
        """Return inputs as the model takes them.

        Args:
            inputs: (batch, *shape), of the domain.

        Returns:
            (batch, *input shape without its batch dimension), C-contiguous, in the input's dtype.
            What one input becomes does not depend on what else is in the batch.

        Raises:
            UserError: the inputs are not of the size that the model takes.

        """


@runtime_checkable
class DescribedEncoder(Encoder, Protocol):
    """An encoder that says what the model is given, for a dry run."""

    def describe(self) -> str:
        """Return shape, type and layout of the model's input, and what it is given for extremes."""


@runtime_checkable
class DifferentiableEncoder(Encoder, Protocol):
    """An encoder each of whose outputs is a multiple of one value of the input, plus a constant."""

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by the values of an input, given that by what the input becomes.

        Args:
            gradient: gradient by the real values that the model takes, before they are quantized;
                of as many values as one input has.

        Returns:
            As many values, in the order of those of the input.

        """


@dataclass(frozen=True, slots=True)
class NearnessMeasure:
    """A measure of how near an input is to its seed, in dB; larger is nearer.

    Attributes:
        name: as reports write it.
        within: the least at which a deviation counts, unless told otherwise.
        curve: two ends of the measure between which the share of seeds is drawn.

    """

    name: str
    within: float
    curve: tuple[float, float]


PSNR = NearnessMeasure("PSNR", within=30.0, curve=(10.0, 60.0))
"""The peak signal-to-noise ratio: 20 log10 of the span of values over the change, root mean square.
From 81 levels of an image, just within the default bound of a search, to a quarter of one."""

SNR = NearnessMeasure("SNR", within=20.0, curve=(0.0, 50.0))
"""The signal-to-noise ratio: the same with the seed's own root mean square in place of the span.
The contrast of images is 54 to 83 gray levels, 9.8 to 13.5 dB below their span, and that of spoken
words as many levels. So each figure is 10 dB below that of PSNR."""


def decibels(peak: float, l2: float, values: int) -> float:
    """Return 20 log10(peak sqrt(values) / l2): infinite for no change, -infinite for no peak.

    Args:
        peak: what a change is compared with, in levels.
        l2: Euclidean length of the change, in levels.
        values: number of values of the input.

    """
    if l2 == 0.0:
        return inf
    return 20.0 * log10(peak * sqrt(values) / l2) if peak else -inf
