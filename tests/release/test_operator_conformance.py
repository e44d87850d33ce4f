"""The operators of a model by themselves, as a check tries them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ai_edge_litert import schema_py_generated as schema

from called_commands import call_here
from edgeflare.conform import conform_run
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.release import operator_conformance
from edgeflare.release.operator_conformance import operator_figures
from graph_writer import GraphWriter


def addition(path: Path, scale: float) -> Path:
    """Write y = x + z in int8, y with a scale of 1 / 128."""
    writer = GraphWriter()
    x, z = (writer.tensor(name, (1, 16), "INT8", (scale, 0)) for name in ("x", "z"))
    y = writer.tensor("y", (1, 16), "INT8", (1 / 128, 0))
    writer.operator("ADD", [x, z], [y], schema.AddOptionsT(), 2)
    return writer.save(path, [x, z], [y])


@pytest.mark.slow
def test_an_operator_that_is_wrong_as_it_stands_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The built-in kernels wrap where scales are more than 128 times that of the result."""
    monkeypatch.setattr(conform_run, "_LAST_ROUNDS", 0)
    monkeypatch.setattr(operator_conformance, "_NEAR", 8)
    out = tmp_path / "conform"
    with connect(find_profiles(["emulated-builtin"])[0]) as device:
        wrong = addition(tmp_path / "wrong.tflite", 1.5)
        found = operator_figures(device, wrong, out, 15.0, Interrupt())
        assert (found.run, found.operators, found.tried) == ("conform", 1, 1)
        first = found.faults[0]
        assert (first.layers, first.symptom) == (("ADD (operator 0)",), "wrong-values")
        assert call_here("report", out).code == 0
        near = addition(tmp_path / "near.tflite", 1.0)
        again = operator_figures(device, near, out, 15.0, Interrupt())
        assert [one.places for one in again.faults] == [()]


def test_a_model_of_which_no_operator_is_known_is_refused(tmp_path: Path) -> None:
    writer = GraphWriter()
    x, y = (writer.tensor(name, (1, 8), "FLOAT32") for name in ("x", "y"))
    writer.operator("HASHTABLE_LOOKUP", [x], [y])
    model = writer.save(tmp_path / "m.tflite", [x], [y])
    with (
        connect(find_profiles(["emulated-builtin"])[0]) as device,
        pytest.raises(UserError, match="none of its operators is known"),
    ):
        operator_figures(device, model, tmp_path / "conform", 15.0, Interrupt())
