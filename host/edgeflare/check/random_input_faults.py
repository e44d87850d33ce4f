"""What a device does otherwise than the host on drawn inputs, in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from edgeflare.check.figures.check_figures import DrawnFigures
from edgeflare.check.figures.file import SeenLayers
from edgeflare.pages.facts import significant


def failure_here(one: DrawnFigures) -> str:
    """Return what a device fails at and the host does not, in words; empty where at nothing."""
    if one.failed_alone:
        kinds = ", ".join(sorted(one.failed_here))
        return f"it fails ({kinds}) on {one.failed_alone} of {one.inputs} inputs"
    for output in one.outputs:
        if output.not_finite_alone:
            return (
                f"it puts out NaN or infinity as {output.output} on {output.not_finite_alone} of"
                f" {one.inputs} inputs"
            )
    return ""


def otherwise_here(one: DrawnFigures, layers: SeenLayers | None) -> str:
    """Return what a device computes otherwise than the host, in words; empty where nothing."""
    return next(chain(_otherwise_in_layers(one, layers), _otherwise_in_whole(one, layers)), "")


def _otherwise_in_layers(one: DrawnFigures, layers: SeenLayers | None) -> Iterator[str]:
    wrong = () if layers is None else layers.on_device.get(one.device.name, ())
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield f"it computes {wrong[0]}{more} otherwise than the host, given the same"
    if layers is not None and (joined := layers.together.get(one.device.name)):
        yield (
            f"it computes {' and '.join(joined)} rightly by themselves, and otherwise than the host"
            " together"
        )


def _otherwise_in_whole(one: DrawnFigures, layers: SeenLayers | None) -> Iterator[str]:
    if one.unsteady:
        yield f"it gives {one.unsteady} of {one.repeated} other outputs the second time"
    for way in one.variants:
        if way.kind == "batch":
            continue  # items that depend on each other may be the model's own doing
        if way.failed:
            yield f"it has no answer to {way.failed} of {way.inputs} inputs {way.way}"
        if way.sqnr_db is not None and way.sqnr_db < _LEAST_DB:
            yield f"its outputs {way.way} are {way.sqnr_db:.0f} dB from those one by one"
    for output in one.outputs:
        if output.constant and not output.constant_on_host:
            yield f"it puts out the same as {output.output} for all inputs"
        seen = layers is not None and one.device.name in layers.on_device
        error = None if seen else output.error
        if error is not None and error.sqnr_db is not None and error.sqnr_db < _LEAST_DB:
            yield (
                f"its output {output.output} is {error.sqnr_db:.0f} dB from the host's, by up to"
                f" {significant(error.largest)}"
            )


_LEAST_DB: Final = 10.0
"""SQNR in dB below which a whole output is wrong, where its layers cannot be seen: roundings of a
hundred layers that are right by themselves have come to 17 dB."""
