"""Whether the blamed block of a compressed model is the best one to compute in float.

    python benchmarks/repair_localization.py PAIRS_FOLDER --pairs NAME …

This is Table 6 of ArchRepair for precision. The residual, which every repair has, and the promotion
of each block alone, by which the search for precision goes on, blame a block by inputs made from
three fifths of the seeds. Then each block alone is computed in float, and judged on near-boundary
and sampled inputs made from the other seeds: the first is the one with the best score. A row says
for each way which rank the blamed block has, of all blocks; * stands where it is the one with the
planted fault.

The files are the pair's own, healthy, and --faults with a fault each: one layer's scales wrong, one
bias zeroed, one channel's weights clipped, one range clipped. A fault counts where at least half as
many more of the wide inputs deviate with it; else another one is drawn. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import EdgeFlareError
from edgeflare.models.compressed_model import read_ensemble
from edgeflare.models.pair import load_pair
from edgeflare.repair.candidate_details import Block
from edgeflare.repair.fit_inputs import fit_inputs, network_to_fit
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.judging.judgement import SetAside, candidate_answers, figures, judged
from edgeflare.repair.judging.judgement_inputs import (
    WIDE,
    JudgedSet,
    SetName,
    judged_sets,
    known_labels,
    split_seeds,
)
from edgeflare.repair.methods.precision import promotion_scores
from edgeflare.repair.precision.blocks import blamed, blocks_of, residual
from edgeflare.repair.precision.precision_promotion import MarginComparison, PromotedModels
from edgeflare.run.plan import Plan
from quantization_faults import FAULTS, drawn_fault, harmful_fault


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A pair, the network to fit with inputs of some seeds, and sets of inputs of the others."""

    opened: OpenedPair
    network: QuantizedNetwork
    sets: Mapping[SetName, JudgedSet]

    def score(self, content: bytes) -> float:
        """Return the score of a file; infinite where it does not run."""
        judgement = judged(content, self.opened, self.sets)
        return float("inf") if isinstance(judgement, SetAside) else judgement.score

    def wide_deviations(self, content: bytes) -> int:
        """Return how many wide inputs deviate with a file, all where it does not run."""
        wide = self.sets[WIDE]
        answers = candidate_answers(content, self.opened, {WIDE: wide})
        if isinstance(answers, SetAside):
            return len(wide.inputs)
        return figures(wide.original, answers[WIDE], wide.labels).deviating


def main() -> int:
    arguments = parse()
    print("| pair | planted fault | blocks | residual | promotion |")
    print("|---|---|--:|--:|--:|", flush=True)
    for name in arguments.pairs:
        with ExitStack() as stack:
            pair = judged_pair(arguments.folder / name, arguments, stack)
            for fault, operator, content in files(pair, arguments):
                cells = row(pair, operator, content)
                print(f"| {name} | {fault} | {' | '.join(cells)} |", flush=True)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="holds pair folders")
    parser.add_argument("--pairs", nargs="+", required=True, help="names of folders")
    parser.add_argument("--faults", type=int, default=4, help="faults of each pair")
    parser.add_argument("--count", type=int, default=1600, help="inputs of each set to judge by")
    parser.add_argument("--rng-seed", type=int, default=0)
    parser.add_argument("--device", default="emulated-xnnpack")
    return parser.parse_args()


def judged_pair(folder: Path, arguments: argparse.Namespace, stack: ExitStack) -> JudgedPair:
    known, profile = load_pair(folder), find_profile(arguments.device)
    ensemble, _ = read_ensemble(profile.kernels)
    plan = Plan("boundary", Goal(), (profile.name,), ensemble=ensemble)
    opened = open_pair(known, plan, [profile], stack)
    rng, labels = np.random.default_rng(arguments.rng_seed), known_labels(opened)
    split = split_seeds(labels, rng)
    images, ids = fit_inputs(opened, labels, split, rng)
    network = network_to_fit(opened, Path(str(known.original)).read_bytes(), images, ids, rng)
    others = np.sort(np.concatenate([split.choose, split.judge]))
    sets = judged_sets(opened, labels, others, rng, arguments.count)
    return JudgedPair(opened, network, sets)


def files(
    pair: JudgedPair, arguments: argparse.Namespace
) -> Iterator[tuple[str, int | None, bytes]]:
    """Yield the healthy file and those with a fault, each with the operator that it is in."""
    network = pair.network
    yield "none", None, network.content
    rng = np.random.default_rng(arguments.rng_seed)
    healthy = pair.wide_deviations(network.content)
    for _, kind in zip(range(arguments.faults), cycle(FAULTS), strict=False):
        draw = partial(drawn_fault, network.content, network.original, kind, rng)
        fault, _ = harmful_fault(draw, pair.wide_deviations, healthy)
        yield f"{kind} {fault.amount:.2f}, operator {fault.operator}", fault.operator, fault.content


def row(pair: JudgedPair, operator: int | None, content: bytes) -> list[str]:
    """Return the number of blocks, and the rank of the one that each way blames."""
    network = pair.network.with_content(content)
    blocks, models = blocks_of(network), PromotedModels(network, MarginComparison(network))
    errors = residual(network)
    if errors is None:
        raise EdgeFlareError("the operators cannot be compared with the original's")
    ways = errors.scores, promotion_scores(blocks, models.measured)
    judged_alone = {one: pair.score(models.made([one]).content) for one in blocks}
    return [str(len(blocks))] + [
        ranked_cell(blamed(blocks, scores), judged_alone, operator) for scores in ways
    ]


def ranked_cell(one: Block | None, scores: Mapping[Block, float], operator: int | None) -> str:
    if one is None:
        return "–"
    rank = 1 + sum(score < scores[one] for score in scores.values())
    return f"{rank}{' *' if operator in one.operators else ''}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except EdgeFlareError as error:
        sys.exit(str(error))
