"""What ways of drawing models for `edgeflare conform` cover, after equally many models.

    python benchmarks/conform_coverage.py [--models 2000] [--from MODEL.tflite] [--rng-seeds 0,1,2]

Rows: one operator for each model, drawn evenly over cells; MEMO's loop over models that are drawn,
and without its guidance (MEMO_r of the paper); and its loop over the parts of a model, reduced by
Algorithm 1 and as it stands. No device is asked: what the host's built-in kernels load counts as
taken, in processes of their own, since some models crash a kernel. "Operators" are how many of them
all models have together, which is what a device needs time for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np

from edgeflare.conform.drafts.baselines.memo_drawing import (
    DRAWN_SEEDS,
    MemoDrawing,
    SeedSelection,
    drawn_seeds,
    metropolis_hastings,
    model_seeds,
    reduced,
    unguided,
)
from edgeflare.conform.drafts.cell_pairs import allowed_pairs
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, DraftOutcome, DraftSource, NodeGraphs, drafted
from edgeflare.conform.drafts.draft_mutation import MutationContext
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.drafts.model_reading import ModelReading, read_operators
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import OperatorGraph, side_by_side

ROUND = 100
"""Models that are asked for at once, as in a run."""

EXAMPLE = Path(__file__).parents[1] / "examples" / "face_detection" / "compressed.tflite"

_LOADER = """
import sys
from ai_edge_litert.interpreter import Interpreter, OpResolverType
for path in sys.argv[1:]:
    try:
        Interpreter(
            path, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        ).allocate_tensors()
        print(1, flush=True)
    except (RuntimeError, ValueError):
        print(0, flush=True)
"""

Sources = Callable[[ModelReading, Coverage, np.random.Generator], list[DraftSource]]


def uniform(_: ModelReading, coverage: Coverage, rng: np.random.Generator) -> list[DraftSource]:
    return [UniformDrawing(coverage, rng)]


def memo(_: ModelReading, coverage: Coverage, rng: np.random.Generator) -> list[DraftSource]:
    return [_drawn_memo(coverage, rng, metropolis_hastings)]


def memo_unguided(
    _: ModelReading, coverage: Coverage, rng: np.random.Generator
) -> list[DraftSource]:
    return [_drawn_memo(coverage, rng, unguided)]


def memo_of_model(
    reading: ModelReading, coverage: Coverage, rng: np.random.Generator
) -> list[DraftSource]:
    graphs = NodeGraphs(reading.given)
    return [MemoDrawing(model_seeds(reduced(reading.draft, graphs)), coverage, graphs, rng)]


def memo_of_whole_model(
    reading: ModelReading, coverage: Coverage, rng: np.random.Generator
) -> list[DraftSource]:
    return [MemoDrawing(model_seeds(reading.draft), coverage, NodeGraphs(reading.given), rng)]


def _drawn_memo(coverage: Coverage, rng: np.random.Generator, select: SeedSelection) -> MemoDrawing:
    graphs = NodeGraphs()
    seeds = drawn_seeds(DRAWN_SEEDS, MutationContext(coverage, graphs, rng))
    return MemoDrawing([reduced(one, graphs) for one in seeds], coverage, graphs, rng, select)


WAYS: Mapping[str, Sources] = {
    "uniform": uniform,
    "MEMO": memo,
    "MEMO without guidance": memo_unguided,
    "MEMO of a model": memo_of_model,
    "MEMO of a model, without reduction": memo_of_whole_model,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--from", dest="model", type=Path, default=EXAMPLE)
    parser.add_argument("--rng-seeds", default="0")
    parser.add_argument("--only", choices=sorted(WAYS))
    given = parser.parse_args()
    reading = read_operators(given.model.read_bytes(), str(given.model))
    cells = chosen_cells()
    allowed = allowed_pairs(cells)
    print("| way | run seed | models | operators | cells | buckets | pairs | ms to draw |")
    print("|---|---|---|---|---|---|---|---|")
    for name, way in WAYS.items():
        for seed in map(int, given.rng_seeds.split(",")):
            if given.only in (None, name):
                coverage = Coverage(cells, allowed)
                row = measured(way, reading, coverage, given.models, np.random.default_rng(seed))
                print(f"| {name} | {seed} | {row} |", flush=True)


def measured(
    way: Sources, reading: ModelReading, coverage: Coverage, models: int, rng: np.random.Generator
) -> str:
    """Return the rest of the row of one way of drawing."""
    sources = way(reading, coverage, rng)
    drawn = operators = empty = 0
    spent = 0.0
    for source in cycle(sources):
        begin = time.process_time()
        drafts = source.ask(min(ROUND, models - drawn))
        spent += time.process_time() - begin
        source.tell(drafts, outcomes(drafts, reading.given))
        drawn += len(drafts)
        operators += sum(len(draft.nodes) for draft in drafts)
        empty = 0 if drafts else empty + 1
        if drawn == models or empty == len(sources):
            break
    figures = [
        f"{one.covered}/{one.known - one.refused} ({one.share:.0%})"
        for one in coverage.figures().values()
    ]
    return " | ".join((str(drawn), str(operators), *figures, f"{1e3 * spent / drawn:.1f}"))


def outcomes(drafts: Sequence[Draft], given: Mapping[int, OperatorGraph]) -> list[DraftOutcome]:
    """Return what the host's built-in kernels take of each draft."""
    models = [drafted(draft, given) for draft in drafts]
    whole = taken([one.graph for one in models])
    alone = iter(
        taken(
            [
                graph
                for one, is_taken in zip(models, whole, strict=True)
                if not is_taken
                for graph in one.alone
            ]
        )
    )
    return [
        DraftOutcome(
            tuple(is_taken or next(alone) for _ in one.alone),
            is_taken,
        )
        for one, is_taken in zip(models, whole, strict=True)
    ]


def taken(graphs: Sequence[OperatorGraph]) -> list[bool]:
    """Return whether each graph is loaded; one that crashes the process was."""
    if not graphs:
        return []
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "packed.tflite"
        packed.write_bytes(graph_file(side_by_side(graphs)))
        if list(loaded([packed])) == [True]:
            return [True] * len(graphs)
        paths = [Path(folder) / f"{at}.tflite" for at in range(len(graphs))]
        for path, graph in zip(paths, graphs, strict=True):
            path.write_bytes(graph_file(graph))
        found: list[bool] = []
        while len(found) < len(paths):
            found.extend(loaded(paths[len(found) :]))
            if len(found) < len(paths):
                found.append(True)
        return found


def loaded(paths: Sequence[Path]) -> Iterator[bool]:
    """Yield whether each file can be loaded, up to one that crashes the process."""
    program = [sys.executable, "-c", _LOADER, *map(str, paths)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    yield from (line == "1" for line in done.stdout.splitlines() if line in ("0", "1"))


if __name__ == "__main__":
    main()
