"""A few planted faults of each kind of verdict; benchmarks have them all."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from edgeflare.models.tflite_graph import Graph
from fault_catalogue import (
    OTHER_RUNTIME,
    WEIGHTED,
    Fault,
    base,
    drawn_in_layer,
    gpu,
    in_layer,
    named_layer,
)
from fault_injection import Planted
from fault_trial import Healthy, judge, judge_healthy
from networks import write_float_pair, write_pair
from requantizing import CONVERTERS, requantized
from runtime_fault_injection import falls_back
from tampering import COMPRESSED, EXAMPLE, ORIGINAL

pytestmark = pytest.mark.slow


SEEDS = 4
"""Enough for a finding of most of these faults that shows what it is."""
FEW = 2


@pytest.fixture(scope="session")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("pairs") / "mobilenet", "mobilenet")


def right(fault: Fault, seeds: int = SEEDS, *, layer: bool = True) -> None:
    """Require what is to be said of a fault, its layer too, in no more queries than it may take.

    What a faulty device was asked is counted in its workers, whatever the explanation says of it.
    """
    judged = judge(fault, seeds)
    assert judged.errors == []
    assert judged.right_verdict, (judged.verdict, judged.which, judged.why)
    assert not layer or fault.operator is None or judged.right_layer
    assert 0 < judged.device_queries <= MOST_DEVICE_QUERIES
    assert judged.asked in (None, judged.device_queries)
    assert (judged.asked is None) == (fault.where == "file" or fault.planted.fault == OTHER_RUNTIME)


@pytest.mark.parametrize(("where", "name"), [("file", "half precision"), ("device", "rounds down")])
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
    [("flaky", "unstable", SEEDS), ("rows from below", "input-suspect", 24)],
)
def test_a_fault_of_the_whole_device(name: str, verdict: str, seeds: int) -> None:
    right(Fault(EXAMPLE, "device", Planted(name), verdict), seeds)


@pytest.mark.old_board
@pytest.mark.usefixtures("old_board_python")
def test_another_version_of_the_runtime(mobilenet: Path) -> None:
    planted = Planted(OTHER_RUNTIME)
    right(Fault(mobilenet, "device", planted, "kernel", which="runtime-version"))


def test_a_healthy_file_is_not_blamed() -> None:
    name = "one scale for a layer"
    content = requantized(ORIGINAL.read_bytes(), COMPRESSED.read_bytes(), CONVERTERS[name])
    judged = judge_healthy(Healthy(EXAMPLE, name, content), SEEDS)
    assert judged.findings > 0
    assert judged.right


# By precision and fallback.


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_float16_in_the_nodes_that_an_accelerator_took(tmp_path: Path) -> None:
    pair = write_float_pair(tmp_path / "pair", "normalized")
    planted = Planted("float16 activations", place="gpu in float16")
    settings, which = gpu("fp16", fallback=True), "accelerator-precision"
    right(Fault(pair, "device", planted, "kernel", which=which, settings=settings), FEW)


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_the_cpus_nodes_and_the_accelerators_are_told_apart(tmp_path: Path) -> None:
    pair, rng = write_pair(tmp_path / "pair", "normalized"), np.random.default_rng(1)
    settings = gpu("fp16", fallback=True)
    for place, which, nodes in (
        ("compiled cpu", "cpu-fallback", falls_back),
        ("gpu", "gpu", lambda *node: not falls_back(*node)),
    ):
        right(drawn_in_layer(pair, place, settings, which, rng, nodes), FEW, layer=False)


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_an_npu_that_is_not_there_and_falls_back_in_silence(tmp_path: Path) -> None:
    pair = write_float_pair(tmp_path / "pair", "mobilenet")
    settings, rng = 'kernels = "npu"\nfallback = true', np.random.default_rng(0)
    fault = drawn_in_layer(pair, "compiled cpu", settings, "cpu-fallback", rng)
    right(fault, FEW, layer=False)
