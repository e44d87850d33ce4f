"""Inputs to judge changed files of a pair by, made from images that are none of its seeds."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.core.seeds import SeedChoice, Seeds
from edgeflare.devices.profile import Profile
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.model_inputs import ModelInputs
from edgeflare.models.pair import Pair
from edgeflare.repair.judging.judgement_inputs import (
    COUNT,
    FRESH,
    JudgedSet,
    SetName,
    fresh_set,
    judged_sets,
    known_labels,
)
from edgeflare.run.plan import Plan


@dataclass(frozen=True, slots=True)
class JudgedImages:
    """A pair that is open, and the inputs that its files are judged by.

    Attributes:
        opened: some of the images are its seeds.
        sets: `fresh`, all the images; `tight`, `wide` and `sampled`, made from the seeds.

    """

    opened: OpenedPair
    sets: dict[SetName, JudgedSet]


def judged_images(
    pair: Pair,
    path: Path,
    profile: Profile,
    stack: ExitStack,
    *,
    limit: int | None = None,
    seeds: int = 1000,
    count: int = COUNT,
    rng_seed: int = 0,
) -> JudgedImages:
    """Open a pair with drawn images as its seeds, and make the sets that judge.

    Args:
        pair: a classifier of images.
        path: the images, as seeds are given.
        profile: the device; the host has its kernels.
        stack: closes what is opened.
        limit: take the first so many images only; None for all.
        seeds: how many of them the near-boundary and the sampled inputs are made from.
        count: inputs of each near-boundary set, and the most of the sampled ones.
        rng_seed: of the generator of all that is drawn.

    Raises:
        UserError: the pair or the images cannot be opened.
        InfrastructureError: a device or a worker process is lost.

    """
    loaded: list[Seeds] = []
    rng = np.random.default_rng(rng_seed)

    def draw(inputs: ModelInputs) -> Seeds:
        images = inputs.load(path, SeedChoice(first=limit))
        loaded.append(images)
        rows = np.random.default_rng(rng_seed).permutation(len(images))[:seeds]
        labels = None if images.labels is None else images.labels[rows]
        names = tuple(images.names[row] for row in rows.tolist())
        return replace(images, inputs=images.inputs[rows], labels=labels, names=names)

    ensemble, _ = read_ensemble(profile.kernels)
    plan = Plan("boundary", Goal(), (profile.name,), ensemble=ensemble)
    opened = open_pair(pair, plan, [profile], stack, draw)
    fresh = fresh_set(opened, loaded[0])
    rows = np.arange(len(opened.seeds))
    made = judged_sets(opened, known_labels(opened), rows, rng, count)
    return JudgedImages(opened, {FRESH: fresh, **made})
