"""Fixtures of the tests of judging: the example pair, open, and the sets of some of its seeds.

They are closed behind each file: tests of devices look for the one agent of their process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import numpy as np
import pytest

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.models.pair import load_pair
from edgeflare.repair.judging.judgement_inputs import (
    JudgedSet,
    SeedSplit,
    SetName,
    judged_sets,
    known_labels,
    split_seeds,
)
from edgeflare.run.plan import Plan
from tampering import EXAMPLE

COUNT = 400


@pytest.fixture(scope="module")
def opened() -> Iterator[OpenedPair]:
    plan = Plan("boundary", Goal(), ("emulated-xnnpack",))
    with ExitStack() as stack:
        yield open_pair(load_pair(EXAMPLE), plan, find_profiles(list(plan.devices)), stack)


@pytest.fixture(scope="module")
def split(opened: OpenedPair) -> SeedSplit:
    return split_seeds(known_labels(opened), np.random.default_rng(0))


@pytest.fixture(scope="module")
def sets(opened: OpenedPair, split: SeedSplit) -> Mapping[SetName, JudgedSet]:
    labels, rng = known_labels(opened), np.random.default_rng(1)
    return judged_sets(opened, labels, split.choose, rng, COUNT)
