"""Facts of a survey, made up for tests; all that is not given is as if nothing deviated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgeflare.survey.items.survey_facts import Cell, SurveyFacts


def facts_of(cells: Sequence[Cell], inputs: int, **given: Any) -> SurveyFacts:
    """Return facts of inputs in cells; what is given has (items,) each, or is a plain value."""
    items = len(cells) * inputs
    no = np.zeros(items, dtype=bool)
    made: dict[str, Any] = {
        "cells": tuple(cells),
        "inputs": inputs,
        "has_original": True,
        "labelled": no,
        "classes": np.full(items, -1),
        "groups": np.full(items, -1),
        "group_names": (),
        "margin": np.ones(items),
        "strength": np.full(items, np.nan),
    }
    flags = (
        "compression", "compression_tied", "original_right", "twin_right", "doubtful", "asked",
        "deviates", "deviates_tied", "kernel", "kernel_tied", "device_right", "failed",
    )  # fmt: skip
    return SurveyFacts(**{**dict.fromkeys(flags, no), **made, **given})
