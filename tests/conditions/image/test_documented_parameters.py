"""The tables of docs/conditions.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.conditions.condition import Condition
from edgeflare.conditions.image import blur_corruptions as blurs
from edgeflare.conditions.image import camera_conditions as camera
from edgeflare.conditions.image import digital_corruptions as digital
from edgeflare.conditions.image import elastic_corruption as elastic
from edgeflare.conditions.image import noise_corruptions as noises
from edgeflare.conditions.image import spatter_corruption as spatter
from edgeflare.conditions.image import weather_corruptions as weather
from edgeflare.conditions.image.severity_parameters import SeverityParameters

PAGE = Path(__file__).parents[3] / "docs" / "conditions.md"
PARAMETERS: tuple[tuple[Condition, SeverityParameters], ...] = (
    (noises.gaussian_noise, noises.GAUSSIAN),
    (noises.shot_noise, noises.SHOT),
    (noises.impulse_noise, noises.IMPULSE),
    (noises.speckle_noise, noises.SPECKLE),
    (blurs.defocus_blur, blurs.DEFOCUS),
    (blurs.glass_blur, blurs.GLASS),
    (blurs.motion_blur, blurs.MOTION),
    (blurs.zoom_blur, blurs.ZOOM),
    (blurs.gaussian_blur, blurs.GAUSSIAN_SIGMA),
    (weather.snow, weather.SNOW),
    (weather.frost, weather.FROST),
    (weather.fog, weather.FOG),
    (weather.brightness, weather.BRIGHTNESS),
    (digital.contrast, digital.CONTRAST),
    (digital.pixelate, digital.PIXELATE),
    (digital.jpeg_compression, digital.JPEG),
    (digital.saturate, digital.SATURATE),
    (elastic.elastic_transform, elastic.ELASTIC),
    (spatter.spatter, spatter.SPATTER),
    (camera.white_balance, camera.WHITE_BALANCE),
    (camera.gamma, camera.GAMMA),
    (camera.jpeg_quality, camera.JPEG_QUALITY),
    (camera.resampling, camera.RESAMPLING),
    (camera.shift, camera.SHIFT),
    (camera.letterboxing, camera.LETTERBOXING),
)


def documented(cell: str) -> list[list[float]]:
    return [[float(one) for one in row.split(",")] for row in cell.split("·")]


@pytest.mark.parametrize(("one", "parameters"), PARAMETERS, ids=[one.name for one, _ in PARAMETERS])
def test_the_page_says_the_parameters(one: Condition, parameters: SeverityParameters) -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{one.name}` |")]
    ((_, _, summary, _, small, large, _),) = (row.split("|") for row in rows)
    assert summary.strip() == one.summary
    if large.strip() == "the same":
        large = small
    for cell, expected in ((small, parameters.small), (large, parameters.large)):
        for ours, row in zip(documented(cell), expected, strict=True):
            assert ours == pytest.approx(row, abs=1e-4)
