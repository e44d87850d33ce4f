"""What a device does on drawn inputs, where there are no others."""

from __future__ import annotations

from edgeflare.check.phases.check_record import CheckRecord
from edgeflare.check.phases.pair_phases import add_layers
from edgeflare.check.phases.time_shares import LAYERS_UNTIL
from edgeflare.check.random_inputs import DrawnCheck
from edgeflare.devices.device import Device


def give_drawn_inputs(record: CheckRecord, device: Device) -> None:
    """Give drawn inputs to a device, and look into its layers."""
    where = device.profile.name
    name = f"device {where}"
    known = {one.device.name: one for one in record.figures.drawn}
    if where in known and not record.was_cut(name):
        return
    stopped = record.begin(name, LAYERS_UNTIL * record.until)
    if stopped():
        return
    drawn = DrawnCheck(record.check.pair, device, stopped, record.observer.worked)
    known[where], layers = drawn.run()
    record.update(drawn=tuple(known.values()))
    record.found(f"layers on {where}")
    if isinstance(layers, str):
        record.miss(f"layers on {where}", layers)
    else:
        add_layers(record, layers)
    record.keep()
