"""What a layer table says first: constants, ranges, the device, and the most sensitive layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformed_runs import BOARD
from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.diagnose.layers.layer_figures import (
    LayerConstants,
    LayerError,
    LayerFigures,
    RangeUse,
    Sensitivity,
)
from edgeflare.diagnose.layers.layers_document import (
    LayersDocument,
    differs_on_device,
    layers_bytes,
    load_layers,
    own_share,
)
from edgeflare.diagnose.layers.layers_page import COLUMNS, layers_csv, layers_page, lead
from edgeflare.errors import UserError
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.page import Table
from edgeflare.run.run_document import RunDevice

RIGHT, WRONG = LayerConstants(0.5, 0.5, False), LayerConstants(200.0, 0.5, False)


def error(**fields: float | None) -> LayerError:
    known = {"inputs": 5, "not_finite": 0, "cosine": 1.0, "snr_db": 40.0, "rmse": 0.1}
    return LayerError(**{**known, "max_error": 0.5, "max_error_steps": None, **fields})  # type: ignore[arg-type]


def layer(
    operator: int,
    margin: float | None = None,
    *,
    constants: LayerConstants | None = RIGHT,
    above: float = 0.0,
    device: LayerError | None = None,
) -> LayerFigures:
    return LayerFigures(
        layer=LayerName(operator, "CONV_2D", f"c{operator}"),
        original_index=operator,
        matched_by="structure",
        constants=constants,
        entire=error(rmse=0.2),
        single=error(),
        range=RangeUse(-1.0, 1.0, 0.0, above, 1.0),
        sensitivity=None if margin is None else Sensitivity(5, margin, 0.05, 1),
        device_single=device,
    )


def table(layers: Sequence[LayerFigures], **fields: object) -> LayersDocument:
    known = {"edgeflare": "0", "pair": "p", "fingerprint": "f", "kernels": "xnnpack", "inputs": 5}
    known |= {
        "device": None,
        "inputs_requested": 5,
        "input_range": None,
        "notes": (),
        "source": "s.npz",
    }
    known |= {"outputs_differ": None, "together": ()}
    return LayersDocument(**{**known, "layers": tuple(layers), **fields})  # type: ignore[arg-type]


def test_constants_of_few_layers_are_wrong_and_of_most_are_others() -> None:
    few = table([layer(0), layer(1, constants=WRONG), layer(2)])
    assert [one.layer.operator_index for one in few.faulty()] == [1]
    assert layers_page(few).mark == "fail"
    assert "CONV_2D (operator 1) (200 steps)" in lead(few)
    wraps = LayerConstants(4e9, 0.5, True)
    most = table([layer(0, constants=WRONG), layer(1, constants=WRONG), layer(2, constants=wraps)])
    assert [one.layer.operator_index for one in most.faulty()] == [2]
    assert "constants of 3 layers are others than the original's" in lead(most)
    assert "which its type cannot hold" in lead(most)


def test_a_layer_that_was_pruned_is_not_faulty() -> None:
    pruned = LayerConstants(200.0, 0.5, overflows=False, pruned=True)
    rows = [layer(at, constants=RIGHT) for at in range(3)]
    assert table([*rows, layer(3, constants=WRONG)]).faulty()
    assert not table([*rows, layer(3, constants=pruned)]).faulty()


def test_the_most_sensitive_layer_is_named_with_those_that_cannot_be_told_from_it() -> None:
    rows = [layer(0, 0.1), layer(1, 0.9), layer(2, 1.0, above=0.06), layer(3, 0.5)]
    assert [one.layer.operator_index for one in table(rows).most_sensitive()] == [2, 1]
    said = lead(table(rows))
    assert said.startswith("CONV_2D (operator 2) is the most sensitive to compression")
    assert "moves the margin by 1 on average, and changes 1 of 5 decisions" in said
    assert "6.0% of the original's values lie beyond its range" in said
    assert "do not tell CONV_2D (operator 1) from it" in said
    page = layers_page(table(rows))
    (compared,) = (one for one in page.sections if one.id == "compression")
    (cells,) = compared.blocks
    assert isinstance(cells, Table)
    assert [row[0] for row in cells.rows] == ["2", "1", "3", "0"]
    assert "no layer by itself moves the margin" in lead(table([layer(0, 0.0)]))


def test_one_input_tells_no_layer_from_another() -> None:
    rows = [replace(layer(at), sensitivity=Sensitivity(1, 1.0 + at, None, 0)) for at in range(2)]
    found = table(rows)
    assert [one.layer.operator_index for one in found.most_sensitive()] == [1, 0]
    (compared,) = (one for one in layers_page(found).sections if one.id == "compression")
    (cells,) = compared.blocks
    assert isinstance(cells, Table)
    assert [row[2] for row in cells.rows] == ["2", "1"]


def test_without_sensitivities_the_own_share_sorts_and_none_is_named() -> None:
    share = own_share(layer(0))
    assert share == pytest.approx(0.5)
    said = "2 layers held against the original's, without a sensitivity"
    assert lead(table([layer(0), layer(1)])) == said
    assert lead(table([LayerFigures(layer=LayerName(0, "ADD", ""))])) == "No layer could be seen"


def test_layers_that_are_not_finite_come_first() -> None:
    not_there = error(not_finite=99, inputs=1, snr_db=None, not_finite_here=99)
    nan = replace(layer(1, 0.1), entire=not_there)
    found = table([layer(0, 1.0), nan])
    assert found.by_sensitivity()[0] == nan
    assert "CONV_2D (operator 1) is the first that is not finite where the original is" in lead(
        found
    )
    assert layers_page(found).mark == "fail"
    assert "not finite on 99" in markdown_page(layers_page(found))
    of_original = replace(nan, entire=replace(not_there, not_finite_here=0))
    spared = table([layer(0, 1.0), of_original])
    assert "not finite" not in lead(spared)
    assert layers_page(spared).mark is None


def test_layers_that_differ_on_the_device_come_the_worst_first() -> None:
    units = {0: 1.0, 1: 3.0, 2: 9.0, 3: 5.0, 4: 4.0}
    rows = [layer(at, device=error(max_error_steps=steps)) for at, steps in units.items()]
    phone = RunDevice(name="phone", provenance=BOARD)
    found = table(rows, device=phone, outputs_differ=2)
    assert [one.layer.operator_index for one in found.wrong_on_device()] == [2, 3, 4, 1]
    assert (
        "phone computes 4 of 5 layers otherwise than the twin:"
        " CONV_2D (operator 2) (up to 9 steps), CONV_2D (operator 3) (up to 5 steps),"
        " CONV_2D (operator 4) (up to 4 steps) and 1 more, by themselves; the model's output"
        " differs on 2 of 5 inputs"
    ) in lead(found)
    unseen = lead(table([replace(rows[0], device_single=None)], device=phone, outputs_differ=3))
    assert "no layer could be compared on phone, though the model's output differs on 3" in unseen
    within = lead(table(rows[:1], device=phone, outputs_differ=3))
    assert within == (
        "phone computes 1 layer as the twin does, within one step, though the model's output"
        " differs on 3 of 5 inputs; 1 layer held against the original's, without a sensitivity"
    )
    fused = tuple(one.layer for one in rows[:2])
    joined = table(rows[:1], device=phone, outputs_differ=3, together=fused)
    said = (
        "differs on 3 of 5 inputs: CONV_2D (operator 0) and CONV_2D (operator 1) are wrong together"
    )
    assert said in lead(joined)


def test_an_input_that_cannot_hold_what_it_is_given_is_said() -> None:
    cut = RangeUse(0.0, 1.0, 0.7, 0.0, 1.0)
    assert "holds 0 to 1, and 70% of the values" in lead(table([layer(0, 1.0)], input_range=cut))
    whole = RangeUse(0.0, 1.0, 0.004, 0.004, 1.0)
    assert "holds" not in lead(table([layer(0, 1.0)], input_range=whole))


@pytest.mark.parametrize(
    ("found", "differs"),
    [
        (error(max_error_steps=1.0), False),
        (error(max_error_steps=2.0), True),
        (error(snr_db=61.0), False),
        (error(snr_db=59.0), True),
        (error(snr_db=-999.0, max_error=1e-30), False),
        (error(snr_db=20.0), True),
        (error(not_finite=1), True),
        (error(snr_db=None, max_error=0.0), False),
        (None, False),
    ],
)
def test_a_layer_differs_on_a_device_by_more_than_rounding(
    found: LayerError | None, differs: bool
) -> None:
    one = layer(0, device=found)
    assert differs_on_device(one) == differs
    page = layers_page(table([one], device=RunDevice(name="phone", provenance=BOARD)))
    assert (page.mark == "fail") == differs


def test_a_table_that_was_stopped_says_so() -> None:
    assert "after 3 of 5 inputs" in " ".join(layers_page(table([layer(0)], inputs=3)).warnings)


def test_rows_have_a_cell_for_each_figure_that_is_known() -> None:
    header, row = layers_csv(table([layer(0, 1.0)])).splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert tuple(cells) == COLUMNS
    assert cells["sensitivity"] == "1.0"
    assert cells["device_single_rmse"] == ""


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"inputs": 9}, "inputs is 9, and only 5 were asked for"),
        ({"layers": [layer(1), layer(0)]}, "layers are not in execution order"),
        ({"layers": [replace(layer(0), sensitivity=Sensitivity(5, 0.1, 0.0, 6))]}, "more changed"),
        ({"layers": [replace(layer(0), range=RangeUse(1.0, 1.0, 0.0, 0.0, 1.0))]}, "ends before"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(
    fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "layers.json"
    path.write_bytes(layers_bytes(table(**{"layers": [layer(0)], **fields})))
    with pytest.raises(UserError, match=said):
        load_layers(path)
