"""Candidates of a repair with several generator seeds, on inputs that nothing was fitted to.

    python benchmarks/repair_seeds.py PAIR PLAN … --rng-seeds 0,1,2 --test NPZ
    python benchmarks/repair_seeds.py PAIR PLAN … --rng-seeds 0,1,2 --mixtures 4000

PLAN is the name of a candidate as `edgeflare repair` has it, such as `ranges+rounding`, or of what
makes several, such as `rewrites`. Each is fitted with three fifths of the seeds, as a repair does,
without the choice. Inputs are those of --test, or drawn from lines between two seeds by a generator
seed that no repair has; three fifths of these lines' ends are fitted with. The table is Markdown.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.seeds import Seeds
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.diagnose.near_boundary import mixtures
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.fit_inputs import fit_inputs, further_inputs, network_to_fit
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.judgement import SetAside, candidate_answers, compared_set
from edgeflare.repair.judging.judgement_inputs import (
    FRESH,
    JudgedSet,
    fresh_set,
    known_labels,
    split_seeds,
)
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_methods import candidate_plans
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.repair_requirements import original_file
from edgeflare.repair.repair_run import repair_plan

DRAWN_BY = 1_000_000


def main() -> int:
    arguments = parse()
    profiles = find_profiles(["emulated-xnnpack"])
    pair = load_pair(arguments.pair, trust=True)
    print("| candidate | seed | deviating (strict) | mended, broken | p | right | CPU |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(None, profiles), profiles, stack)
        inputs = judged_inputs(opened, arguments)
        for rng_seed in map(int, arguments.rng_seeds.split(",")):
            request = RepairRequest("auto", "float", False, "none", "none", None, rng_seed)
            network = network_of(opened, request)
            for plan in candidate_plans(request, network):
                if plan.name not in arguments.plans:
                    continue
                begun = time.process_time()
                made = plan.make(lambda _done, _of: None)
                seconds = (time.process_time() - begun) / len(made)
                for candidate in made:
                    cells = row(opened, inputs, candidate, rng_seed, seconds)
                    print(cells, flush=True)
    return 0


def judged_inputs(opened: OpenedPair, arguments: argparse.Namespace) -> JudgedSet:
    if arguments.test is not None:
        return fresh_set(opened, opened.inputs.load(arguments.test, classes=opened.pair.classes))
    space = opened.pair.interface.domain.space
    rng, left = np.random.default_rng(DRAWN_BY), arguments.mixtures
    parts = []
    while left > 0:  # of few seeds there are fewer lines than are wanted
        parts.append(mixtures(opened.seeds.inputs, left, rng, space)[0])
        left -= len(parts[-1])
    drawn = np.concatenate(parts)
    return fresh_set(opened, Seeds(drawn, None, ("",) * len(drawn)))


def network_of(opened: OpenedPair, request: RepairRequest) -> QuantizedNetwork:
    """Return the network that a repair with these settings fits."""
    rng = np.random.default_rng(request.rng_seed)
    labels = known_labels(opened)
    split = split_seeds(labels, rng)
    inputs, ids = fit_inputs(opened, labels, split, rng)
    original = original_file(opened.pair, None, request)
    if original is None:
        raise UserError(f"{opened.pair.original} has no weights to fit to")
    network = network_to_fit(opened, original, inputs, ids, rng)
    further = further_inputs(opened, original, labels, split, request.rng_seed)
    return replace(network, further=further)


def row(
    opened: OpenedPair,
    inputs: JudgedSet,
    candidate: RepairCandidate,
    rng_seed: int,
    seconds: float,
) -> str:
    name = candidate.name
    answers = candidate_answers(candidate.content, opened, {FRESH: inputs})
    if isinstance(answers, SetAside):
        return f"| `{name}` | {rng_seed} | {answers.reason} | | | | |"
    found = compared_set(inputs, answers[FRESH])
    before, after = found.before, found.after
    cells = (
        f"`{name}`",
        str(rng_seed),
        f"{before.deviating} ({before.strict}) → {after.deviating} ({after.strict})"
        f" of {after.inputs:,}",
        f"{found.mended}, {found.broken}",
        f"{found.p:.1g}",
        f"{before.right} → {after.right}",
        f"{seconds:.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path)
    parser.add_argument("plans", nargs="+", help="names of candidates")
    parser.add_argument("--rng-seeds", default="0,1,2")
    parser.add_argument("--test", type=Path, help="an .npz file of inputs")
    parser.add_argument("--mixtures", type=int, default=4000)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
