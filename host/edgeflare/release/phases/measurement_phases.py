"""What a check measures once the answers are in: of the pair, of its device, and by a repair."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.devices.device import Device
from edgeflare.errors import UserError
from edgeflare.release.answers import places, seconds_per_input
from edgeflare.release.causes.cause import OF_THE_FILE
from edgeflare.release.cost import cost_figures, cost_seconds
from edgeflare.release.field import field_figures, field_seconds
from edgeflare.release.figures.file import SeenLayers
from edgeflare.release.invocation_variants import pair_variants, variant_seconds
from edgeflare.release.layer_faults import layer_figures, layer_seconds
from edgeflare.release.near import (
    MOST_SECONDS,
    near_figures,
    near_seconds,
    require_quantizable,
)
from edgeflare.release.operator_conformance import operator_figures
from edgeflare.release.phases.check_record import FIELD_UNTIL, LAYERS_UNTIL, CheckRecord


def try_conditions(record: CheckRecord, opened: OpenedPair) -> None:
    """Try the conditions of the field on the first device."""
    if record.figures.field is not None and not record.was_cut("field"):
        return
    order = places(opened)
    about = record.about(
        opened.devices[0].profile.name, lambda each: field_seconds(opened, order, each)
    )
    stopped = record.begin("field", FIELD_UNTIL * record.until, about)
    with record.measuring("field"):
        worked = partial(record.observer.worked, "conditions")
        record.update(field=field_figures(opened, order, stopped, worked))


def look_into_layers(record: CheckRecord, opened: OpenedPair, *, about_the_file: bool) -> None:
    """Look into the layers; on further devices only where these decide otherwise."""
    device = opened.devices[0].profile.name
    name = "layers" if about_the_file else f"layers on {device}"
    known, its = record.figures.layers, record.device(device)
    seen = known is not None and device in known.on_device and not record.was_cut(name)
    if seen or its is None or not (about_the_file or its.kernels.changes.strictly):
        return
    about = record.about(device, lambda each: layer_seconds(len(opened.seeds), each))
    stopped = record.begin(name, LAYERS_UNTIL * record.until, about)
    if stopped():
        return
    changed = [
        changed_input.seed_id
        for changed_input in its.decisions.changed_inputs
        if not changed_input.by_kernels
    ]
    with record.measuring(name):
        worked = partial(record.observer.worked, "layers")
        layers, table = layer_figures(
            opened, places(opened), changed, stopped, worked, record.check.request.fingerprint
        )
        if about_the_file:
            record.store.keep_layers(table)
        elif known is not None:
            layers = replace(known, on_device=layers.on_device, together=layers.together)
        add_layers(record, layers)


def add_layers(record: CheckRecord, layers: SeenLayers) -> None:
    """Take what layers show on a device, beside what they show on other devices."""
    before = record.figures.layers
    if before is not None:
        layers = replace(
            layers,
            on_device={**before.on_device, **layers.on_device},
            together={**before.together, **layers.together},
        )
    record.update(layers=layers)


def search_near(record: CheckRecord, opened: OpenedPair) -> None:
    """Search from a few inputs on the first device, in what is left of the time."""
    if not record.check.request.near:
        return
    if record.figures.near is not None and not record.was_cut("near"):
        return
    try:
        require_quantizable(opened.pair)
    except UserError as refused:
        record.refuse("near", str(refused))
        return
    about = record.about(opened.devices[0].profile.name, near_seconds)
    stopped = record.begin("near", record.until, about)
    seconds = record.seconds_left(record.until)
    if stopped() or seconds < _LEAST_SECONDS:
        record.cut("near")
        return
    with record.measuring("near"):
        found = near_figures(
            opened,
            places(opened),
            record.store.path,
            min(seconds, MOST_SECONDS),
            record.interrupt,
            record.store.keep_folder,
            partial(record.observer.worked, "searches"),
            record.check.request.fingerprint,
        )
        stopped()
        record.update(near=found)


_LEAST_SECONDS: Final = 5.0
"""Seconds without which nothing is searched near to the inputs."""


def why_not_mended(record: CheckRecord, opened: OpenedPair) -> str | None:
    """Return why a repair does not take a pair whose file is to blame, empty where it does.

    None where the file is not to blame.
    """
    cause = record.document().cause
    if cause is None or cause.rule not in OF_THE_FILE:
        return None
    from edgeflare.repair.repair_requirements import why_not_repaired  # noqa: PLC0415 - a room

    return why_not_repaired(record.check.pair, len(opened.seeds)) or ""


def mend(record: CheckRecord, opened: OpenedPair, why_not: str | None) -> None:
    """Note whether a repair takes the pair where the file is to blame; if asked for, try it.

    Args:
        record: what the check has measured so far.
        opened: the pair, on the first device.
        why_not: what `why_not_mended` returned.

    """
    if why_not is None:
        return
    record.update(mendable=not why_not)
    if why_not:
        record.miss("mend", why_not)
    record.keep()
    known = record.figures.mend is not None and not record.was_cut("mend")
    if record.check.request.mend and not (why_not or known):
        _repair(record, opened)


def _repair(record: CheckRecord, opened: OpenedPair) -> None:
    """Try candidates of a repair in what is left of the time limit."""
    from edgeflare.release.mend import (  # noqa: PLC0415 - the repair's room
        FOLDER,
        JUDGING,
        PREPARING,
        mend_figures,
    )

    if record.interrupt.asked():
        record.cut("mend")
        return
    request, profile = record.check.request, opened.devices[0].profile
    each = seconds_per_input(opened)  # now: other load may have come or gone
    until = request.time_limit_seconds - each * JUDGING
    stopped = record.begin("mend", until)
    if stopped() or record.seconds_left(until) < each * PREPARING:
        record.cut("mend")
        return
    record.store.keep_folder(FOLDER)
    with record.measuring("mend"):
        found = mend_figures(
            record.check.pair,
            profile,
            record.store.path,
            record.check.most_inputs,
            stopped,
            record.observer.worked,
            inputs=request.keep_inputs,
        )
        record.update(mend=found or record.figures.mend)


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
    known = {cost.device: cost for cost in record.figures.costs}
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
    known = {operator.device: operator for operator in record.figures.operators}
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
"""Seconds that are spent on the operators at most, whatever the time limit."""

_OPERATORS_LEAST: Final = 2.0
"""Seconds without which no operator is tried: to open the host's kernel sets takes a part of it."""
