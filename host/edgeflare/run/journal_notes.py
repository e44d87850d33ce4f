"""What a journal notes of a run beside its rows: neuron coverage, and its twin when never reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from edgeflare.core.query import Arm
from edgeflare.errors import UserError
from edgeflare.pages.facts import count_of
from edgeflare.record.json_types import Count, CountFromOne, ShareAsWritten

COVERAGE_KEY = "coverage"
"""The key of `about` under which the journal keeps it; null until it was measured to its end."""


_Threshold = Annotated[int, msgspec.Meta(ge=0, lt=1)] | Annotated[float, msgspec.Meta(ge=0, lt=1)]


class ArmCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The share of an arm's neurons that inputs cover, at each threshold.

    Attributes:
        arm: arm whose neurons they are.
        neurons: channels of the layers that were captured.
        seeds: share of the neurons that the seeds cover, at each threshold.
        with_findings: the same of seeds and findings; null without findings.
        with_others: the same of seeds and other seeds; null without other seeds.

    """

    arm: Arm
    neurons: Count
    seeds: tuple[ShareAsWritten, ...]
    with_findings: tuple[ShareAsWritten, ...] | None
    with_others: tuple[ShareAsWritten, ...] | None


class NeuronCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The neuron coverage of a run, as DeepXplore defines it.

    Attributes:
        thresholds: thresholds at which a neuron counts as covered.
        seeds: seeds that led to a verified finding; all of the run where none did.
        findings: their findings, as they are stored at the end.
        others: other seeds of the pair, as many as there are findings, or as there are.
        device_queries: inputs that the device answered for it.
        arms: those that could be measured.
        notes: why an arm is left out, and what else is amiss, a sentence each.

    """

    thresholds: tuple[_Threshold, ...]
    seeds: Count
    findings: Count
    others: Count
    device_queries: Count
    arms: tuple[ArmCoverage, ...]
    notes: tuple[str, ...]


def noted_coverage(about: Mapping[str, object]) -> NeuronCoverage | None:
    """Return what a journal notes of neuron coverage; None where it was not measured."""
    noted = about.get(COVERAGE_KEY)
    try:
        return None if noted is None else msgspec.convert(noted, NeuronCoverage)
    except msgspec.ValidationError as error:
        raise UserError(
            f"the run's journal run.db is damaged (what it says of coverage: {error}): start anew"
            " with --overwrite"
        ) from None


WITHOUT_RESET_KEY = "without_reset"
"""The key of `about` under which the journal keeps it."""

_WithOrWithout = Annotated[str, msgspec.Meta(pattern=r"^(with|without)(?!\n)$")]

_Right = Annotated[Mapping[_WithOrWithout, Count], msgspec.Meta(min_length=2)]


class WithoutReset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the twin decides on the first seeds, in their order, where nothing is reset between them.

    Attributes:
        seeds: how many of the first seeds.
        changed: those on which it decides otherwise than with a reset before each.
        labelled: those of which is known what is right.
        right: number of labelled seeds that it decides so with and without a reset; absent where
            none is known.

    """

    seeds: CountFromOne
    changed: Count
    labelled: Count
    right: _Right | None = None

    def in_words(self, noun: str = "seed") -> str:
        """Return this as a line, in which an input is called by a noun."""
        first = count_of(self.seeds, noun)
        line = f"the twin decides otherwise on {self.changed:,} of the first {first}"
        if not self.right:
            return line
        shares = (f"{self.right[key] / self.labelled:.1%} {key}" for key in ("with", "without"))
        return f"{line}; right on them: {', '.join(shares)}"


def noted_without_reset(about: Mapping[str, object]) -> WithoutReset | None:
    """Return what a journal notes of it; None where the models have no variables."""
    noted = about.get(WITHOUT_RESET_KEY)
    try:
        return None if noted is None else msgspec.convert(noted, WithoutReset)
    except msgspec.ValidationError as error:
        raise UserError(
            "the run's journal run.db is damaged (what it says of variables without a reset:"
            f" {error}): start anew with --overwrite"
        ) from None
