"""A few planted faults of each kind of verdict; benchmarks/planted_faults.py has them all.

What a faulty device was asked is counted in its workers, whatever the explanation says of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from edgeflare.models.tflite_graph import Graph
from fault_catalogue import OTHER_RUNTIME, WEIGHTED, Fault, base, in_layer, named_layer
from fault_injection import Planted
from fault_trial import Healthy, judge, judge_healthy
from networks import write_pair
from requantizing import CONVERTERS, requantized
from tampering import COMPRESSED, EXAMPLE, ORIGINAL

pytestmark = pytest.mark.slow

SEEDS = 6
"""Enough for a finding of most of these faults that shows what it is."""


@pytest.fixture(scope="session")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("pairs") / "mobilenet", "mobilenet")


def right(fault: Fault, seeds: int = SEEDS) -> None:
    judged = judge(fault, seeds)
    assert judged.errors == []
    assert judged.right_verdict, (judged.verdict, judged.which, judged.why)
    assert fault.operator is None or judged.right_layer
    assert 0 < judged.device_queries <= MOST_DEVICE_QUERIES
    assert judged.asked in (None, judged.device_queries)
    assert (judged.asked is None) == (fault.where == "file")


@pytest.mark.parametrize(
    ("where", "name"),
    [("file", "half precision"), ("device", "half precision"), ("device", "rounds down")],
)
def test_a_fault_in_a_depthwise_layer(where: str, name: str, mobilenet: Path) -> None:
    graph = Graph(base(mobilenet, where, name))
    one = [one for one in graph.layers if one.name == "DEPTHWISE_CONV_2D"][2]
    right(in_layer(mobilenet, where, one, Planted(name, named_layer(graph, one))))


def test_a_fault_that_more_than_one_thread_brings_about() -> None:
    graph = Graph(base(EXAMPLE, "device", ""))
    one = next(one for one in graph.layers if one.name in WEIGHTED)
    planted = Planted("weights negated", named_layer(graph, one), threads=2)
    right(in_layer(EXAMPLE, "device", one, planted))


@pytest.mark.parametrize(
    ("name", "verdict", "seeds"),
    [
        ("flaky", "unstable", SEEDS),
        ("rows from below", "input-suspect", 24),
    ],
)
def test_a_fault_of_the_whole_device(name: str, verdict: str, seeds: int) -> None:
    right(Fault(EXAMPLE, "device", Planted(name), verdict), seeds)


@pytest.mark.old_board
def test_another_version_of_the_runtime(mobilenet: Path, old_board_python: Path) -> None:
    planted = Planted(OTHER_RUNTIME)
    fault = Fault(mobilenet, "device", planted, "kernel", which="runtime version")
    judged = judge(fault, SEEDS)
    assert judged.right_verdict, (judged.verdict, judged.which, judged.why)
    assert judged.device_queries <= MOST_DEVICE_QUERIES


def test_a_healthy_file_is_not_blamed() -> None:
    name = "one scale for a layer"
    content = requantized(ORIGINAL.read_bytes(), COMPRESSED.read_bytes(), CONVERTERS[name])
    judged = judge_healthy(Healthy(EXAMPLE, name, content), SEEDS)
    assert judged.findings > 0
    assert judged.right
