"""Repairs and checks within the process of the tests that ask few inputs, and measure briefly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec

import pytest
from msgspec.structs import replace

from called_commands import empty_figures
from edgeflare.conditions.condition_choice import chosen_conditions
from edgeflare.conform.rounds import smallest_models
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.release import cost, field, layer_faults, mend, near, operator_conformance
from edgeflare.repair import fit_inputs, repair_cost, repair_run
from edgeflare.repair.fitting import weight_rounding
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging import judgement_inputs
from edgeflare.repair.judging.judgement_inputs import judged_sets
from edgeflare.repair.repair_candidate import CandidatePlan
from edgeflare.repair.repair_cost import NO_LIMIT
from edgeflare.repair.repair_methods import candidate_plans
from edgeflare.repair.repair_request import DEFAULT_REQUEST, RepairRequest
from edgeflare.repair.shifts import shift_candidate

LAYER_INPUTS = 10
"""On which a brief check compares layers."""


@contextmanager
def brief_repairs(judged: int = 240, fitted: int = 100) -> Iterator[None]:
    """Have repairs take a seventh of the inputs, which is enough for a gain to be sure.

    Latencies are rough: nobody may look at their figures, or choose by them, and a check's repair
    may take any. Shifts are cross-validated on two splits of the inputs.

    Args:
        judged: inputs to judge by.
        fitted: inputs to fit with.

    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_inputs, "FIT_INPUTS", fitted)
        patch.setattr(weight_rounding, "MOST_INPUTS", fitted)
        patch.setattr(repair_run, "judged_sets", partial(judged_sets, count=judged))
        patch.setattr(judgement_inputs, "AT_ONCE", 16)
        patch.setattr(repair_cost, "LEAST_TURNS", 3)
        patch.setattr(repair_cost, "MOST_TURNS", 3)
        patch.setattr(repair_cost, "LEAST_SECONDS", 0.05)
        patch.setattr(repair_cost, "MOST_SECONDS", 0.05)
        patch.setattr(repair_cost, "LONGER", 1)
        any_time = replace(DEFAULT_REQUEST, max_latency=NO_LIMIT)
        patch.setattr(mend, "DEFAULT_REQUEST", any_time)
        patch.setattr(shift_candidate, "SPLITS", 2)
        if find_spec("jax") is not None:
            patch.setattr("edgeflare.repair.fitting.distillation.MOST_STEPS", 2)
        yield


@contextmanager
def only(*methods: str) -> Iterator[None]:
    """Have repairs try some methods alone, since others are slow."""

    def plans(
        _request: RepairRequest, network: QuantizedNetwork | None = None
    ) -> list[CandidatePlan]:
        asked = (RepairRequest(one, "float", False, "none", "none", None) for one in methods)
        return [plan for one in asked for plan in candidate_plans(one, network)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repair_run, "candidate_plans", plans)
        yield


@contextmanager
def brief_checks() -> Iterator[None]:
    """Have checks try six conditions at one severity, explain few inputs, search and draw little.

    Wrong operators are found, and neither refined nor made small, as they are in
    `release/test_operator_conformance.py`.
    """
    with pytest.MonkeyPatch.context() as patch, empty_figures():
        patch.setattr(field, "SEVERITIES", (2,))
        patch.setattr(field, "chosen_conditions", lambda *given: chosen_conditions(*given)[:6])
        patch.setattr(layer_faults, "INPUTS", LAYER_INPUTS)
        patch.setattr(layer_faults, "SENSITIVITY_INPUTS", 4)
        patch.setattr(layer_faults, "_EXPLAINED", 3)
        patch.setattr(operator_conformance, "_NEAR", 2)
        patch.setattr(ConformRounds, "refine", lambda _: 0)
        patch.setattr(smallest_models, "_RUNS", 1)
        patch.setattr(smallest_models, "_UNCOUNTED_RUNS", 1)
        patch.setattr(near, "_QUERIES", 60)
        patch.setattr(cost, "_MOST_TURNS", 11)
        yield
