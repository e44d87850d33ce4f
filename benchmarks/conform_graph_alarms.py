"""Whether graphs raise false alarms on kernels of CPUs, of which none is a fault of its own.

    python benchmarks/conform_graph_alarms.py [DEVICE...] [--graphs 1500] [--rng-seed 0]

A third of the graphs are drawn at random, of up to ten operators, a third are trees of pairs, of
all operators in all types, and a third are two graphs that share the constants of an operator. Each
device runs them in a real agent, and has all of them take turns, in two shapes, by two signatures
and by a signature for each of two graphs, where its kernels can. What fails is cut to the least
graph and printed, with the issue that it is known as; what is not known is a false alarm, or a new
fault.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice

import numpy as np

from edgeflare.conform.conformance_arms import OpenedConformance, open_conformance
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.draft import NodeGraphs
from edgeflare.conform.execution.kernel_arm import PosedModel
from edgeflare.conform.findings.known_issues import KnownFaults, known_issues
from edgeflare.conform.graphs.failing_graphs import FailingGraph
from edgeflare.conform.graphs.graph_findings import GraphFindings
from edgeflare.conform.graphs.graph_turns import turn_pairs
from edgeflare.conform.graphs.graph_verdict import TURNS, judge_graphs
from edgeflare.conform.graphs.operator_variants import OperatorVariants, Variant
from edgeflare.conform.graphs.pair_trees import PairTrees
from edgeflare.conform.graphs.random_graphs import RandomGraphs
from edgeflare.conform.verdict.arm_comparison import DEVICE
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.trust import decided_by_user

DEVICES = (
    *("emulated-builtin", "emulated-reference", "emulated-xnnpack", "emulated-compiled-cpu"),
    "emulated-micro",
)
ROUND = 96


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("devices", nargs="*", default=DEVICES, metavar="DEVICE")
    parser.add_argument("--graphs", type=int, default=1500, help="on each (default: 1500)")
    parser.add_argument("--rng-seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.devices:
        models = list(islice(drawn(options.rng_seed), options.graphs))
        with ExitStack() as stack:
            profile = find_profile(name, decided_by_user(False))
            _try(open_conformance(profile, stack, lambda: False), models)


def drawn(seed: int) -> Iterator[PosedModel]:
    """Yield random graphs, trees of pairs and two graphs in turn."""
    cells = chosen_cells()
    rng, graphs = np.random.default_rng(seed), NodeGraphs()
    ways = OperatorVariants(rng, graphs)
    variants = {cell: tuple(ways.of(cell)) for cell in cells}
    known = [cell for cell in cells if variants[cell]]
    random = RandomGraphs(rng, graphs, known, variants)
    types = sorted({type_ for _, type_ in known})
    any_ = (random.draw(types[int(rng.integers(len(types)))]) for _ in iter(int, 1))
    found = (graph for graph in any_ if graph is not None)
    trees = PairTrees(variants, ways, lambda *_: True).trees()
    several = [each for cell in known for each in variants[cell] if _has_constants(graphs, each)]
    chosen = (several[int(rng.integers(len(several)))] for _ in iter(int, 1))
    two = (graph for each in chosen if (graph := random.draw_two(each)) is not None)
    for _, model in chain.from_iterable(zip(found, trees, two, strict=False)):
        yield model


def _has_constants(graphs: NodeGraphs, variant: Variant) -> bool:
    graph = graphs.graph(variant.node)
    constants = [value for value in graph.values if value.values is not None]
    variable = any(value.variable for value in constants)
    return bool(constants and graph.inputs) and not variable and not variant.twice


def _try(opened: OpenedConformance, models: list[PosedModel]) -> None:
    began, verdicts, failing = time.monotonic(), Counter[str](), list[FailingGraph]()
    for begin in range(0, len(models), ROUND):
        several = models[begin : begin + ROUND]
        for model, judged in zip(several, judge_graphs(several, opened.arms), strict=True):
            said = judged.judgement
            verdicts["alone" if said is None else said.verdict] += 1
            if said is not None and judged.fails:
                failing.append(FailingGraph(model, said, judged.invocation, judged.wrong))
    findings = GraphFindings(failing, opened.arms)
    for counted in (True, False):
        findings.shrink(counted, lambda: None, lambda: False)
    device = opened.provenance
    known = KnownFaults(
        issues=known_issues(),
        kernels=device.kernels,
        runtime=(device.runtime, device.runtime_version),
    )
    operators = sum(len(model.graph.nodes) for model in models)
    able = [turns for turns in TURNS.values() if opened.arms[0].taking_turns(turns) is not None]
    turned = Counter(turns for model in models for turns in turn_pairs(model, able))
    print(
        f"{device.kernels} kernels: {len(models)} graphs of"
        f" {operators} operators in {time.monotonic() - began:.0f} s: {dict(verdicts)},"
        f" in turns {dict(turned)},"
        f" {len(findings.keys)} findings",
        flush=True,
    )
    for key, arrangement in findings.keys:
        issue = known.issue(key, (DEVICE,), (), arrangement)
        print(
            f"  {key.operator} {key.type}, {key.verdict}, {key.symptom},"
            f" {'counts' if key.counted else 'does not count'}: {'; '.join(arrangement)}:"
            f" {'not known' if issue is None else issue.name}",
            flush=True,
        )


if __name__ == "__main__":
    main()
