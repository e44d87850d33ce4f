"""Some faults by precision and fallback; benchmarks/runtime_faults.py has all twelve, and others.

What a device was asked is counted in its workers, whatever the explanation says of it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from fault_catalogue import Fault
from fault_injection import Planted
from fault_trial import judge
from networks import write_float_pair, write_pair
from runtime_fault_catalogue import drawn_in_layer, gpu
from runtime_fault_injection import falls_back

pytestmark = pytest.mark.slow

SEEDS = 2


def named(fault: Fault, seeds: int = SEEDS) -> str | None:
    """Return what is named of a fault, that has to be found, and in no more than it may take."""
    judged = judge(fault, seeds)
    assert judged.errors == []
    assert judged.verdict == "kernel", (judged.verdict, judged.why)
    assert judged.asked == judged.device_queries <= MOST_DEVICE_QUERIES
    return judged.which


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_float16_in_the_nodes_that_an_accelerator_took(tmp_path: Path) -> None:
    pair = write_float_pair(tmp_path / "pair", "normalized")
    planted = Planted("float16 activations", place="gpu in float16")
    fault = Fault(pair, "device", planted, "kernel", settings=gpu("fp16", fallback=True))
    assert named(fault) == "accelerator precision"


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_the_cpus_nodes_and_the_accelerators_are_told_apart(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "pair", "normalized")
    rng = np.random.default_rng(0)
    settings = gpu("fp16", fallback=True)
    on_cpu = drawn_in_layer(pair, "compiled cpu", settings, "CPU fallback", rng, falls_back)
    assert named(on_cpu) == on_cpu.which
    on_gpu = drawn_in_layer(
        pair, "gpu", settings, "GPU accelerator", rng, lambda *node: not falls_back(*node)
    )
    assert named(on_gpu) == on_gpu.which


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_an_npu_that_is_not_there_and_falls_back_in_silence(tmp_path: Path) -> None:
    pair = write_float_pair(tmp_path / "pair", "mobilenet")
    settings = 'kernels = "npu"\nfallback = true'
    rng = np.random.default_rng(0)
    fault = drawn_in_layer(pair, "compiled cpu", settings, "CPU fallback", rng)
    assert named(fault) == "CPU fallback"
