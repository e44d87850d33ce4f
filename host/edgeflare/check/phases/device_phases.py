"""What a device costs, and whether it is right in other ways and on operators by themselves."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.check.answers import places
from edgeflare.check.cost import cost_figures, cost_seconds
from edgeflare.check.invocation_variants import pair_variants, variant_seconds
from edgeflare.check.operator_conformance import operator_figures
from edgeflare.check.phases.check_record import FIELD_UNTIL, CheckRecord
from edgeflare.devices.device import Device


def vary_invocations(record: CheckRecord, opened: OpenedPair) -> None:
    """Give a few inputs to a device on other threads and in batches."""
    device = opened.devices[0].profile.name
    name, its = f"threads and batches on {device}", record.device(device)
    if its is None or (its.kernels.variants is not None and not record.was_cut(name)):
        return
    about = record.about(device, variant_seconds)
    stopped = record.begin(name, FIELD_UNTIL * record.until, about)
    if not stopped():
        variants = pair_variants(opened, places(opened), stopped)
        record.update_device(replace(its, kernels=replace(its.kernels, variants=variants)))
    record.keep()


def measure_cost(record: CheckRecord, opened: OpenedPair) -> None:
    """Time both models on a device."""
    device = opened.devices[0].profile.name
    name = f"cost on {device}"
    known = {one.device: one for one in record.figures.costs}
    if device in known and not record.was_cut(name):
        return
    about = record.about(device, cost_seconds)
    stopped = record.begin(name, FIELD_UNTIL * record.until, about)
    if not stopped():
        known[device] = cost_figures(opened, stopped)
        record.update(costs=tuple(known.values()))
    record.keep()


def try_operators(record: CheckRecord, device: Device, model: Path) -> None:
    """Try the operators of a compressed model on a device, each by itself."""
    known = {one.device: one for one in record.figures.operators}
    where = device.profile.name
    name = f"operators on {where}"
    if where in known and not record.was_cut(name):
        return
    left = record.seconds_left(record.until)
    seconds = min(left, _OPERATORS_SHARE * record.until, _OPERATORS_SECONDS)
    stopped = record.begin(name, record.until)
    if stopped() or seconds < _OPERATORS_LEAST:
        record.cut(name)
        return
    first = where == record.check.request.devices[0]
    folder = "conform" if first else f"conform-{where.replace('/', '-')}"
    record.store.keep_folder(folder)
    with record.measuring(name):
        known[where] = operator_figures(
            device,
            model,
            record.store.path / folder,
            seconds,
            record.interrupt,
            partial(record.observer.worked, "operators"),
        )
        stopped()
        record.update(operators=tuple(known.values()))


_OPERATORS_SHARE: Final = 0.1
"""Share of the time for the operators of the model by themselves, on each device."""

_OPERATORS_SECONDS: Final = 15.0
"""Seconds that are spent on the operators at most, whatever the budget."""

_OPERATORS_LEAST: Final = 2.0
"""Seconds without which no operator is tried: to open the host's kernel sets takes a part of it."""
