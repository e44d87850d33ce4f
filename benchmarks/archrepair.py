"""The tables of ArchRepair's paper, on a pair of your own, each beside plain fine-tuning.

    python benchmarks/archrepair.py PAIR --train NPZ --test NPZ levels
    python benchmarks/archrepair.py PAIR --train NPZ --test NPZ blocks
    python benchmarks/archrepair.py PAIR --train NPZ --test NPZ conditions gaussian-noise fog …

`levels` trains one neuron, one layer, one block and the network (Table 1); `blocks` searches each
block, and says how many suspicious neurons it has (Table 6); `conditions` trains on images under
one condition each, and judges on all (Figure 6). NPZ files have `images` and `labels`. Accuracy is
that of the float model on the images of --test, of which nothing is trained or chosen. The tables
are Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.conditions.condition import changed_input
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.core.query import Arm
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import load_pair
from edgeflare.repair.architecture.block_localization import (
    neuron_gradients,
    suspicious_neurons,
    suspiciousness,
    weights_of_block,
)
from edgeflare.repair.architecture.float_candidates import FloatCandidates, TrainedNetwork
from edgeflare.repair.architecture.trained_classifier import (
    Constants,
    LabelledRows,
    TrainedClassifier,
    everything,
    trained,
)
from edgeflare.repair.repair_run import repair_plan

KS = (10, 20, 30, 40, 50, 75, 100, 150)
SEVERITY = 3


@dataclass(frozen=True)
class ArchRepairLaboratory:
    """A pair, its original, and the images to train and to judge with."""

    opened: OpenedPair
    content: bytes
    train: tuple[NDArray[np.uint8], NDArray[np.int64]]
    test: tuple[NDArray[np.uint8], NDArray[np.int64]]
    steps: int

    def rows(self, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> LabelledRows:
        """Return images as the original takes them."""
        ids = [self.opened.seeds.seed_ids[0]] * len(images)
        return LabelledRows(self.opened.panel.rows(Arm.ORIGINAL, images, ids), labels)

    def candidates(self, labelled: LabelledRows, seed: int) -> FloatCandidates:
        """Return what trains the original."""
        classifier = TrainedClassifier(self.content, "the original")
        return FloatCandidates(self.content, classifier, labelled, self.steps, seed)

    def changed(self, name: str, images: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
        """Return images under a condition; as they are by the name "none"."""
        if name == "none":
            return images
        (condition,) = (one for one in own_conditions("image") if one.name == name)
        space = self.opened.pair.interface.domain.space
        made = [changed_input(condition, image, SEVERITY, seed, space) for image in images]
        return np.stack(made)


def main() -> int:
    arguments = parse()
    pair = load_pair(arguments.pair)
    profiles = find_profiles(["emulated-xnnpack"])
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(None, profiles), profiles, stack)
        laboratory = ArchRepairLaboratory(
            opened,
            read_model_file(Path(str(pair.original))),
            loaded(arguments.train, arguments.limit),
            loaded(arguments.test, arguments.limit),
            arguments.steps,
        )
        for seed in arguments.seeds:
            print(f"\nRun seed {seed}, {arguments.steps} batches:\n")
            if arguments.table == "levels":
                levels(laboratory, seed)
            elif arguments.table == "blocks":
                blocks(laboratory, seed)
            else:
                conditions(laboratory, seed, arguments.conditions)
    return 0


def levels(laboratory: ArchRepairLaboratory, seed: int) -> None:
    """Train what has the greatest gradient on failures, at each level, without a search (§2.2)."""
    labelled = laboratory.rows(*laboratory.train)
    candidates = laboratory.candidates(labelled, seed)
    classifier, judged = candidates.classifier, laboratory.rows(*laboratory.test)
    print("| level | accuracy | CPU s |\n|---|--:|--:|")
    print(f"| before | {accuracy(classifier, classifier.constants, judged):.2%} | |")
    for name, moved in by_level(candidates):
        begun, rng = process_time(), np.random.default_rng(seed)
        after = trained(classifier, labelled, moved, candidates.pace, rng, untold)
        seconds = process_time() - begun
        found = accuracy(classifier, after, judged)
        print(f"| {name} | {found:.2%} | {seconds:.0f} |", flush=True)


def by_level(candidates: FloatCandidates) -> Iterator[tuple[str, Constants]]:
    classifier, labelled = candidates.classifier, candidates.labelled
    some = labelled.part(np.arange(min(2_000, len(labelled.labels))))
    failed = classifier.decisions(classifier.constants, some.rows) != some.labels
    weights = list(classifier.constants.weights)
    gradients = neuron_gradients(classifier, weights, some.part(np.flatnonzero(failed)))
    size = {at: np.abs(gradient) for at, gradient in gradients.items()}
    at = max(size, key=lambda tensor: float(size[tensor].max()))
    neuron, none = int(size[at].argmax()), scaled(everything(classifier.constants), 0)
    layer = {layer.inputs[1]: layer for layer in classifier.graph.layers if len(layer.inputs) > 1}
    if layer[at].name != "DEPTHWISE_CONV_2D":
        none.weights[at][neuron] = 1
    else:
        none.weights[at][..., neuron] = 1
    yield "neuron", none
    greatest = max(size, key=lambda tensor: float(np.abs(gradients[tensor].mean())))
    whole = scaled(everything(classifier.constants), 0)
    for tensor in layer[greatest].inputs[1:]:
        whole.of(tensor)[...] = 1
    yield "layer", whole
    steepest = max(
        candidates.blocks,
        key=lambda block: abs(
            float(
                np.concatenate(
                    [gradients[one.inputs[1]] for one in block.convolutions(classifier.graph)]
                ).mean()
            )
        ),
    )
    yield steepest.name, weights_of_block(classifier, steepest)
    yield "network", everything(classifier.constants)


def scaled(constants: Constants, factor: int) -> Constants:
    return Constants(*({at: value * factor for at, value in of.items()} for of in constants))


def blocks(laboratory: ArchRepairLaboratory, seed: int) -> None:
    """Search each block; say how many suspicious neurons it has, and what plain training does."""
    labelled = laboratory.rows(*laboratory.train)
    candidates, judged = laboratory.candidates(labelled, seed), laboratory.rows(*laboratory.test)
    scores = suspiciousness(
        candidates.classifier, candidates.blocks, labelled, np.random.default_rng(seed)
    )
    counts = {most: suspicious_neurons(scores, most) for most in KS}
    print(f"| | accuracy | CPU s | operators | {' | '.join(f'k = {k}' for k in KS)} |")
    print(f"|---|--:|--:|---|{'--:|' * len(KS)}")
    before = accuracy(candidates.classifier, candidates.classifier.constants, judged)
    print(f"| before | {before:.2%} | | |{' |' * len(KS)}")
    begun = process_time()
    plain = candidates.fine_tuned(untold)
    print(
        f"| plain | {share(plain, judged):.2%} | {process_time() - begun:.0f} | |{' |' * len(KS)}"
    )
    for block in candidates.blocks:
        begun = process_time()
        found = candidates.searched(block, untold)
        seconds = process_time() - begun
        kept = ", ".join(f"{c.earlier}→{c.later} {c.operator}" for c in found.connections)
        suspects = " | ".join(str(counts[most][block.name]) for most in KS)
        row = f"| {block.name} | {share(found, judged):.2%} | {seconds:.0f} | {kept} | {suspects} |"
        print(row, flush=True)


def conditions(laboratory: ArchRepairLaboratory, seed: int, names: Sequence[str]) -> None:
    """Train under one condition and none, and judge under all (RQ2)."""
    every = ("none", *names)
    images, labels = laboratory.test
    judged = {name: laboratory.rows(laboratory.changed(name, images, 1), labels) for name in every}
    print(f"| | trained under | {' | '.join(every)} |\n|---|---|{'--:|' * len(every)}")
    original = TrainedNetwork(laboratory.content)
    print(f"| before | – | {shown(share(original, judged[name]) for name in every)} |", flush=True)
    images, labels = laboratory.train
    for trained_under in names:
        changed = laboratory.changed(trained_under, images, 0)
        both = np.concatenate([images, changed]), np.concatenate([labels, labels])
        candidates = laboratory.candidates(laboratory.rows(*both), seed)
        located = candidates.located(50).located
        (block,) = (one for one in candidates.blocks if one.name == located)
        made = {"plain": candidates.fine_tuned(untold), located: candidates.searched(block, untold)}
        for name, network in made.items():
            cells = shown(share(network, judged[under]) for under in every)
            print(f"| {name} | {trained_under} | {cells} |", flush=True)


def share(network: TrainedNetwork, judged: LabelledRows) -> float:
    classifier = TrainedClassifier(network.content, "the network")
    return accuracy(classifier, classifier.constants, judged)


def accuracy(classifier: TrainedClassifier, constants: Constants, judged: LabelledRows) -> float:
    return float((classifier.decisions(constants, judged.rows) == judged.labels).mean())


def shown(accuracies: Iterator[float]) -> str:
    return " | ".join(f"{100 * found:.1f}" for found in accuracies)


def loaded(path: Path, limit: int | None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    with np.load(path) as arrays:
        return arrays["images"][:limit], arrays["labels"][:limit].astype(np.int64)


def untold(_done: int, _total: int) -> None:
    """Tell nobody."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pair", type=Path)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--limit", type=int, help="images of each file")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    tables = parser.add_subparsers(dest="table", required=True)
    tables.add_parser("levels")
    tables.add_parser("blocks")
    tables.add_parser("conditions").add_argument("conditions", nargs="+")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
