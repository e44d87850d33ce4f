from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from edgeflare.conform.execution import pack_file as module
from edgeflare.conform.execution.pack_file import pack_file
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.graphs.operator_graph import side_by_side
from posed_models import mixed_models


def test_graphs_that_several_arms_run_are_written_once() -> None:
    graphs = [one.graph for one in mixed_models(6)]
    with ThreadPoolExecutor(4) as threads:
        files = list(threads.map(pack_file, [graphs] * 4))
    assert files[0] == graph_file(side_by_side(graphs))
    assert all(one is files[0] for one in files)


def test_equal_values_in_other_operators_make_another_file() -> None:
    graph = next(one.graph for one in mixed_models(6) if one.graph.nodes[0].operator == "NEG")
    changed = replace(graph, nodes=(replace(graph.nodes[0], operator="ABS", options={}),))
    assert pack_file([graph]) != pack_file([changed])
    assert pack_file([graph]) == graph_file(graph)


def test_old_files_make_room() -> None:
    graphs = [one.graph for one in mixed_models(40)]
    for graph in graphs:
        pack_file([graph])
    assert len(module._files) < len(graphs)
