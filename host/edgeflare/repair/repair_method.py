"""The seam of repair methods: what each is to say of itself, fit and write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

import numpy as np

from edgeflare.errors import UserError
from edgeflare.repair.candidate_details import NO_DETAILS, CandidateDetails
from edgeflare.repair.fitting.float_model import Recipe
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.repair_candidate import (
    CandidatePlan,
    Effort,
    RepairCandidate,
    StepProgress,
)
from edgeflare.repair.repair_request import RepairRequest

IN_PLACE: Final = ("ranges", "rounding")
"""The chain behind which other methods go on."""


class RepairMethod(ABC):
    """A method that changes a compressed model by what it fits to the original.

    A package makes it known under the name that `--method` takes by an entry point:

        [project.entry-points."edgeflare.repair_methods"]
        halve-biases = "my_package:HalveBiases"

    What it writes is a candidate under the same name, and is checked, timed and judged like all
    others: so it need not know whether it gains. Plans of its own may name others, of which one
    step is the method's name, or begins with that and "-". All draws are from `new_rng`.

    Attributes:
        in_place: whether the file keeps its length, its operators and their order; one that does
            not is refused.
        integers: whether nothing is computed in float that was not before.
        automatic: whether "auto" tries it.
        differentiates: whether it needs jax.
        request: what is asked.

    """

    in_place: ClassVar[bool] = False
    integers: ClassVar[bool] = False
    automatic: ClassVar[bool] = True
    differentiates: ClassVar[bool] = False

    def __init__(self, request: RepairRequest) -> None:
        """Take what is asked; nothing is fitted yet."""
        self.request = request

    @abstractmethod
    def fit(self, network: QuantizedNetwork, progress: StepProgress) -> Any:
        """Return what is fitted, in a form that `write` knows.

        Args:
            network: the two models, their layers side by side, and at least one input to fit with.
            progress: is to be told how much is done, and of how much.

        Raises:
            UserError: the method cannot serve these models; the line says why, and others go on.

        """

    def write(self, network: QuantizedNetwork, fitted: Any) -> bytes:
        """Return the compressed model's `.tflite` file with what was fitted; raises as `fit`.

        Where fitting goes layer by layer through the file, that file is what was fitted.
        """
        del network
        content: bytes = fitted
        return content

    def changed(self, network: QuantizedNetwork, fitted: Any) -> QuantizedNetwork:
        """Return the network with what was fitted, to which further methods are fitted."""
        return network.with_content(self.write(network, fitted))

    def recipe(self, fitted: Any) -> Recipe | None:
        """Return what the quantizer makes the file by; None where it does not make it."""
        del fitted
        return None

    def plans(self, name: str, chains: FitChains) -> Sequence[CandidatePlan]:
        """Return how candidates are made; here one, of the network as it came.

        Args:
            name: the method's.
            chains: fit methods one after the other, to which further ones are fitted.

        """
        return (chains.plan(name, name),)

    def new_rng(self) -> np.random.Generator:
        """Return a generator of the repair's seed: each candidate has the same draws of its own."""
        return np.random.default_rng(self.request.rng_seed)


class FitChains:
    """Methods fitted one after the other to one network, each beginning of a chain once.

    A chain is the names of methods, as in a candidate's name: "ranges+rounding".
    """

    def __init__(
        self, methods: Mapping[str, RepairMethod], network: QuantizedNetwork | None
    ) -> None:
        """Take methods by name, and the network; nothing is fitted yet.

        Args:
            methods: all that a chain may name.
            network: the network as it came; None where plans are only to be named.

        """
        self._methods = methods
        self._fitted: dict[tuple[str, ...], Any] = {}
        self._networks: dict[tuple[str, ...], QuantizedNetwork] = {}
        if network is not None:
            self._networks[()] = network

    @property
    def network(self) -> QuantizedNetwork:
        """The network as it came."""
        return self._networks[()]

    def fitted(self, chain: tuple[str, ...], progress: StepProgress) -> Any:
        """Return what the last method of a chain fits; raises as the methods do."""
        if chain not in self._fitted:
            before = self.after(chain[:-1], progress)
            self._fitted[chain] = self._methods[chain[-1]].fit(before, progress)
        return self._fitted[chain]

    def after(self, chain: tuple[str, ...], progress: StepProgress) -> QuantizedNetwork:
        """Return the network after a chain, which may be empty; raises as the methods do."""
        if chain not in self._networks:
            before, fitted = self.after(chain[:-1], progress), self.fitted(chain, progress)
            self._networks[chain] = self._methods[chain[-1]].changed(before, fitted)
        return self._networks[chain]

    def farthest(self, progress: StepProgress, *, rewrites: bool = True) -> tuple[str, ...]:
        """Return the longest chain that the network allows; operators are rewritten if wanted."""
        done: tuple[str, ...] = ()
        for step in ("rewrites", "equalization") if rewrites else ("equalization",):
            with suppress(UserError):  # nothing to rewrite, or no channels to scale
                self.after((*done, step), progress)
                done = (*done, step)
        return (*done, *IN_PLACE)

    def candidate(
        self, chain: tuple[str, ...], progress: StepProgress, details: CandidateDetails = NO_DETAILS
    ) -> RepairCandidate:
        """Return the network after a chain as a candidate; raises as the methods do."""
        content = self.after(chain, progress).content
        in_place = all(self._methods[step].in_place for step in chain)
        recipe = None
        for number, step in enumerate(chain, 1):
            fitted = self.fitted(chain[:number], progress)
            recipe = self._methods[step].recipe(fitted) or recipe
        return RepairCandidate("+".join(chain), content, recipe, details, in_place=in_place)

    def plan(self, chain: str, method: str, effort: Effort = Effort.SECONDS) -> CandidatePlan:
        """Return the plan of that candidate of a method."""
        steps = tuple(chain.split("+"))
        return CandidatePlan(chain, method, lambda told: (self.candidate(steps, told),), effort)
