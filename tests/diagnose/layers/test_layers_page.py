"""What a layer table says first: constants, ranges, the device, and the most sensitive layer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from edgeflare.diagnose.layer_difference import LayerName
from edgeflare.diagnose.layers.layer_figures import (
    LayerConstants,
    LayerError,
    LayerFigures,
    RangeUse,
    Sensitivity,
)
from edgeflare.diagnose.layers.layers_document import LayersDocument, differs_on_device, own_share
from edgeflare.diagnose.layers.layers_page import COLUMNS, layers_csv, layers_page, lead

RIGHT, WRONG = LayerConstants(0.5, 0.5, False), LayerConstants(200.0, 0.5, False)


def error(**fields: float | None) -> LayerError:
    known = {"inputs": 5, "not_finite": 0, "cosine": 1.0, "sqnr_db": 40.0, "rmse": 0.1}
    return LayerError(**{**known, "largest": 0.5, "units": None, **fields})  # type: ignore[arg-type]


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
        original=operator,
        matched_by="structure",
        constants=constants,
        entire=error(rmse=0.2),
        single=error(),
        range=RangeUse(-1.0, 1.0, 0.0, above, 1.0),
        sensitivity=None if margin is None else Sensitivity(5, margin, 1),
        device_single=device,
    )


def table(layers: Sequence[LayerFigures], **fields: object) -> LayersDocument:
    known = {"edgeflare": "0", "pair": "p", "fingerprint": "f", "kernels": "xnnpack", "inputs": 5}
    known |= {"device": None, "asked": 5, "input_range": None, "notes": ()}
    return LayersDocument(**{**known, "layers": tuple(layers), **fields})  # type: ignore[arg-type]


def test_constants_of_few_layers_are_wrong_and_of_most_are_others() -> None:
    few = table([layer(0), layer(1, constants=WRONG), layer(2)])
    assert [one.layer.operator for one in few.faulty()] == [1]
    assert layers_page(few).mark == "fail"
    assert "CONV_2D (operator 1) (200 steps)" in lead(few)
    wraps = LayerConstants(4e9, 0.5, True)
    most = table([layer(0, constants=WRONG), layer(1, constants=WRONG), layer(2, constants=wraps)])
    assert [one.layer.operator for one in most.faulty()] == [2]
    assert "constants of 3 layers are others than the original's" in lead(most)
    assert "which its type cannot hold" in lead(most)


def test_of_layers_that_are_about_as_sensitive_one_that_cuts_off_is_named() -> None:
    cut = [layer(0, 0.1), layer(1, 0.9, above=0.06), layer(2, 1.0)]
    assert table(cut).most_sensitive() == cut[1]
    assert "6.0% of the original's values lie beyond its range" in lead(table(cut))
    barely = [layer(0, 0.1), layer(1, 0.4, above=0.06), layer(2, 1.0)]
    assert table(barely).most_sensitive() == barely[2]
    assert "beyond" not in lead(table(barely))


def test_without_sensitivities_the_own_share_sorts() -> None:
    share = own_share(layer(0))
    assert share == pytest.approx(0.5)
    assert "adds the largest share of its own" in lead(table([layer(0), layer(1)]))
    assert lead(table([LayerFigures(layer=LayerName(0, "ADD", ""))])) == "No layer could be seen"


def test_an_input_that_cannot_hold_what_it_is_given_is_said() -> None:
    cut = RangeUse(0.0, 1.0, 0.7, 0.0, 1.0)
    assert "holds 0 to 1, and 70% of the values" in lead(table([layer(0, 1.0)], input_range=cut))
    whole = RangeUse(0.0, 1.0, 0.004, 0.004, 1.0)
    assert "holds" not in lead(table([layer(0, 1.0)], input_range=whole))


@pytest.mark.parametrize(
    ("found", "differs"),
    [
        (error(units=1.0), False),
        (error(units=2.0), True),
        (error(sqnr_db=80.0), False),
        (error(sqnr_db=20.0), True),
        (error(not_finite=1), True),
        (error(sqnr_db=None, largest=0.0), False),
        (None, False),
    ],
)
def test_a_layer_differs_on_a_device_by_more_than_rounding(
    found: LayerError | None, differs: bool
) -> None:
    one = layer(0, device=found)
    assert differs_on_device(one) == differs
    page = layers_page(table([one], device="phone"))
    assert (page.mark == "fail") == differs


def test_a_table_that_was_stopped_says_so() -> None:
    assert "after 3 of 5 inputs" in " ".join(layers_page(table([layer(0)], inputs=3)).warnings)


def test_rows_have_a_cell_for_each_figure_that_is_known() -> None:
    header, row = layers_csv(table([layer(0, 1.0)])).splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    assert tuple(cells) == COLUMNS
    assert cells["sensitivity"] == "1.0"
    assert cells["device_single_rmse"] == ""
