"""DARE as its paper has it, its ablations, and plain training beside them.

    python benchmarks/dare.py PAIR --train NPZ --out runs/history history
    python benchmarks/dare.py runs/history --train NPZ --test NPZ checkpoints
    python benchmarks/dare.py PAIR --train NPZ --test NPZ original

NPZ files have `images` and `labels`. `history` draws the weights of PAIR's original anew, trains it
with the first half of the images, and writes a pair with the checkpoints of each half epoch. There
`checkpoints` tunes the compressed network by the latter half of these with images of the other
half, and judges it under attack (Table 2 and Figure 6). `original` tunes PAIR's compressed network
towards its original, and counts images that deviate. No image of --test is tuned with. The tables
are Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import copy
from time import process_time

import numpy as np
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.core.query import Arm
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.diagnose.near_boundary import mixtures
from edgeflare.models.graph_scores import scores_of
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.architecture.trained_classifier import (
    Constants,
    LabelledRows,
    TrainedClassifier,
    everything,
    rates_of,
)
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.distillation import fit_distillation
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.gradient_descent import Descent
from edgeflare.repair.fitting.quantized_network import MatchedLayer, QuantizedNetwork
from edgeflare.repair.fitting.quantizer import compressed_as
from edgeflare.repair.fitting.weight_rounding import fit_rounding
from edgeflare.repair.judging.candidate_model import open_candidate
from edgeflare.repair.judging.judgement_inputs import decisions
from edgeflare.repair.judging.robustness import attacked_inputs
from edgeflare.repair.post_training.dare import (
    fine_tuned,
    layer_before_last,
    taught_rows,
    tuned_towards,
)
from edgeflare.repair.post_training.layer_regression import Oracle
from edgeflare.repair.repair_run import repair_plan

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]
Ways = Mapping[str, Callable[[], bytes]]
"""What makes a file, by what it is called in a table."""

EPOCHS, BATCH, RATE = 8, 128, 0.016
CALIBRATING, SEEDS = 500, 3_000


@dataclass(frozen=True)
class TrainedFashion:
    """A pair that is open, and images to train and to judge with."""

    opened: OpenedPair
    train: tuple[Images, Labels]
    test: tuple[Images, Labels]
    rng_seed: int

    @property
    def rng(self) -> np.random.Generator:
        """A new generator of the run's seed."""
        return np.random.default_rng(self.rng_seed)

    def rows(self, arm: Arm, images: Images) -> NDArray[np.generic]:
        """Return images as an arm takes them."""
        return self.opened.panel.rows(arm, images, self.ids(len(images)))

    def network(self, images: Images) -> QuantizedNetwork:
        """Return the pair's networks with images to fit with."""
        pair = self.opened.pair
        return QuantizedNetwork(
            read_model_file(pair.compressed),
            read_model_file(Path(str(pair.original))),
            self.rows(Arm.TWIN, images),
            self.rows(Arm.ORIGINAL, images),
        )

    def decided(self, content: bytes, images: Images) -> Labels:
        """Return what a model decides, by the runtime."""
        with open_candidate(content, self.opened) as model:
            return decisions(model.answers(images, self.ids(len(images))))

    def ids(self, count: int) -> list[int]:
        """Return a seed for each image."""
        return [self.opened.seeds.seed_ids[0]] * count


def main() -> int:
    arguments = parse()
    pair, profiles = load_pair(arguments.pair), find_profiles(["emulated-xnnpack"])
    with ExitStack() as stack:
        opened = open_pair(pair, repair_plan(None, profiles), profiles, stack)
        test = arguments.train if arguments.test is None else arguments.test
        judged, labels = loaded(test)
        some = slice(arguments.judged)
        laboratory = TrainedFashion(
            opened, loaded(arguments.train), (judged[some], labels[some]), arguments.rng_seed
        )
        if arguments.table == "history":
            write_history(laboratory, arguments.out)
        elif arguments.table == "checkpoints":
            by_checkpoints(laboratory, arguments)
        else:
            by_original(laboratory, arguments.count)
    return 0


# A training and its checkpoints.


def write_history(laboratory: TrainedFashion, out: Path) -> None:
    """Train the original's network anew with the first half, and write a pair and checkpoints."""
    pair, (images, labels) = laboratory.opened.pair, laboratory.train
    classifier = TrainedClassifier(read_model_file(Path(str(pair.original))), "the original")
    half, rng = len(images) // 2, laboratory.rng
    labelled = LabelledRows(laboratory.rows(Arm.ORIGINAL, images[:half]), labels[:half])
    begin, each = drawn(classifier.constants, rng), half // BATCH // 2
    descent = Descent(classifier.loss, begin, 2 * EPOCHS * each)
    rates, batches = rates_of(begin, everything(begin), RATE), labelled.batches(rng)
    out.mkdir(parents=True, exist_ok=True)
    for number in range(2 * EPOCHS):
        for _, batch in zip(range(each), batches, strict=False):
            descent.take((batch.rows, batch.labels), rates)
        kinds = (
            {at: np.asarray(values) for at, values in kind.items()} for kind in descent.reached
        )
        content = classifier.written(Constants(*kinds))
        (out / f"checkpoint-{number + 1:02}.tflite").write_bytes(content)
    (out / "original.tflite").write_bytes(content)
    some = labelled.rows[:CALIBRATING]
    network = QuantizedNetwork(content, content, some, some)
    made = compressed_as(read_model_file(pair.compressed), network)
    (out / "compressed.tflite").write_bytes(made.content)
    seeds = slice(half, half + SEEDS)
    np.savez(out / "seeds.npz", images=images[seeds], labels=labels[seeds])
    copy(Path(str(pair.original)).parent / "pair.toml", out / "pair.toml")


def drawn(constants: Constants, rng: np.random.Generator) -> Constants:
    """Return weights that are drawn as He et al. do, and biases of 0."""
    return Constants(
        {
            at: rng.normal(scale=np.sqrt(2 / np.prod(of.shape[1:])), size=of.shape).astype("f4")
            for at, of in constants.weights.items()
        },
        {at: np.zeros_like(of) for at, of in constants.biases.items()},
    )


# The oracle is a checkpoint.


def by_checkpoints(laboratory: TrainedFashion, arguments: argparse.Namespace) -> None:
    """Tune by checkpoints in each way, and judge on test images as they are and attacked."""
    files = sorted(arguments.pair.glob("checkpoint-*.tflite"))
    checkpoints = [file.read_bytes() for file in files[len(files) // 2 :]]
    images, labels = laboratory.train
    some = slice(len(images) // 2, len(images) // 2 + arguments.count)
    network, true, few = laboratory.network(images[some]), labels[some], slice(arguments.attacked)
    judged, judged_labels = laboratory.test
    with open_candidate(network.original, laboratory.opened) as model:
        attacked = dict(
            attacked_inputs(model, laboratory.opened, judged[few], judged_labels[few].tolist())
        )
    del attacked["none"]
    sets = {"as they are": (judged, judged_labels)} | {
        name: (moved, judged_labels[few]) for name, moved in attacked.items()
    }

    def shares(content: bytes) -> list[str]:
        decided = ((laboratory.decided(content, images), true) for images, true in sets.values())
        return [f"{(given == true).mean():.2%}" for given, true in decided]

    ways = ways_by_checkpoints(network, true, checkpoints, laboratory.rng_seed)
    print_table(["before", *ways], list(sets), shares, {"before": lambda: network.content, **ways})


def ways_by_checkpoints(
    network: QuantizedNetwork, labels: Labels, checkpoints: list[bytes], seed: int
) -> Ways:
    """Return DARE, the paper's ablations (§4.2.2) and plain training."""
    before_last, last = layer_before_last(network), last_layer(network)
    taught = taught_rows(network, labels, checkpoints, before_last)
    places = taught.teachers >= 0
    print(f"{int(places.sum())} of {len(labels)} images are taught.\n")
    at_last = taught_rows(network, labels, checkpoints, last).oracle
    count, rng = int(places.sum()), np.random.default_rng(seed)
    random = drawn_oracle(network, labels, checkpoints, before_last, count, rng)

    def towards(layer: MatchedLayer, oracle: Oracle, percent: float) -> bytes:
        rng = np.random.default_rng(seed)
        return tuned_towards(network, layer, oracle, labels, percent, rng, untold)

    def by_labels(rows: NDArray[np.generic], true: Labels) -> bytes:
        return fine_tuned(network, rows, true, np.random.default_rng(seed), untold)

    return {
        "DARE, q = 95 %": partial(towards, before_last, taught.oracle, 95),
        "q = 50 %": partial(towards, before_last, taught.oracle, 50),
        "without slices (Dare₋ₛ)": partial(towards, before_last, taught.oracle, 100),
        "labels of the same images (Dare₋ₛₗ)": partial(
            by_labels, network.rows[places], labels[places]
        ),
        "the last layer (Dare_last)": partial(towards, last, at_last, 95),
        "images and checkpoints drawn (Dare_rand)": partial(towards, before_last, random, 95),
        "plain: labels of all images": partial(by_labels, network.rows, labels),
    }


def drawn_oracle(
    network: QuantizedNetwork,
    labels: Labels,
    checkpoints: list[bytes],
    target: MatchedLayer,
    count: int,
    rng: np.random.Generator,
) -> Oracle:
    """Return as many inputs, each with what a checkpoint that is drawn has in a layer."""
    chosen = np.sort(rng.permutation(len(labels))[:count])
    teachers = rng.integers(0, len(checkpoints), count)
    made = [
        FakeQuantizedNetwork(Graph(checkpoint), (target.original_output,)).evaluate(
            network.original_rows[chosen]
        )[0]
        for checkpoint in checkpoints
    ]
    wanted = np.stack(made)[teachers, np.arange(count)]
    return Oracle(network.rows[chosen], wanted, labels[chosen])


# The oracle is the original.


def by_original(laboratory: TrainedFashion, count: int) -> None:
    """Tune towards the original in each way, behind ranges and rounding, and count deviations."""
    images, space = laboratory.train[0], laboratory.opened.pair.interface.domain.space
    mixed, _ = mixtures(images[:count], count, laboratory.rng, space)
    network = laboratory.network(np.concatenate([images[:count], mixed]))
    judged = laboratory.test[0]
    wanted = laboratory.decided(network.original, judged)

    def counts(content: bytes) -> list[str]:
        return [f"{int((laboratory.decided(content, judged) != wanted).sum()):,}"]

    fitted = network.with_content(fit_ranges(network, untold))
    fitted = network.with_content(fit_rounding(fitted, untold))
    ways: Ways = {
        "before": lambda: network.content,
        "`ranges+rounding`": lambda: fitted.content,
        **{
            f"{name}, behind these": way
            for name, way in ways_by_original(fitted, laboratory.rng_seed).items()
        },
    }
    print_table(list(ways), [f"deviating of {len(judged):,}"], counts, ways)


def ways_by_original(network: QuantizedNetwork, seed: int) -> Ways:
    """Return DARE, its ablations and distillation."""
    graph, before_last, last = (
        network.original_graph,
        layer_before_last(network),
        last_layer(network),
    )
    tensors = scores_of(graph), before_last.original_output, last.original_output
    scores, *wanted = FakeQuantizedNetwork(graph, tensors).evaluate(network.original_rows)
    classes = scores.reshape(len(scores), -1).argmax(axis=1)
    (now,) = FakeQuantizedNetwork(network.graph, (last.output,)).evaluate(network.rows)
    wanted[1] += (now - wanted[1]).mean()  # fitted logits are shifted, which a softmax does not see
    oracles = [Oracle(network.rows, values, classes) for values in wanted]

    def towards(layer: MatchedLayer, oracle: Oracle, percent: float) -> bytes:
        rng = np.random.default_rng(seed)
        return tuned_towards(network, layer, oracle, classes, percent, rng, untold)

    return {
        "DARE, q = 95 %": partial(towards, before_last, oracles[0], 95),
        "q = 50 %": partial(towards, before_last, oracles[0], 50),
        "without slices": partial(towards, before_last, oracles[0], 100),
        "the last layer": partial(towards, last, oracles[1], 95),
        "the last layer, without slices": partial(towards, last, oracles[1], 100),
        "the original's labels, without slices": lambda: fine_tuned(
            network, network.rows, classes, np.random.default_rng(seed), untold
        ),
        "`learning` (distillation)": lambda: fit_distillation(
            network, np.random.default_rng(seed), untold
        ),
    }


def last_layer(network: QuantizedNetwork) -> MatchedLayer:
    return [layer for layer in network.layers if layer.weights is not None][-1]


def print_table(
    names: list[str], header: list[str], cells: Callable[[bytes], list[str]], ways: Ways
) -> None:
    print(f"| | {' | '.join(header)} | CPU s |\n|---|{'--:|' * len(header)}--:|")
    for name in names:
        begun = process_time()
        content = ways[name]()
        seconds = process_time() - begun
        print(f"| {name} | {' | '.join(cells(content))} | {seconds:.0f} |", flush=True)


def untold(_done: int, _of: int) -> None:
    """Progress that nobody follows."""


def loaded(path: Path) -> tuple[Images, Labels]:
    with np.load(path) as arrays:
        return arrays["images"], arrays["labels"].astype(np.int64)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path, help="a folder with a pair.toml")
    parser.add_argument("--train", type=Path, required=True, help="NPZ to train with")
    parser.add_argument("--test", type=Path, help="NPZ to judge with")
    parser.add_argument("--out", type=Path, default=Path("runs/history"), help="of `history`")
    parser.add_argument("--count", type=int, default=6_000, help="images to tune with")
    parser.add_argument("--judged", type=int, help="images to judge with; all if not given")
    parser.add_argument("--attacked", type=int, default=1_000, help="of these, to attack")
    parser.add_argument("--rng-seed", type=int, default=0)
    parser.add_argument("table", choices=["history", "checkpoints", "original"])
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
