"""DeepXplore, FGSM and PGD on a pair whose models can be differentiated: two tables.

    python benchmarks/deepxplore.py PAIR [--seeds N] [--rng-seed N] [--radii 2,4,8]
        [--step LEVELS] [--lambda1 WEIGHT]

The first table says from how many seeds the labels of original and twin come to differ within the
iterations of `deepxplore`, for each target and constraint: on inputs, rounded and clipped, and on
real numbers beyond the limits of inputs, as the published code judges them. An 8-bit twin quantizes
such numbers as it does inputs, which clips them at the ends of its own range. `strict` are
differences in which no model has a tie. `saved` are differences of real numbers whose image, as
the published code would save it, differs strictly.

The second table says the same of `fgsm` and `pgd` at each radius: from how many seeds a strict
deviation is met, and from how many the original's label changes, with the same number of steps.

The seeds are the first that do not deviate by themselves. Translations of both models, compared
with the runtime on a few seeds, answer in the place of all arms.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.chain import chain_generator
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.cli.option_values import read_whole_numbers
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Goal, Trigger
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.query import Arm, Outcome, TranslatedOutcome, TranslatedQuery, WhiteboxQuery
from edgeflare.core.tensor import Tensor, quantize
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.domains.image.preprocess import Preprocess
from edgeflare.errors import EdgeFlareError
from edgeflare.models.pair import load_pair
from edgeflare.run.plan import Plan
from edgeflare.strategies.baselines.deepxplore import CONSTRAINTS, TARGETS, DeepXplore
from edgeflare.strategies.baselines.gradient_sign_attacks import FGSM, PGD
from edgeflare.strategies.strategy import AskTellSearch, Start, Strategy, WhiteboxAnswer
from edgeflare.strategies.surrogate import with_device
from edgeflare.whitebox.pair_translation import ArmToTranslate, TranslatedPair

DEVICE = "emulated-xnnpack"

LABELS, STRICT, ENDLESS = Goal(ties=True), Goal(), Goal(min_strength=inf)
"""What ends a search: any difference of labels, one without a tie, or nothing."""


def main() -> None:
    arguments = parse()
    with ExitStack() as stack:
        plan = Plan("boundary", Goal(), (DEVICE,))
        opened = open_pair(load_pair(arguments.pair), plan, [find_profile(DEVICE)], stack)
        space = opened.pair.interface.domain.space
        rounded = SearchedPair(opened.white_box, space, arguments.rng_seed)
        seeds = rounded.agreeing(opened.seeds.inputs, arguments.seeds)
        unlimited = replace(space, dtype="float64", lowest=-inf, highest=inf)
        real = SearchedPair(real_numbers(opened), unlimited, arguments.rng_seed)
        print(f"{len(seeds)} seeds\n\n| target | constraint | inputs | strict | real | saved |")
        print("|---|---|--:|--:|--:|--:|", flush=True)
        for target, constraint in product(TARGETS, CONSTRAINTS):
            strategy = DeepXplore(
                constraint=constraint,
                target=target,
                step=arguments.step,
                lambda1=arguments.lambda1,
            )
            counts = [len(rounded.found(strategy, seeds, goal)) for goal in (LABELS, STRICT)]
            apart = [space.nearest(one) for one in real.found(strategy, seeds, LABELS)]
            saved = sum(STRICT.met(rounded.told(one)) is not None for one in apart)
            counts += len(apart), saved
            print(f"| {target} | {constraint} | " + " | ".join(map(str, counts)) + " |", flush=True)
        print("\n| radius | fgsm: strict | label changed | pgd: strict | label changed |")
        print("|--:|--:|--:|--:|--:|", flush=True)
        for radius in read_whole_numbers("--radii", arguments.radii):
            attacks = FGSM(radius=radius), PGD(radius=radius, step=radius / 4)
            counts = [
                count
                for attack in attacks
                for count in (
                    len(rounded.found(attack, seeds, STRICT)),
                    rounded.turned(attack, seeds),
                )
            ]
            print(f"| {radius} | " + " | ".join(map(str, counts)) + " |", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, metavar="PAIR")
    parser.add_argument("--seeds", type=int, default=40, metavar="N")
    parser.add_argument("--rng-seed", type=int, default=0, metavar="N")
    parser.add_argument("--radii", default="2,4,8,16,32,64", metavar="N,N")
    parser.add_argument("--step", type=float, default=10.0, metavar="LEVELS")
    parser.add_argument("--lambda1", type=float, default=1.0, metavar="WEIGHT")
    return parser.parse_args()


@dataclass(frozen=True)
class SearchedPair:
    """A pair of which translations answer for all arms.

    Attributes:
        answer: answers a white-box query.
        space: of the inputs that are searched.
        rng_seed: the run seed.

    """

    answer: Callable[[WhiteboxQuery], Any]
    space: InputSpace
    rng_seed: int

    def agreeing(self, inputs: NDArray[Any], count: int) -> Mapping[int, Input]:
        """Return the first inputs on which the models agree, by their numbers."""
        seeds: dict[int, Input] = {}
        for at, one in enumerate(inputs):
            if len(seeds) < count and LABELS.met(self.told(one)) is None:
                seeds[at] = one
        return seeds

    def found(self, strategy: Strategy, seeds: Mapping[int, Input], goal: Goal) -> list[Input]:
        """Return the inputs with which searches end that find what the goal wants."""
        ends = (self._search(strategy, *seed, goal)[0] for seed in seeds.items())
        return [end.input for end in ends if end is not None]

    def turned(self, strategy: Strategy, seeds: Mapping[int, Input]) -> int:
        """Return from how many seeds the original's label changes in an endless search."""
        return sum(self._search(strategy, *seed, ENDLESS)[1] for seed in seeds.items())

    def told(self, one: Input) -> Outcome:
        """Return what the arms answer about an input: the device as the twin."""
        (told,) = self.answer(TranslatedQuery([one]))
        return with_device(told.outcome, told.outcome[Arm.TWIN])

    def _search(
        self, strategy: Strategy, at: int, seed: Input, goal: Goal
    ) -> tuple[Trigger | None, bool]:
        """Return what a search from a seed finds, and whether the original's label changed."""
        seed = seed.astype(self.space.dtype)
        labels: set[int | None] = set()

        def answered(query: WhiteboxQuery) -> WhiteboxAnswer:
            answer: WhiteboxAnswer = self.answer(query)
            if isinstance(query, TranslatedQuery):
                labels.update(
                    told.outcome[Arm.ORIGINAL].decision
                    for told in answer
                    if isinstance(told, TranslatedOutcome)
                )
            return answer

        start = Start(
            seed,
            self.told(seed),
            goal,
            chain_generator(self.rng_seed, at),
            Bounds(space=self.space),
            space=self.space,
        )
        search = AskTellSearch(strategy.search(start), answered)
        while asked := search.ask():
            search.tell([self.told(query.input) for query in asked])
        return search.finding, len(labels) > 1


def real_numbers(opened: OpenedPair) -> Callable[[WhiteboxQuery], Any]:
    """Return what answers white-box queries about images of real numbers.

    Raises:
        EdgeFlareError: the pair is not of images, or its models take other orders than RGB.

    """
    domain = opened.pair.interface.domain
    if not isinstance(domain, ImageDomain) or domain.preprocess.channels != "rgb":
        raise EdgeFlareError("give a pair of images whose channels are in the order RGB")
    models = {Arm.ORIGINAL: opened.pair.original, Arm.TWIN: opened.pair.compressed}
    arms = {}
    for arm, source in models.items():
        model = opened.panel.host(arm)
        tensor = model.evaluator.signature.input
        encoder = RealEncoder(domain.preprocess, tensor)
        arms[arm] = ArmToTranslate(
            str(source), TWIN_KERNELS, tensor.shape, encoder, model.decoder, ()
        )
    return TranslatedPair(arms, 1.0).answer


@dataclass(frozen=True)
class RealEncoder:
    """Encodes images of real numbers as those of whole ones are encoded."""

    preprocess: Preprocess
    tensor: Tensor

    def encode(self, images: NDArray[np.float64]) -> NDArray[np.generic]:
        """Encode images; see `ImageEncoder`, which knows whole numbers from 0 to 255 alone."""
        settings = self.preprocess
        real = (images / settings.scale - np.array(settings.mean)) / np.array(settings.std)
        return quantize(real.astype(np.float32), self.tensor)

    def pulled_back(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a gradient by pixels; see `DifferentiableEncoder`."""
        by_row = gradient.reshape(self.tensor.shape[1:])
        return by_row / (self.preprocess.scale * np.array(self.preprocess.std))


if __name__ == "__main__":
    try:
        main()
    except EdgeFlareError as error:
        sys.exit(f"deepxplore: {error}")
