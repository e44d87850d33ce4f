"""The candidates of a repair: which methods, alone and one after the other, may be tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from edgeflare.errors import UserError
from edgeflare.repair.builtin_methods import (
    METHODS,
    NO_DETAILS,
    CandidateDetails,
    RewriteDetails,
)
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.biases import fit_biases
from edgeflare.repair.fitting.channel_equalization import equalize_channels
from edgeflare.repair.fitting.own_steps import OwnSteps, give_own_steps
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.quantizer import fit_calibration, float_operators, weights_only
from edgeflare.repair.fitting.weight_rounding import RoundedLayer, fit_rounding, round_original
from edgeflare.repair.precision.blocks import joined_tail
from edgeflare.repair.precision.precision_candidates import precision_candidates
from edgeflare.repair.repair_candidate import CandidateMaker, RepairCandidate, StepProgress
from edgeflare.repair.repair_method import OTHERS, fitted_by_other, method_kind
from edgeflare.repair.repair_request import RepairRequest


@dataclass(frozen=True, slots=True)
class CandidatePlan:
    """How one candidate or several are made.

    Attributes:
        name: name of its candidate, the steps joined by "+", or of what makes several.
        method: the method that it is a candidate of.
        make: makes it, or them, of a network.
        instead_of: the method in whose place "auto" tries this plan, where none of its candidates
            is judged, such as those that are too slow; None where the plan is always tried.

    """

    name: str
    method: str
    make: Callable[[QuantizedNetwork, StepProgress], Sequence[RepairCandidate]]
    instead_of: str | None = None

    def of(self, network: QuantizedNetwork) -> CandidateMaker:
        """Return what makes the candidates of a network."""
        make = partial(self.make, network)
        return CandidateMaker(self.name, self.method, make, self.instead_of)


def candidate_plans(request: RepairRequest) -> list[CandidatePlan]:
    """Return the plans that a request allows, those that take least time to fit first.

    Shifts are none of them, since they are not fitted to a network: for them alone it is empty.

    They share what is fitted for several of them, so that they are for one network.

    Raises:
        UserError: the request allows none.

    """
    method = request.method
    if method != "auto":
        method_kind(method)  # refuses what there is not
    found = [plan for plan in _plans(request) if request.asks_for(plan.method)]
    found += [_of_others(name) for name in _others(request)]
    if method != "auto":
        found = [replace(candidate_plan, instead_of=None) for candidate_plan in found]
    if request.in_place:
        found = [plan for plan in found if method_kind(plan.method).in_place]
        if not found:
            raise UserError(f"--method {method} rewrites the model: leave --in-place away")
    if request.target != "float":
        found = [plan for plan in found if method_kind(plan.method).integers]
        if not found:
            *some, last = (name for name, kind in METHODS.items() if kind.integers)
            raise UserError(
                f"--method {method} computes in float, which --target {request.target} cannot: say"
                f" --target float, or --method {', '.join(some)} or {last}"
            )
    return found


def packages_of_others(request: RepairRequest) -> tuple[str, ...]:
    """Return the packages whose methods a request asks for, with their versions."""
    return tuple(OTHERS.package(name) for name in _others(request))


def _others(request: RepairRequest) -> list[str]:
    """Return the methods of other packages that are asked for; of one name ours is taken."""
    others = (name for name in OTHERS.names() if name not in METHODS)
    return [name for name in others if request.asks_for(name)]


def _plans(request: RepairRequest) -> list[CandidatePlan]:
    """Return all plans, those that take seconds to fit before those that round weights."""
    shared = _SharedFits()
    return [
        _rewrites(shared),
        _by_steps(shared, "bias", "bias"),
        _by_steps(shared, "ranges", "ranges"),
        _by_steps(shared, "calibration", "calibration"),
        _by_steps(shared, "calibration+ranges", "calibration"),
        _float_head(shared, ()),
        _float_head(shared, ("ranges",)),
        CandidatePlan("float-tail", "precision", _float_tail),
        _weights_only(shared, rounded=False),
        _by_steps(shared, "rounding", "rounding"),
        _by_steps(shared, "ranges+rounding", "rounding"),
        _by_steps(shared, "equalization+ranges+rounding", "equalization"),
        _weights_only(shared, rounded=True),
        _precision_search(shared),
        _learning(shared, request),
        _dare(shared, request),
    ]


def _of_others(name: str) -> CandidatePlan:
    """Return the plan of a method of another package."""

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        return (RepairCandidate(name, fitted_by_other(name, network, progress), None),)

    return CandidatePlan(name, name, make)


_STEPS: Mapping[str, Callable[[QuantizedNetwork, StepProgress], bytes]] = {
    "bias": fit_biases,
    "ranges": fit_ranges,
    "rounding": fit_rounding,
    "calibration": fit_calibration,
}
"""Steps that change the file in its place, and the one that quantizes the original anew."""

_FITTED = ("ranges", "rounding")
"""Steps after which other methods go on."""


class _SharedFits:
    """What several plans fit of one network, each computed once."""

    def __init__(self) -> None:
        self._fitted: dict[tuple[str, ...], QuantizedNetwork] = {}
        self._own: OwnSteps | None = None
        self._rounded: Sequence[RoundedLayer] | None = None

    def fitted(
        self, network: QuantizedNetwork, steps: Sequence[str], progress: StepProgress
    ) -> QuantizedNetwork:
        """Return the network after steps that change the file in its place, or rewrites first."""
        for number, step in enumerate(steps):
            done = tuple(steps[: number + 1])
            if done not in self._fitted:
                self._fitted[done] = self._after(network, step, progress)
            network = self._fitted[done]
        return network

    def _after(
        self, network: QuantizedNetwork, step: str, progress: StepProgress
    ) -> QuantizedNetwork:
        if step == "equalization":
            return equalize_channels(network)
        if step == "rewrites":
            return network.with_content(self.rewritten(network, progress).content)
        return network.with_content(_STEPS[step](network, progress))

    def farthest(
        self, network: QuantizedNetwork, progress: StepProgress, *, rewrites: bool = True
    ) -> tuple[str, ...]:
        """Return all of the steps that the network allows, in their order; rewrites if wanted."""
        done: tuple[str, ...] = ()
        for step in ("rewrites", "equalization") if rewrites else ("equalization",):
            with suppress(UserError):  # nothing to rewrite, or no channels to scale
                self.fitted(network, (*done, step), progress)
                done = (*done, step)
        return (*done, *_FITTED)

    def rewritten(self, network: QuantizedNetwork, progress: StepProgress) -> OwnSteps:
        """Return the network's file with tensors that have steps of their own."""
        if self._own is None:
            self._own = give_own_steps(network, progress)
        return self._own

    def rounded(self, network: QuantizedNetwork, progress: StepProgress) -> Sequence[RoundedLayer]:
        """Return the original's layers with their weights rounded by GPTQ."""
        if self._rounded is None:
            self._rounded = round_original(network.original, network.original_rows, progress)
        return self._rounded


def _by_steps(shared: _SharedFits, name: str, method: str) -> CandidatePlan:
    """Return the plan of steps one after the other."""

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        fitted = shared.fitted(network, name.split("+"), progress)
        return (RepairCandidate(name, fitted.content, None),)

    return CandidatePlan(name, method, make)


def _rewrites(shared: _SharedFits) -> CandidatePlan:
    """Return the plan of tensors with steps of their own, alone and with steps in place behind."""

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        details = _details(shared.rewritten(network, progress))
        behind = (), ("ranges",), _FITTED, shared.farthest(network, progress)[1:]
        return [
            RepairCandidate(
                "+".join(steps),
                shared.fitted(network, steps, progress).content,
                None,
                details,
            )
            for steps in (("rewrites", *some) for some in dict.fromkeys(behind))
        ]

    return CandidatePlan("rewrites", "rewrites", make)


def _details(own: OwnSteps) -> CandidateDetails:
    return CandidateDetails(rewrites=RewriteDetails(rewrites=own.rewrites))


def _learning(shared: _SharedFits, request: RepairRequest) -> CandidatePlan:
    """Return the plan of a network that learns from the original, behind all steps that it has."""

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        from edgeflare.repair.fitting.distillation import (  # noqa: PLC0415 - needs jax
            fit_distillation,
            require_learnable,
        )

        require_learnable(network)
        before = shared.farthest(network, progress, rewrites=not request.in_place)
        fitted = shared.fitted(network, before, progress)
        rng = np.random.default_rng(request.rng_seed)
        content = fit_distillation(fitted, rng, progress)
        details = NO_DETAILS
        if "rewrites" in before:
            details = _details(shared.rewritten(network, progress))
        return (RepairCandidate("+".join((*before, "learning")), content, None, details),)

    return CandidatePlan("learning", "learning", make)


def _float_head(shared: _SharedFits, before: Sequence[str]) -> CandidatePlan:
    """Return the plan of a last layer that is computed in float, behind steps in place."""
    name = "+".join((*before, "float-head"))

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        fitted = shared.fitted(network, before, progress)
        last = [layer.operator for layer in network.layers if layer.weights is not None][-1:]
        made = float_operators(fitted, last)
        return (RepairCandidate(name, made.content, made.recipe),)

    return CandidatePlan(name, "precision", make)


def _float_tail(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
    """Return a model whose outputs are joined and decoded in float, alone and behind new ranges.

    Ranges are fitted afterwards, since what is joined in float need not be quantized alike.
    """
    made = float_operators(network, joined_tail(network))
    ranged = fit_ranges(network.with_content(made.content), progress)
    return (
        RepairCandidate("float-tail", made.content, made.recipe),
        RepairCandidate("float-tail+ranges", ranged, made.recipe),
    )


def _weights_only(shared: _SharedFits, *, rounded: bool) -> CandidatePlan:
    """Return the plan of a model that has its weights in 8 bits, and computes in float."""
    name = "rounding+weights-only" if rounded else "weights-only"

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        layers = shared.rounded(network, progress) if rounded else ()
        made = weights_only(network, layers)
        return (RepairCandidate(name, made.content, made.recipe),)

    return CandidatePlan(name, "weights-only", make)


def _precision_search(shared: _SharedFits) -> CandidatePlan:
    """Return the plan of a search for the blocks to compute in float or int16."""
    before = _FITTED

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        fitted = shared.fitted(network, before, progress)
        rounded = shared.rounded(network, progress)
        return [
            RepairCandidate(
                "+".join((*before, precision_candidate.name)),
                precision_candidate.made.content,
                precision_candidate.made.recipe,
                CandidateDetails(precision=precision_candidate.details),
            )
            for precision_candidate in precision_candidates(network, fitted, rounded, progress)
        ]

    return CandidatePlan("precision-search", "precision", make, instead_of="weights-only")


def _dare(shared: _SharedFits, request: RepairRequest) -> CandidatePlan:
    """Return the plan of DARE, alone and behind steps in place."""

    def make(network: QuantizedNetwork, progress: StepProgress) -> Sequence[RepairCandidate]:
        from edgeflare.repair.post_training.dare import fit_dare  # noqa: PLC0415 - needs jax

        return [
            RepairCandidate(
                "+".join((*steps, "dare")),
                fit_dare(
                    shared.fitted(network, steps, progress),
                    request.slice,
                    np.random.default_rng(request.rng_seed),
                    progress,
                ),
                None,
            )
            for steps in ((), _FITTED)
        ]

    return CandidatePlan("dare", "dare", make)
