"""Checks side by side."""

from __future__ import annotations

from msgspec.structs import replace

from checked_figures import DEVICE, HARM, changes, document, figures, kernels
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.release.check_comparison import comparison_table
from edgeflare.release.figures.check_figures import (
    CostFigures,
    InferenceTime,
    NearFigures,
    SearchedModel,
)
from edgeflare.release.figures.device_figures import OutputFigures

NEAR = SearchedModel(run="near", seeds=8, found=6, nearness_db=38.2, area=0.5, harmed=4)
TIME = InferenceTime(inferences=20, first_seconds=0.01, median_seconds=0.00125, high_seconds=0.002)


def test_figures_that_no_gate_is_about_have_a_row_where_a_check_has_them() -> None:
    time = CostFigures(
        device=DEVICE,
        compressed=TIME,
        original=None,
        ratio=None,
        ratio_low=None,
        ratio_high=None,
        worker_bytes=None,
        arena_bytes=None,
    )
    full = figures(
        decisions=HARM,
        kernels=kernels(changes=changes(3, by_tie=1)),
        near=NearFigures(measure="PSNR", model=NEAR, reference=NEAR),
        costs=(time,),
    )
    error = LayerError(
        inputs=9,
        not_finite=0,
        cosine=1.0,
        snr_db=31.2,
        rmse=0.1,
        max_error=0.5,
        max_error_steps=None,
    )
    noisy = OutputFigures(output="scores", read=True, compression=error, kernels=None)
    (device,) = full.devices
    full = replace(full, devices=(replace(device, outputs=(noisy,)),))
    table = comparison_table({"before": document(full), "after": document(figures())})
    rows = {name: cells for name, *cells in table.rows}
    assert [rows[name] for name in FIGURES] == [
        ["80.0%", "90.0%"],
        ["40 (32 harmed, 2 helped)", "0 (0 harmed, 0 helped)"],
        ["2", "0"],
        ["31.2 dB", "–"],
        ["1,000", "1,000"],
        ["1.25", "–"],
        ["38 dB (6 of 8)", "–"],
    ]
    assert "near" not in {name for name, *_ in comparison_table({"a": document(figures())}).rows}


FIGURES = ("right", "changed", "by kernels", "SQNR by compression", "bytes", "median ms", "near")
