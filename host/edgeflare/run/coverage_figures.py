"""What a run notes of neuron coverage: the key `coverage` of its document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgeflare.errors import UserError

COVERAGE_KEY = "coverage"
"""The key of `about` under which the journal keeps it; null until it was measured to its end."""


class ArmCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The share of an arm's neurons that inputs cover, at each threshold.

    Attributes:
        arm: `original`, `twin` or `device`.
        neurons: how many it has.
        seeds: of the seeds.
        with_findings: of seeds and findings; None without findings.
        with_others: of seeds and other seeds; None without other seeds.

    """

    arm: str
    neurons: int
    seeds: tuple[int | float, ...]
    with_findings: tuple[int | float, ...] | None
    with_others: tuple[int | float, ...] | None


class NeuronCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The neuron coverage of a run.

    Attributes:
        thresholds: at which a neuron counts as covered.
        seeds: seeds that led to a finding; all of the run where none did.
        findings: their verified findings.
        others: other seeds of the pair, as many as there are findings, or as there are.
        device_queries: inputs that the device answered for it.
        arms: those that could be measured.
        notes: why others could not be, and what else is amiss, a sentence each.

    """

    thresholds: tuple[int | float, ...]
    seeds: int
    findings: int
    others: int
    device_queries: int
    arms: tuple[ArmCoverage, ...]
    notes: tuple[str, ...]


def noted_coverage(about: Mapping[str, Any]) -> NeuronCoverage | None:
    """Return what a journal notes of neuron coverage; None where it was not measured.

    Raises:
        UserError: the journal is damaged.

    """
    noted = about.get(COVERAGE_KEY)
    try:
        return None if noted is None else msgspec.convert(noted, NeuronCoverage)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the run's journal run.db is damaged (what it says of coverage: {error}): start anew"
            " with --overwrite"
        ) from None
