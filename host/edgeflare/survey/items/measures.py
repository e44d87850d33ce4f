"""What a survey measures: rates of deviations and of wrong decisions, as facts about items."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from edgeflare.survey.estimate.rate import Fact
from edgeflare.survey.items.survey_facts import SurveyFacts


def deviation(facts: SurveyFacts) -> Fact:
    """Return where original and device decide differently, or the device failed."""
    return Fact(facts.compression, facts.deviates)


def deviation_strict(facts: SurveyFacts) -> Fact:
    """Return where original and device decide differently without a tie, or the device failed."""
    return Fact(facts.compression & ~facts.compression_tied, facts.deviates & ~facts.deviates_tied)


def kernel(facts: SurveyFacts) -> Fact:
    """Return where twin and device decide differently, or the device alone failed."""
    return Fact(np.zeros_like(facts.kernel), facts.kernel)


def kernel_strict(facts: SurveyFacts) -> Fact:
    """Return where twin and device decide differently without a tie, or the device alone failed."""
    return Fact(np.zeros_like(facts.kernel), facts.kernel & ~facts.kernel_tied)


def failure(facts: SurveyFacts) -> Fact:
    """Return where the device crashed, hung, or gave invalid outputs."""
    return Fact(np.zeros_like(facts.failed), facts.failed)


def harmed(facts: SurveyFacts) -> Fact:
    """Return where the host's arm decides as the label says, and the device does not.

    That arm is the original, and the twin where there is none. Items without a label are none.
    """
    right = facts.original_right if facts.has_original else facts.twin_right
    return Fact(right & ~facts.twin_right, right & facts.asked & ~facts.device_right)


def helped(facts: SurveyFacts) -> Fact:
    """Return where the device decides as the label says, and the host's arm does not.

    That arm is the original, and the twin where there is none. Items without a label are none.
    """
    right = facts.original_right if facts.has_original else facts.twin_right
    return Fact(facts.twin_right & ~right, facts.device_right & ~right)


def wrong(facts: SurveyFacts) -> Fact:
    """Return where the device decides otherwise than the label says; of labelled items."""
    return Fact(
        facts.labelled & ~facts.twin_right, facts.labelled & facts.asked & ~facts.device_right
    )


RATES: Mapping[str, Callable[[SurveyFacts], Fact]] = MappingProxyType(
    {
        "rate": deviation,
        "rate-strict": deviation_strict,
        "kernel-rate": kernel,
        "kernel-rate-strict": kernel_strict,
        "failure-rate": failure,
    }
)
"""By the name that a gate has for it."""

ACCURACY_DROP = "accuracy-drop"
"""The accuracy of the original less that of the device, on labelled items."""


def headline(facts: SurveyFacts) -> Fact:
    """Return the fact whose rate a survey is about: deviations, or kernels without an original."""
    return deviation(facts) if facts.has_original else kernel(facts)


def surprises(facts: SurveyFacts) -> NDArray[np.bool_]:
    """Return the items asked about which the device said anything that the twin did not foretell.

    (items,) bool.
    """
    found = np.zeros_like(facts.asked)
    for one in (
        deviation(facts),
        deviation_strict(facts),
        kernel(facts),
        wrong(facts),
    ):
        found |= facts.asked & (one.foretold != one.seen)
    return found
