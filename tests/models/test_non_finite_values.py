"""Where NaN and infinity begin, by graphs that make them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.models.model_probe import Values
from edgeflare.models.non_finite_values import NonFiniteOnset, non_finite_onset, said_of_arms
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from tampering import whole

LARGE = np.array([[100.0, 0.0]], np.float32)
SMALL = np.array([[1.0, 0.0]], np.float32)


def onset(
    folder: Path,
    given: NDArray[np.float32],
    *layers: tuple[str, float | str | None],
    unseen: tuple[int, ...] = (),
) -> NonFiniteOnset | None:
    """Where it begins in layers that each take the one before.

    Args:
        folder: for the file.
        given: the input.
        layers: an operator, and its other operand: a constant, "itself", or None.
        unseen: layers whose output is not observed.

    """
    graph = GraphWriter()
    tensors = [graph.tensor("x", (1, 2), "FLOAT32")]
    for at, (name, operand) in enumerate(layers):
        read = [tensors[-1]]
        if operand == "itself":
            read *= 2
        elif operand is not None:
            data = np.array([operand], np.float32)
            read.append(graph.tensor(f"constant {at}", (1,), "FLOAT32", data=data))
        tensors.append(graph.tensor(f"y{at}", (1, 2), "FLOAT32"))
        kinds = {"MUL": schema.MulOptionsT, "SUB": schema.SubOptionsT}
        graph.operator(name, read, [tensors[-1]], kinds[name]() if name in kinds else None)
    path = graph.save(folder / "model.tflite", tensors[:1], tensors[-1:])
    content = path.read_bytes()
    state: dict[int, Values] = whole(Graph(content), given, "builtin", content)
    seen = {key: one for key, one in state.items() if key not in {tensors[at + 1] for at in unseen}}
    return non_finite_onset(Graph(content), seen)


def test_nan_of_infinities_names_where_these_begin(tmp_path: Path) -> None:
    found = onset(tmp_path, LARGE, ("EXP", None), ("SUB", "itself"), ("ABS", None))
    assert found is not None
    assert (found.kind, found.operator, found.name) == ("NaN", 1, "SUB")
    assert found.source == (
        "which is given infinity; that begins in EXP (operator 0), whose inputs are finite"
    )
    assert onset(tmp_path, SMALL, ("EXP", None), ("SUB", "itself"), ("ABS", None)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_constant_that_is_not_finite_is_named(value: float, tmp_path: Path) -> None:
    """Infinity by zero is NaN, by one infinity."""
    found = onset(tmp_path, SMALL, ("ABS", None), ("MUL", value))
    kind = "NaN" if np.isnan(value) else "infinity"
    assert found == NonFiniteOnset("NaN", 1, "MUL", f"whose constant 'constant 1' holds {kind}")


def test_infinity_matters_where_it_comes_out(tmp_path: Path) -> None:
    assert onset(tmp_path, LARGE, ("EXP", None), ("MINIMUM", 1.0)) is None
    found = onset(tmp_path, LARGE, ("EXP", None), ("ABS", None))
    assert found == NonFiniteOnset("infinity", 0, "EXP", "whose inputs are finite")


def test_what_the_model_is_given_or_is_not_seen_is_no_operators_fault(tmp_path: Path) -> None:
    given = np.array([[np.nan, 1.0]], np.float32)
    found = onset(tmp_path, given, ("ABS", None))
    assert found == NonFiniteOnset("NaN", None, "", "the model is given it")
    found = onset(tmp_path, LARGE, ("EXP", None), ("SUB", "itself"), ("ABS", None), unseen=(1,))
    assert found == NonFiniteOnset("NaN", None, "", "the operator in which it begins is not seen")


def test_arms_are_named_together_where_it_begins_alike() -> None:
    one = NonFiniteOnset("NaN", 3, "EXP", "whose inputs are finite")
    other = NonFiniteOnset("infinity", 5, "MUL", "whose constant 'c' holds infinity")
    begins = "it begins in EXP (operator 3), whose inputs are finite"
    assert said_of_arms({Arm.ORIGINAL: None, Arm.TWIN: None, Arm.DEVICE: None}) == ""
    assert said_of_arms({Arm.ORIGINAL: None, Arm.TWIN: None, Arm.DEVICE: one}) == (
        f"NaN on device: {begins}; original and twin are finite"
    )
    assert said_of_arms({Arm.ORIGINAL: other, Arm.TWIN: one, Arm.DEVICE: one}) == (
        "infinity on original: it begins in MUL (operator 5), whose constant 'c' holds infinity;"
        f" NaN on twin and device: {begins}"
    )
