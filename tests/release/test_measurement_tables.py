"""Tables of all that a check has measured."""

from __future__ import annotations

from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.release.figures.device_figures import OutputFigures
from edgeflare.release.measurement_tables import output_rows


def test_outputs_that_are_never_finite_are_not_equal() -> None:
    never = LayerError(0, 9, None, None, 0.0, 0.0, None)
    equal = LayerError(9, 0, 1.0, None, 0.0, 0.0, None)
    rows = output_rows(
        OutputFigures(output="y", read=True, compression=never, kernels=equal), "phone"
    )
    assert rows == [
        ("y", "twin from original", "0", "–", "–", "–", "–"),
        ("y", "phone from twin", "9", "equal", "1.00000", "0", "0"),
    ]
