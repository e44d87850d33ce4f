"""A vendor's delegate, which is a shared library: one of ours, in a few lines of C."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edgeflare_agent.runtime import Delegate, IsolatedModel, Options
from edgeflare_protos import agent_pb2
from edgeflare_protos.kernel_sets import KERNEL_SETS

pytestmark = pytest.mark.gcc

SOURCE = Path(__file__).with_name("external_delegate.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc to build a delegate")
    path = tmp_path_factory.mktemp("delegate") / "libnothing.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(path), str(SOURCE)], check=True)
    return str(path)


@pytest.mark.parametrize(
    ("kernels", "take", "external", "delegated"),
    [
        ("builtin", 0, 0, 0),
        ("builtin", 1, 1, 1),
        ("xnnpack", 0, 0, 2),
        ("xnnpack", 1, 1, 2),
        ("xnnpack", 2, 2, 2),
    ],
)
def test_what_it_took_is_told_apart_from_what_xnnpack_took(
    library: str,
    float_model: Path,
    tmp_path: Path,
    kernels: Any,
    take: int,
    external: int,
    delegated: int,
) -> None:
    mark = tmp_path / "loaded"
    delegate = Delegate(library, {"take": str(take), "mark": str(mark)})
    with IsolatedModel.open(float_model, Options(kernels, delegate=delegate)) as model:
        assert (model.external_nodes, model.delegated_nodes) == (external, delegated)
        assert model.operators == ("FULLY_CONNECTED", "SOFTMAX")
    assert mark.exists()


def test_the_host_is_told(
    start_agent: Any, connect: Any, library: str, float_model: Path, tmp_path: Path
) -> None:
    client = connect(start_agent("--allow-delegate", library))
    options = {"take": "1", "mark": str(tmp_path / "loaded")}
    delegate = agent_pb2.ExternalDelegate(library=library, options=options)
    opened = client.open(float_model, kernels=KERNEL_SETS["xnnpack"].number, delegate=delegate)
    assert (opened.external_nodes, opened.delegated_nodes, opened.total_nodes) == (1, 2, 2)
