"""The table of kernel sets: it agrees with the wire, and its columns tell them apart."""

from __future__ import annotations

from typing import get_args

from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.kernel_sets import KERNEL_SETS, Kernels, is_kernel_set


def test_each_number_is_that_of_the_wire() -> None:
    numbers = {f"KERNELS_{name.upper()}": known.number for name, known in KERNEL_SETS.items()}
    assert {"KERNELS_UNSPECIFIED": 0} | numbers == dict(wire.Kernels.items())


def test_titles_and_resolvers_differ() -> None:
    assert len({known.title for known in KERNEL_SETS.values()}) == len(KERNEL_SETS)
    assert len({known.op_resolver for known in KERNEL_SETS.values()}) == len(KERNEL_SETS)


def test_there_are_those_of_the_type_and_no_others() -> None:
    assert tuple(KERNEL_SETS) == get_args(Kernels)
    assert not is_kernel_set("xnn")
