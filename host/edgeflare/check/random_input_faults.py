"""What a device does otherwise than the host on drawn inputs, in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from edgeflare.check.figures.check_figures import DrawnFigures
from edgeflare.check.figures.file import SeenLayers
from edgeflare.pages.facts import significant


def failure_here(device: DrawnFigures) -> str:
    """Return what a device fails at and the host does not, in words; empty where at nothing."""
    if device.failed_alone:
        kinds = ", ".join(sorted(device.failed_here))
        return f"it fails ({kinds}) on {device.failed_alone} of {device.inputs} inputs"
    for output in device.outputs:
        if output.not_finite_alone:
            return (
                f"it puts out NaN or infinity as {output.output} on {output.not_finite_alone} of"
                f" {device.inputs} inputs"
            )
    return ""


def otherwise_here(device: DrawnFigures, layers: SeenLayers | None) -> str:
    """Return what a device computes otherwise than the host, in words; empty where nothing."""
    return next(
        chain(_otherwise_in_layers(device, layers), _otherwise_in_whole(device, layers)), ""
    )


def _otherwise_in_layers(device: DrawnFigures, layers: SeenLayers | None) -> Iterator[str]:
    wrong = () if layers is None else layers.on_device.get(device.device.name, ())
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield f"it computes {wrong[0]}{more} otherwise than the host, given the same"
    if layers is not None and (joined := layers.together.get(device.device.name)):
        yield (
            f"it computes {' and '.join(joined)} rightly by themselves, and otherwise than the host"
            " together"
        )


def _otherwise_in_whole(device: DrawnFigures, layers: SeenLayers | None) -> Iterator[str]:
    if device.unsteady:
        yield f"it gives {device.unsteady} of {device.repeated} other outputs the second time"
    for way in device.variants:
        if way.kind == "batch":
            continue  # items that depend on each other may be the model's own doing
        if way.failed:
            yield f"it has no answer to {way.failed} of {way.inputs} inputs {way.way}"
        if way.sqnr_db is not None and way.sqnr_db < _LEAST_DB:
            yield f"its outputs {way.way} are {way.sqnr_db:.0f} dB from those one by one"
    for output in device.outputs:
        if output.constant and not output.constant_on_host:
            yield f"it puts out the same as {output.output} for all inputs"
        seen = layers is not None and device.device.name in layers.on_device
        error = None if seen else output.error
        if error is not None and error.sqnr_db is not None and error.sqnr_db < _LEAST_DB:
            yield (
                f"its output {output.output} is {error.sqnr_db:.0f} dB from the host's, by up to"
                f" {significant(error.largest)}"
            )


_LEAST_DB: Final = 10.0
"""SQNR in dB below which a whole output is wrong, where its layers cannot be seen: roundings of a
hundred layers that are right by themselves have come to 17 dB."""
