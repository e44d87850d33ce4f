"""A check: the folder that it alone writes, and its phases in their order.

Phases are the answers of the arms, on one device after the other; the files, what an inference
costs, the conditions of the field, the layers, a search near to the inputs, and a repair. What a
phase has measured is kept at once. A phase that was cut off is noted, and done anew where the check
goes on; a repair goes on itself. What a check would do, and how long that takes, is told before.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.layers.layers_document import LAYERS, LayersDocument, layers_bytes
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair_file import FILE
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import ClaimedFolder, FolderKind
from edgeflare.record.folder_contents import FOLDER, list_as
from edgeflare.record.request import require_same_request
from edgeflare.release.answers import places, seconds_per_input
from edgeflare.release.causes.first_cause import find_cause
from edgeflare.release.check_document import CheckDocument, CheckRequest, check_bytes, load_check
from edgeflare.release.cost import cost_seconds
from edgeflare.release.field import field_seconds
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.file_faults import file_figures
from edgeflare.release.layer_faults import INPUTS, layer_seconds
from edgeflare.release.named_models import LoadedModels
from edgeflare.release.near import near_seconds, require_quantizable
from edgeflare.release.pair_assumptions import assumed_toml
from edgeflare.release.pair_check import CheckObserver, CheckStore, PairCheck
from edgeflare.release.phases.answer_phase import ask_device, open_on
from edgeflare.release.phases.check_record import (
    ANSWERS_UNTIL,
    FIELD_UNTIL,
    LAYERS_UNTIL,
    CheckRecord,
)
from edgeflare.release.phases.measurement_phases import (
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
from edgeflare.release.random_inputs import DrawnCheck
from edgeflare.run.run_directory import CHECK_DOCUMENT

PAGE: Final = "check.html"

CHECKED: Final = FolderKind(
    "check", files=(CHECK_DOCUMENT, PAGE, FILE, "reference.tflite"), folders=("layers", "inputs")
)


@dataclass(frozen=True, slots=True)
class CheckFolder:
    """A folder that a check alone writes.

    A check that is replaced stays until there is something to keep: what is wrong with models,
    inputs or a device's name is found before.

    Attributes:
        path: path of the folder.
        figures: what is known already, of a check that goes on.
        seconds: seconds that earlier parts of the check took.
        replaced: the folder with the check that is replaced, until it is; else none.

    """

    path: Path
    figures: CheckFigures
    seconds: float
    replaced: list[ClaimedFolder]

    @classmethod
    def begin(
        cls, path: Path, request: CheckRequest, stack: ExitStack, *, overwrite: bool, resume: bool
    ) -> CheckFolder:
        """Claim a folder until `stack` closes it.

        Raises:
            UserError: it must not be written over, or the check there was begun with other options.

        """
        if not resume:
            claimed = stack.enter_context(CHECKED.claim(path, overwrite=overwrite))
            return cls(path, CheckFigures(), 0.0, [claimed])

        stack.enter_context(CHECKED.take(path, partial(require_same_check, path, request)))
        before = load_check(path / CHECK_DOCUMENT)
        return cls(path, before.figures, before.seconds, [])

    def keep(self, document: CheckDocument) -> None:
        """Keep what there is to say so far."""
        self._replace()
        write_atomically(self.path / CHECK_DOCUMENT, check_bytes(document))

    def keep_layers(self, table: LayersDocument) -> None:
        """Keep the layer table."""
        self._replace()
        (self.path / "layers").mkdir(exist_ok=True)
        write_atomically(self.path / "layers" / LAYERS, layers_bytes(table))

    def keep_input(self, seed_id: int, input_: Input, domain: Domain) -> str:
        """Keep an input that is looked into, and return its path in the folder."""
        self._replace()
        name = f"inputs/{seed_id:06d}{domain.suffix}"
        (self.path / "inputs").mkdir(exist_ok=True)
        write_atomically(self.path / name, domain.encode_file(input_))
        return name

    def keep_folder(self, name: str) -> None:
        """Note a folder within this one that a search makes."""
        self._replace()
        list_as(self.path, name, FOLDER)

    def keep_page(self, document: CheckDocument) -> None:
        """Write the page of the document."""
        from edgeflare.release.check_html import check_html  # noqa: PLC0415 - takes time

        write_atomically(self.path / PAGE, check_html(document, self.path).encode())

    def _replace(self) -> None:
        while self.replaced:
            self.replaced.pop().empty()


def require_same_check(path: Path, request: CheckRequest) -> None:
    """Refuse to go on with a check that was begun with something else.

    Args:
        path: path of the folder.
        request: what is asked of the check that goes on.

    """
    if not (path / CHECK_DOCUMENT).is_file():
        raise UserError(f"{path} holds no check to go on with: leave --resume away")
    begun = load_check(path / CHECK_DOCUMENT).plan
    if begun.fingerprint != request.fingerprint:
        raise UserError(
            f"{path} was begun with another pair, or other inputs or models in it: check it anew"
            " with --overwrite, or name another folder with --out"
        )
    if request.mend:  # a check that was begun without may be gone on with for that
        begun = replace(begun, mend=True)
    own = replace(begun, time_limit_seconds=request.time_limit_seconds)  # each time has its own
    require_same_request(own, request, path)


def check_into(  # noqa: PLR0913 - what decides a check, who watches it, and where it goes
    path: Path,
    loaded: LoadedModels,
    profiles: Sequence[Profile],
    request: CheckRequest,
    observer: CheckObserver,
    interrupt: Interrupt,
    began: float,
    *,
    overwrite: bool,
    resume: bool,
) -> tuple[CheckDocument, InfrastructureError | None]:
    """Check models into a folder, with the page and, of models without one, a `pair.toml`.

    Args:
        path: the folder, absent or empty unless the check there is replaced or gone on with.
        loaded: what is checked.
        profiles: profiles of the devices.
        request: what is asked.
        observer: watches it.
        interrupt: the user's wish to stop.
        began: when it began, by the monotonic clock.
        overwrite: whether a check there is replaced.
        resume: whether the check there goes on.

    Returns:
        The document, and what was lost on the way; None where nothing was.

    Raises:
        UserError: a model, the inputs, the folder or the first device is not what it should be.

    """
    job = check_job(loaded, profiles, request, path, began)
    with ExitStack() as stack:
        folder = CheckFolder.begin(path, request, stack, overwrite=overwrite, resume=resume)
        job = dataclass_replace(job, before=folder.seconds)
        with loaded.naming_next():
            document, lost = run_check(job, folder.figures, folder, observer, interrupt)
        folder.keep_page(document)
        if loaded.assumed is not None:
            write_atomically(path / FILE, assumed_toml(loaded.pair, path).encode())
    return document, lost


def check_job(
    loaded: LoadedModels,
    profiles: Sequence[Profile],
    request: CheckRequest,
    path: Path,
    began: float,
) -> PairCheck:
    """Return what is checked, into which folder; see `check_into`."""
    return PairCheck(
        loaded.pair,
        profiles,
        request,
        loaded.further(path, request.devices[0]),
        began,
        draws=loaded.named.draws,
        guessed=loaded.guessed,
    )


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
            for profile in record.check.profiles:
                with connect(profile) as device:
                    give_drawn_inputs(record, device)
                    try_operators(record, device, record.check.pair.compressed)
        else:
            _measure(record)
    except InfrastructureError as lost:
        record.lose(str(lost))
        return record.keep("infrastructure"), lost
    by_user = interrupt.asked_by() if record.figures.cut else None
    return record.keep(by_user or ("time-limit" if record.figures.cut else None)), None


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
            record.until = request.time_limit_seconds  # no repair needs a part of it
        for compressed in opened:
            try_operators(record, compressed.devices[0], compressed.pair.executed)
        search_near(record, first)
        mend(record, first, why_not)


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


def planned_check(check: PairCheck) -> list[str]:
    """Return what a check would do, a line each; the models and the first device are opened.

    Raises:
        UserError: a model, the inputs or the device is not what it should be.

    """
    if check.draws:
        names = ", ".join(check.request.devices)
        return [f"drawn inputs to the host and {names}; the layers on some of them"]
    with ExitStack() as stack:
        opened = open_on(check, check.profiles[0], stack)
        arms, known = opened.panel.arms, len(opened.seeds)
        each = seconds_per_input(opened)
        others = cost_seconds(each) * len(check.profiles)
        others += field_seconds(opened, places(opened), each)
        near = _planned_search(check, opened, each) if check.request.near else []
    until, devices = check.seconds_to_measure, len(check.profiles)
    gates = ", ".join(f"{name} {limit:g}" for name, limit in check.request.gates.items())
    seconds = check.request.time_limit_seconds
    mending = [f"where the file is to blame, a repair at equal cost, until {seconds:.0f} s"]
    return [
        f"answers of {', '.join(arms)} to {known} inputs on {', '.join(check.request.devices)}:"
        f" about {ceil(each * known * devices)} s, until {ANSWERS_UNTIL * until:.0f} s",
        f"the files, the cost and the conditions: about {ceil(others)} s,"
        f" until {FIELD_UNTIL * until:.0f} s",
        f"the layers on at most {min(INPUTS, known)} inputs: about"
        f" {ceil(layer_seconds(known, each))} s, until {LAYERS_UNTIL * until:.0f} s",
        *near,
        *(mending if check.request.mend else []),
        f"gates, at most: {gates}",
    ]


def _planned_search(check: PairCheck, opened: OpenedPair, each: float) -> list[str]:
    """Return what a search near to the inputs would do, a line; or why there would be none."""
    try:
        require_quantizable(opened.pair)
    except UserError as refused:
        return [f"no searches near to inputs: {refused}"]
    until = check.seconds_to_measure
    return [f"searches near to inputs: about {ceil(near_seconds(each))} s, until {until:.0f} s"]
