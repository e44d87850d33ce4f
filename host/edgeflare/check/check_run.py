"""A check: its phases in their order.

Phases are the answers of the arms, on one device after the other; the files, what an inference
costs, the conditions of the field, the layers, a search near to the inputs, and a repair. What a
phase has measured is kept at once. A phase that was cut off is noted, and done anew where the check
goes on; a repair goes on itself.
"""

from __future__ import annotations

from contextlib import ExitStack

from msgspec.structs import replace

from edgeflare.check.causes.first_cause import find_cause
from edgeflare.check.check_document import CheckDocument
from edgeflare.check.figures.check_figures import CheckFigures
from edgeflare.check.file_faults import file_figures
from edgeflare.check.pair_check import CheckObserver, CheckStore, PairCheck
from edgeflare.check.phases.answer_phase import ask_device
from edgeflare.check.phases.check_record import LAYERS_UNTIL, CheckRecord
from edgeflare.check.phases.measurement_phases import (
    add_layers,
    look_into_layers,
    measure_cost,
    mend,
    search_near,
    try_conditions,
    try_operators,
    vary_invocations,
    why_not_mended,
)
from edgeflare.check.random_inputs import DrawnCheck
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.device import Device, connect
from edgeflare.errors import InfrastructureError


def run_check(
    check: PairCheck,
    figures: CheckFigures,
    store: CheckStore,
    observer: CheckObserver,
    interrupt: Interrupt,
) -> tuple[CheckDocument, InfrastructureError | None]:
    """Measure what is not measured yet, and return what it comes to.

    Args:
        check: what is checked.
        figures: what an earlier part of the check has measured.
        store: keeps what there is after each phase.
        observer: watches it.
        interrupt: the user's wish to stop.

    Returns:
        The document, and what was lost on the way; None where nothing was.

    Raises:
        UserError: a model, the inputs or the first device is not what it should be.

    """
    record = CheckRecord(check, figures, store, observer, interrupt)
    try:
        if check.draws:
            _measure_drawn(record)
        else:
            _measure(record)
    except InfrastructureError as lost:
        record.lose(str(lost))
        return record.keep("infrastructure"), lost
    by_user = interrupt.asked_by() if record.figures.cut else None
    return record.keep(by_user or ("budget" if record.figures.cut else None)), None


def _measure(record: CheckRecord) -> None:
    """Measure what the devices do, then on the first of them what is about the file, too."""
    request = record.check.request
    with ExitStack() as stack:
        opened = [
            one
            for at, profile in enumerate(record.check.profiles)
            if (one := ask_device(record, at, profile, stack)) is not None
        ]
        first, *others = opened
        if record.figures.file is None:
            record.update(file=file_figures(first.pair))
        so_far = record.keep()
        record.observer.said(so_far)
        if _data_say_nothing(so_far):
            return
        for compressed in opened:
            vary_invocations(record, compressed)
            measure_cost(record, compressed)
        try_conditions(record, first)
        look_into_layers(record, first, about_the_file=True)
        for other in others:
            look_into_layers(record, other, about_the_file=False)
        why_not = why_not_mended(record, first)
        if request.mend and why_not != "":
            record.until = request.budget  # no repair needs a part of it
        for compressed in opened:
            try_operators(record, compressed.devices[0], compressed.pair.executed)
        search_near(record, first)
        mend(record, first, why_not)


def _measure_drawn(record: CheckRecord) -> None:
    """Measure what the devices do on drawn inputs."""
    for profile in record.check.profiles:
        with connect(profile) as device:
            give_drawn_inputs(record, device)
            try_operators(record, device, record.check.pair.compressed)


def _data_say_nothing(document: CheckDocument) -> bool:
    """Whether the data are to blame, so that nothing else is worth its time.

    What the first device was asked tells that; a further one may have had no time for enough.
    """
    figures = replace(document.figures, devices=document.figures.devices[:1])
    cause = find_cause(figures, document.gates) if figures.devices else None
    return cause is not None and cause.rule == "data"


def give_drawn_inputs(record: CheckRecord, device: Device) -> None:
    """Give drawn inputs to a device, and look into its layers."""
    where = device.profile.name
    name = f"device {where}"
    known = {figures.device.name: figures for figures in record.figures.drawn}
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
