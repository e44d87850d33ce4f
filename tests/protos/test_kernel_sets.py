"""The table of kernel sets: it agrees with the wire, and its columns tell them apart."""

from __future__ import annotations

from typing import get_args

from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.kernel_sets import (
    KERNEL_SETS,
    TFLITE_KERNEL_SETS,
    Kernels,
    accelerated,
    is_kernel_set,
    is_tflite_kernel_set,
)


def test_each_number_is_that_of_the_wire() -> None:
    names = {name: name.upper().replace("-", "_") for name in KERNEL_SETS}
    numbers = {f"KERNELS_{names[name]}": known.number for name, known in KERNEL_SETS.items()}
    assert {"KERNELS_UNSPECIFIED": 0} | numbers == dict(wire.Kernels.items())


def test_titles_and_names_of_the_runtimes_differ() -> None:
    assert len({known.title for known in KERNEL_SETS.values()}) == len(KERNEL_SETS)
    own_names = [(known.runtime, known.own_name) for known in KERNEL_SETS.values()]
    assert len(set(own_names)) == len(KERNEL_SETS)


def test_there_are_those_of_the_type_and_no_others() -> None:
    assert tuple(KERNEL_SETS) == get_args(Kernels)
    assert not is_kernel_set("xnn")


def test_those_of_the_interpreter_and_those_of_accelerators_are_told_apart() -> None:
    assert set(TFLITE_KERNEL_SETS) == {"xnnpack", "builtin", "reference"}
    assert [name for name in KERNEL_SETS if accelerated(name)] == ["gpu", "npu"]
    for name in KERNEL_SETS:
        assert is_tflite_kernel_set(name) == (name in TFLITE_KERNEL_SETS)
    assert not is_tflite_kernel_set("xnn")
