"""The methods of repair by name, ours and those of other packages, and what a request tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from edgeflare.class_registry import InstalledClasses
from edgeflare.errors import EdgeFlareError, UserError, suggestion
from edgeflare.models.tflite_graph import Graph
from edgeflare.python_callable import reason
from edgeflare.repair.candidate_details import CandidateDetails
from edgeflare.repair.fitting.float_model import Recipe
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.methods.equalization import Equalization
from edgeflare.repair.methods.in_place import Dare, Learning, Ranges, Rounding
from edgeflare.repair.methods.precision import Precision
from edgeflare.repair.methods.requantization import Calibration, WeightsOnly
from edgeflare.repair.methods.rewrites import Rewrites
from edgeflare.repair.repair_candidate import (
    PLAIN_NAME,
    CandidatePlan,
    Effort,
    EnoughTried,
    RepairCandidate,
    StepProgress,
)
from edgeflare.repair.repair_method import FitChains, RepairMethod
from edgeflare.repair.repair_request import RepairRequest

METHODS: Final[Mapping[str, type[RepairMethod]]] = {
    "rewrites": Rewrites,
    "ranges": Ranges,
    "calibration": Calibration,
    "precision": Precision,
    "rounding": Rounding,
    "equalization": Equalization,
    "weights-only": WeightsOnly,
    "learning": Learning,
    "dare": Dare,
}
"""Ours, in the order in which "auto" tries those that take as long."""

SHIFTS: Final = "shifts"
"""The method that is fitted to a run, and not to the original's weights."""

BY_LABELS: Final = ("fmt", "archrepair")
"""Methods that are judged by labels, in the room `labelled`; they compute in integers alone."""

OTHERS: Final = InstalledClasses[RepairMethod](
    "edgeflare.repair_methods", "repair method", RepairMethod
)
"""The methods of other packages."""


def candidate_plans(
    request: RepairRequest, network: QuantizedNetwork | None = None
) -> list[CandidatePlan]:
    """Return the plans that a request allows, those that take least time to fit first.

    Those of shifts and of what is judged by labels are none of them: for these it is empty.

    Args:
        request: what is asked.
        network: network to fit; None where nothing is to be made yet.

    Raises:
        UserError: the request allows none, or there is no method of its name.

    """
    asked = _asked(request)
    shown = f"--method {request.method}"
    if request.in_place:
        asked = {name: found for name, found in asked.items() if found.in_place}
        if not asked:
            raise UserError(f"{shown} rewrites the model: leave --in-place away")
    if request.target != "float":
        asked = {name: found for name, found in asked.items() if found.integers}
        if not asked:
            integers = [name for name, found in METHODS.items() if found.integers]
            *some, last = (*integers, *BY_LABELS)
            raise UserError(
                f"{shown} computes in float, which --target {request.target} cannot: say --target"
                f" float, or --method {', '.join(some)} or {last}"
            )
    methods = {name: found(request) for name, found in METHODS.items()}
    chains = FitChains(methods, network)
    plans: list[CandidatePlan] = []
    for name in asked:
        if name in METHODS:
            plans += methods[name].plans(name, chains)
        else:
            plans += _plans_of_other(name, request, methods, chains)
    plans = [plan if plan.instead_of in asked else replace(plan, instead_of=None) for plan in plans]
    return sorted(plans, key=lambda plan: plan.effort)


def method_of(name: str) -> type[RepairMethod] | None:
    """Return a method, ours or of another package; None for shifts and those by labels.

    Raises:
        UserError: there is none of the name, or it cannot be used.

    """
    if name in METHODS:
        return METHODS[name]
    if name in (SHIFTS, *BY_LABELS):
        return None
    if name in OTHERS.names():
        return OTHERS.find(name)
    known = ("auto", *METHODS, SHIFTS, *BY_LABELS, *OTHERS.names())
    hint = suggestion(name, known, "did you mean {!r}? ")
    raise UserError(f"--method {name}: unknown; {hint}There are {', '.join(known)}.")


def allows_shifts(request: RepairRequest) -> bool:
    """Whether shifts may be tried: they append operators that compute in float."""
    asked = request.method in ("auto", SHIFTS)
    return asked and not request.in_place and request.target == "float"


def packages_of_others(request: RepairRequest) -> tuple[str, ...]:
    """Return the packages whose methods a request asks for, with their versions."""
    return tuple(OTHERS.package(name) for name in _others(request))


def _asked(request: RepairRequest) -> dict[str, type[RepairMethod]]:
    """Return the methods that are asked for, whatever the target and the file allow."""
    if request.method != "auto":
        found = method_of(request.method)
        return {} if found is None else {request.method: found}
    ours = {name: found for name, found in METHODS.items() if found.automatic}
    return {**ours, **{name: OTHERS.find(name) for name in _others(request)}}


def _others(request: RepairRequest) -> list[str]:
    """Return the methods of other packages that are asked for; of one name ours is taken."""
    ours = (*METHODS, SHIFTS, *BY_LABELS)
    others = [name for name in OTHERS.names() if name not in ours]
    if request.method != "auto":
        return [name for name in others if name == request.method]
    return [name for name in others if OTHERS.find(name).automatic]


def _plans_of_other(
    name: str, request: RepairRequest, methods: dict[str, RepairMethod], chains: FitChains
) -> list[CandidatePlan]:
    """Return the plans of a method of another package; of one that has none, one that says why.

    Args:
        name: the method's.
        request: what is asked.
        methods: all that a chain may name, to which it is added.
        chains: fit methods one after the other.

    """
    try:
        methods[name] = OTHERS.find(name)(request)
        planned = [_of_other(name, plan, chains) for plan in methods[name].plans(name, chains)]
        why = OTHERS.complaint(name, "it plans no candidate")
    except UserError as refusal:
        planned, why = [], str(refusal)
    except EdgeFlareError:
        raise
    except Exception as error:  # whatever a foreign method raises; other methods go on
        planned, why = [], OTHERS.complaint(name, _fails(error))

    def refused(_: StepProgress) -> Sequence[RepairCandidate]:
        raise UserError(why)

    return planned or [CandidatePlan(name, name, refused, Effort.UNKNOWN)]


def _of_other(name: str, plan: CandidatePlan, chains: FitChains) -> CandidatePlan:
    """Return the plan of a method of another package, tried last and held to what it says."""

    def make(progress: StepProgress) -> Sequence[RepairCandidate]:
        try:
            made = list(plan.make(progress))
            for candidate in made:
                _require_own_name(name, candidate.name)
                _require_storable(name, candidate)
                _require_as_said(name, candidate.content, chains.network)
        except (EdgeFlareError, EnoughTried):
            raise
        except Exception as error:  # whatever a foreign method raises; other methods go on
            raise UserError(OTHERS.complaint(name, _fails(error))) from error
        if not made:
            raise UserError(OTHERS.complaint(name, "it makes no candidate"))
        return made

    _require_own_name(name, plan.name)
    return replace(plan, make=make, effort=Effort.UNKNOWN)


def _fails(error: Exception) -> str:
    return f"it fails ({reason(error)})"


def _require_own_name(name: str, given: object) -> None:
    """Refuse a name that is no file's, or that may be the one of another method's candidate.

    Args:
        name: the method's.
        given: what it calls a plan or a candidate.

    """
    if not isinstance(given, str) or not PLAIN_NAME.fullmatch(given):
        why = f"it names a candidate {given!r}, and names have letters, digits, +, - and _"
        raise UserError(OTHERS.complaint(name, why))
    steps = given.split("+")
    if not any(step == name or step.startswith(f"{name}-") for step in steps):
        why = f"it names a candidate {given}, which does not have the method's name as a step"
        raise UserError(OTHERS.complaint(name, why))


def _require_storable(name: str, candidate: RepairCandidate) -> None:
    """Refuse what a method of another package says of a candidate that cannot be stored."""
    try:
        if not isinstance(candidate.details, CandidateDetails):
            raise TypeError(f"details are {type(candidate.details).__name__}")
        said = msgspec.to_builtins((candidate.recipe, candidate.details, candidate.files))
        msgspec.convert(said, tuple[Recipe | None, CandidateDetails, Mapping[str, bytes]])
    except (TypeError, ValueError) as error:  # msgspec's errors are among these
        why = f"what it says of {candidate.name} cannot be stored: {error}"
        raise UserError(OTHERS.complaint(name, why)) from error


def _require_as_said(name: str, content: object, network: QuantizedNetwork) -> None:
    """Refuse what a method of another package wrote that is no model, or another one than it says.

    Args:
        name: the method's.
        content: what it wrote.
        network: the network as it came.

    """
    if not isinstance(content, bytes):
        why = f"it writes {type(content).__name__}, and a model's file is bytes"
        raise UserError(OTHERS.complaint(name, why))
    operators = Graph(content, f"what the repair method '{name}' writes").operators
    before = len(network.content), network.graph.operators
    if OTHERS.find(name).in_place and (len(content), operators) != before:
        why = "it says in_place, and changes the file's length or its operators"
        raise UserError(OTHERS.complaint(name, why))
