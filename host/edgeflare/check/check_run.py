"""A check: what it measures, in which order, and until when.

Its phases are the answers of the arms, on one device after the other; the files, what an inference
costs, the conditions of the field, the layers, a search near to the inputs, and a repair. What one
has measured is kept at once. A phase that was cut off is noted, and done anew where the check goes
on; a repair goes on itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.check.answers import (
    Answers,
    ask_arms,
    data_figures,
    decision_figures,
    kernel_figures,
    places,
    seconds_per_input,
)
from edgeflare.check.causes.cause import OF_THE_FILE
from edgeflare.check.causes.first_cause import find_cause
from edgeflare.check.check_document import CheckDocument, StoppedBy
from edgeflare.check.cost import cost_figures, cost_seconds
from edgeflare.check.drawn_inputs import DrawnCheck
from edgeflare.check.field import field_figures, field_seconds
from edgeflare.check.figures.check_figures import CheckFigures
from edgeflare.check.figures.device import DeviceFigures, OutputFigures
from edgeflare.check.figures.file import SeenLayers
from edgeflare.check.file_faults import file_figures
from edgeflare.check.invocation_variants import pair_variants, variant_seconds
from edgeflare.check.layer_faults import INPUTS, layer_figures, layer_seconds
from edgeflare.check.near import MOST_SECONDS, near_figures, near_seconds
from edgeflare.check.numbers import output_figures, score_error
from edgeflare.check.operator_conformance import operator_figures
from edgeflare.check.pair_check import CheckObserver, CheckStore, PairCheck
from edgeflare.check.readings import (
    reading_of_the_device,
    reading_of_the_file,
    reading_of_the_reference,
)
from edgeflare.check.verdict import LOST, THE_CHECK
from edgeflare.core.goal import Find, Goal
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.run.plan import Plan

_ANSWERS_UNTIL: Final = 0.5
"""The part of the time to measure in after which no further input is asked."""

_FIELD_UNTIL: Final = 0.7
"""Likewise none is tried under a condition."""

_LAYERS_UNTIL: Final = 0.9
"""Likewise none is looked into."""


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
    run = _Run(check, figures, store, observer, interrupt)
    try:
        run.measure_drawn() if check.draws else run.measure()
    except InfrastructureError as lost:
        run.lose(str(lost))
        return run.keep("infrastructure"), lost
    by_user = interrupt.asked_by() if run.figures.cut else None
    return run.keep(by_user or ("budget" if run.figures.cut else None)), None


def planned_check(check: PairCheck) -> list[str]:
    """Return what a check would do, a line each; the models and the first device are opened.

    Raises:
        UserError: a model, the inputs or the device is not what it should be.
        InfrastructureError: the device or a worker process is lost.

    """
    if check.draws:
        names = ", ".join(check.request.devices)
        return [f"drawn inputs to the host and {names}; the layers on some of them"]
    with ExitStack() as stack:
        opened = _opened(check, check.profiles[0], stack)
        arms, known = opened.panel.arms, len(opened.seeds)
        each = seconds_per_input(opened)
        others = cost_seconds(each) * len(check.profiles)
        others += field_seconds(opened, places(opened), each)
    budget, devices = check.seconds_to_measure, len(check.profiles)
    gates = ", ".join(f"{name} {limit:g}" for name, limit in check.request.gates.items())
    near = [f"searches near to inputs: about {ceil(near_seconds(each))} s, until {budget:.0f} s"]
    return [
        f"answers of {', '.join(arms)} to {known} inputs on {', '.join(check.request.devices)}:"
        f" about {ceil(each * known * devices)} s, until {_ANSWERS_UNTIL * budget:.0f} s",
        f"the files, the cost and the conditions: about {ceil(others)} s,"
        f" until {_FIELD_UNTIL * budget:.0f} s",
        f"the layers on at most {min(INPUTS, known)} inputs: about"
        f" {ceil(layer_seconds(known, each))} s, until {_LAYERS_UNTIL * budget:.0f} s",
        *(near if check.request.near else []),
        *([_mending(check)] if check.request.mend else []),
        f"gates, at most: {gates}",
    ]


def _mending(check: PairCheck) -> str:
    seconds = check.request.budget
    return f"where the file is to blame, a repair at equal cost, until {seconds:.0f} s"


_OPERATORS_SHARE: Final = 0.1
"""The part of the budget for the operators of the model by themselves, on each device."""

_OPERATORS_SECONDS: Final = 15.0
"""More are not spent on them, whatever the budget."""

_OPERATORS_LEAST: Final = 2.0
"""Without so much time, none is tried: to open the host's kernel sets takes a part of it."""

_LEAST_SECONDS: Final = 5.0
"""Without so much time, nothing is searched near to the inputs."""


class _Run:
    """A check under way.

    Attributes:
        figures: what was measured so far.

    """

    def __init__(
        self,
        check: PairCheck,
        figures: CheckFigures,
        store: CheckStore,
        observer: CheckObserver,
        interrupt: Interrupt,
    ) -> None:
        missing = {name: why for name, why in figures.missing.items() if name != LOST}
        cut = tuple(one for one in figures.cut if one != THE_CHECK)
        self.figures = replace(figures, missing=missing, cut=cut)
        self._cut_before = figures.cut
        self._check, self._store = check, store
        self._observer, self._interrupt = observer, interrupt
        self._seconds: dict[str, float] = {}  # that all arms take for an input, by device
        self._until = check.seconds_to_measure

    def measure(self) -> None:
        """Measure what the devices do, then on the first of them what is about the file, too."""
        with ExitStack() as stack:
            opened = [
                one
                for at, profile in enumerate(self._check.profiles)
                if (one := self._answers_of(at, profile, stack)) is not None
            ]
            first, *others = opened
            if self.figures.file is None:
                self.figures = replace(self.figures, file=file_figures(first.pair))
                self.keep("killed")
            so_far = self.keep("killed")
            self._observer.said(so_far)
            if _data_say_nothing(so_far):
                return
            for one in opened:
                self._vary_invocations(one)
                self._measure_cost(one)
            self._try_conditions(first)
            self._look_into_layers(first, about_the_file=True)
            for one in others:
                self._look_into_layers(one, about_the_file=False)
            if self._check.request.mend and self._to_mend(first) != "":
                self._until = self._check.request.budget  # no repair needs a part of it
            for one in opened:
                self._try_operators(one.devices[0], one.pair.executed)
            self._search_near(first)
            self._mend(first)

    def measure_drawn(self) -> None:
        """Measure what the devices do on drawn inputs."""
        for profile in self._check.profiles:
            with connect(profile) as device:
                self._draw_for(device)
                self._try_operators(device, self._check.pair.compressed)

    def lose(self, why: str) -> None:
        """Note that a device or a process was lost in the phase that is under way."""
        self._miss(LOST, why)
        self._cut(THE_CHECK)

    def keep(self, stopped_by: StoppedBy | None) -> CheckDocument:
        """Keep what there is to say so far, and return it."""
        document = self._check.document(self.figures, stopped_by)
        self._store.keep(document)
        return document

    # Phases.

    def _phase(self, name: str, part: float, about: float | None = None) -> Callable[[], bool]:
        """Begin a phase, and return what says whether it has to end.

        Args:
            name: name of the phase.
            part: share of the time to measure in, after which the phase has to end.
            about: seconds that it takes; None where nobody knows.

        """
        return self._begin(name, part * self._until, about)

    def _begin(self, name: str, until: float, about: float | None = None) -> Callable[[], bool]:
        """Begin a phase likewise that has to end so many seconds after the check began."""
        left = self._check.began + until - time.monotonic()
        if not self._interrupt.asked():
            self._observer.begun(name, about, max(0.0, left))
        cut = tuple(one for one in self.figures.cut if one != name)
        missing = {key: why for key, why in self.figures.missing.items() if key != name}
        self.figures = replace(self.figures, cut=cut, missing=missing)
        return self._check.stopped(until, self._interrupt, lambda: self._cut(name))

    def _about(self, device: str, of: Callable[[float], float]) -> float | None:
        """Return what a phase takes, by what an input takes on a device; None without that."""
        each = self._seconds.get(device)
        return None if each is None else of(each)

    def _again(self, name: str) -> bool:
        """Whether a phase was cut off before, so that it is done anew."""
        return name in self._cut_before

    def _cut(self, name: str) -> None:
        if name not in self.figures.cut:
            self.figures = replace(self.figures, cut=(*self.figures.cut, name))

    def _miss(self, name: str, why: str) -> None:
        self.figures = replace(self.figures, missing={**self.figures.missing, name: why})

    def _answers_of(self, at: int, profile: Profile, stack: ExitStack) -> OpenedPair | None:
        """Open a device, and ask it and the host; None of one that refuses the model.

        Likewise of a further device where the user wants to stop.

        Raises:
            UserError: the first device refuses it, or the pair is not what it should be.

        """
        name = f"answers of {profile.name}"
        if at and self._interrupt.asked():
            self._cut(name)
            return None
        try:
            opened = _opened(self._check, profile, stack)
        except UserError as refused:
            if at == 0:
                raise
            self._miss(name, str(refused))
            return None
        known = self._device(profile.name)
        all_known = known is not None and known.decisions.inputs == len(opened.seeds)
        if all_known and not self._again(name):
            return opened
        devices = len(self._check.profiles)
        each = self._seconds[profile.name] = seconds_per_input(opened)
        about = each * len(opened.seeds)
        stopped = self._phase(name, _ANSWERS_UNTIL * (at + 1) / devices, about)
        taken = None
        for taken in ask_arms(
            opened, stopped, lambda done, of: self._observer.worked("answers", done, of)
        ):
            if known is None and len(taken.evaluated) < len(opened.seeds):
                self._take(taken, stopped, first=at == 0, all_of_it=False)
        if taken is not None and (
            known is None or len(taken.evaluated) > known.decisions.inputs or not stopped()
        ):
            self._take(taken, stopped, first=at == 0, all_of_it=True)
            self._keep_inputs(opened)
        return opened

    def _device(self, name: str) -> DeviceFigures | None:
        return next((one for one in self.figures.devices if one.decisions.device == name), None)

    def _with_device(self, its: DeviceFigures) -> None:
        """Keep the figures of a device, in the order in which devices were named."""
        known = {one.decisions.device: one for one in (*self.figures.devices, its)}
        order = [known[name] for name in self._check.request.devices if name in known]
        self.figures = replace(self.figures, devices=tuple(order))

    def _take(
        self, answers: Answers, stopped: Callable[[], bool], *, first: bool, all_of_it: bool
    ) -> None:
        """Keep what the answers of a device come to, at first what is known at once."""
        if not answers.evaluated:
            return
        kernels = kernel_figures(answers)
        outputs: tuple[OutputFigures, ...] = ()
        data = self.figures.data
        if first:
            data = replace(data_figures(answers), guessed=self._check.guessed)
        reading = self.figures.reading
        if all_of_it:
            kernels = replace(kernels, reading=reading_of_the_device(answers, stopped))
            outputs = () if stopped() else output_figures(answers)
            if first and data is not None:
                data = replace(data, other_reading=reading_of_the_reference(answers, stopped))
                reading = reading_of_the_file(answers, stopped)
        self._with_device(
            DeviceFigures(
                decisions=decision_figures(answers),
                kernels=kernels,
                outputs=outputs,
                score=score_error(answers),
            )
        )
        self.figures = replace(self.figures, data=data, reading=reading)
        self.keep("killed")

    def _draw_for(self, device: Device) -> None:
        """Give drawn inputs to a device, and look into its layers."""
        where = device.profile.name
        name = f"device {where}"
        known = {one.device.name: one for one in self.figures.drawn}
        if where in known and not self._again(name):
            return
        stopped = self._phase(name, _LAYERS_UNTIL)
        if stopped():
            return
        drawn = DrawnCheck(self._check.pair, device, stopped, self._observer.worked)
        known[where], layers = drawn.run()
        self.figures = replace(self.figures, drawn=tuple(known.values()))
        if isinstance(layers, str):
            self._miss(f"layers on {where}", layers)
        else:
            self._with_layers(layers)
        self.keep("killed")

    def _with_layers(self, layers: SeenLayers) -> None:
        """Keep what layers show, beside what they show on other devices."""
        before = self.figures.layers
        on_device = {} if before is None else before.on_device
        together = {} if before is None else before.together
        layers = replace(
            layers,
            on_device={**on_device, **layers.on_device},
            together={**together, **layers.together},
        )
        self.figures = replace(self.figures, layers=layers)

    def _keep_inputs(self, opened: OpenedPair) -> None:
        """Keep the inputs that a device decides otherwise, to be shown."""
        its = self._device(opened.devices[0].profile.name)
        if not self._check.request.inputs or its is None:
            return
        keep, domain = self._store.keep_input, opened.pair.interface.domain
        kept = tuple(
            replace(one, file=keep(one.seed_id, opened.seeds.input_of(one.seed_id), domain))
            for one in its.decisions.changed_inputs
        )
        decisions = replace(its.decisions, changed_inputs=kept)
        self._with_device(replace(its, decisions=decisions))

    def _vary_invocations(self, opened: OpenedPair) -> None:
        """Give a few inputs to a device in other ways."""
        device = opened.devices[0].profile.name
        name, its = f"threads and batches on {device}", self._device(device)
        if its is None or (its.kernels.variants is not None and not self._again(name)):
            return
        stopped = self._phase(name, _FIELD_UNTIL, self._about(device, variant_seconds))
        if not stopped():
            variants = pair_variants(opened, places(opened), stopped)
            self._with_device(replace(its, kernels=replace(its.kernels, variants=variants)))
        self.keep("killed")

    def _measure_cost(self, opened: OpenedPair) -> None:
        device = opened.devices[0].profile.name
        name = f"cost on {device}"
        known = {one.device: one for one in self.figures.costs}
        if device in known and not self._again(name):
            return
        stopped = self._phase(name, _FIELD_UNTIL, self._about(device, cost_seconds))
        if not stopped():
            known[device] = cost_figures(opened, stopped)
            self.figures = replace(self.figures, costs=tuple(known.values()))
        self.keep("killed")

    def _try_conditions(self, opened: OpenedPair) -> None:
        if self.figures.field is not None and not self._again("field"):
            return
        about = self._about(
            opened.devices[0].profile.name, lambda each: field_seconds(opened, places(opened), each)
        )
        stopped = self._phase("field", _FIELD_UNTIL, about)
        try:
            found = field_figures(
                opened,
                places(opened),
                stopped,
                lambda done, of: self._observer.worked("conditions", done, of),
            )
        except UserError as untried:
            self._miss("field", str(untried))
        else:
            self.figures = replace(self.figures, field=found)
        self.keep("killed")

    def _look_into_layers(self, opened: OpenedPair, *, about_the_file: bool) -> None:
        """Look into the layers; on further devices only where these decide otherwise."""
        device = opened.devices[0].profile.name
        name = "layers" if about_the_file else f"layers on {device}"
        known, its = self.figures.layers, self._device(device)
        seen = known is not None and device in known.on_device and not self._again(name)
        if seen or its is None or not (about_the_file or its.kernels.changes.strictly):
            return
        about = self._about(device, lambda each: layer_seconds(len(opened.seeds), each))
        stopped = self._phase(name, _LAYERS_UNTIL, about)
        if stopped():
            return
        changed = [one.seed_id for one in its.decisions.changed_inputs if not one.by_kernels]
        try:
            layers, table = layer_figures(
                opened,
                places(opened),
                changed,
                stopped,
                lambda done, of: self._observer.worked("layers", done, of),
            )
        except UserError as unseen:
            self._miss(name, str(unseen))
            self.keep("killed")
            return
        if about_the_file:
            self._store.keep_layers(table)
        elif known is not None:
            layers = replace(known, on_device=layers.on_device, together=layers.together)
        self._with_layers(layers)
        self.keep("killed")

    def _try_operators(self, device: Device, model: Path) -> None:
        """Try the operators of the compressed model on a device, each by itself."""
        known = {one.device: one for one in self.figures.operators}
        where = device.profile.name
        name = f"operators on {where}"
        if where in known and not self._again(name):
            return
        budget = self._until
        left = self._check.began + budget - time.monotonic()
        seconds = min(left, _OPERATORS_SHARE * budget, _OPERATORS_SECONDS)
        stopped = self._phase(name, 1.0)
        if stopped() or seconds < _OPERATORS_LEAST:
            self._cut(name)
            return
        first = where == self._check.request.devices[0]
        folder = "conform" if first else f"conform-{where.replace('/', '-')}"
        self._store.keep_folder(folder)
        try:
            found = operator_figures(
                device,
                model,
                self._store.path / folder,
                seconds,
                self._interrupt,
                lambda done, of: self._observer.worked("operators", done, of),
            )
        except UserError as untried:
            self._miss(name, str(untried))
        else:
            stopped()
            known[where] = found
            self.figures = replace(self.figures, operators=tuple(known.values()))
        self.keep("killed")

    def _search_near(self, opened: OpenedPair) -> None:
        """Search from a few inputs, in what is left of the budget."""
        if not self._check.request.near:
            return
        if self.figures.near is not None and not self._again("near"):
            return
        about = self._about(opened.devices[0].profile.name, near_seconds)
        stopped = self._phase("near", 1.0, about)
        seconds = self._check.began + self._until - time.monotonic()
        if stopped() or seconds < _LEAST_SECONDS:
            self._cut("near")
            return
        try:
            found = near_figures(
                opened,
                places(opened),
                self._store.path,
                min(seconds, MOST_SECONDS),
                self._interrupt,
                self._store.keep_folder,
                lambda done, of: self._observer.worked("searches", done, of),
            )
        except UserError as unsearched:
            self._miss("near", str(unsearched))
        else:
            stopped()
            self.figures = replace(self.figures, near=found)

    def _to_mend(self, opened: OpenedPair) -> str | None:
        """Return why a repair does not take a pair whose file is to blame, empty where it does.

        None where the file is not to blame.
        """
        cause = self.keep("killed").cause
        if cause is None or cause.rule not in OF_THE_FILE:
            return None
        from edgeflare.repair.repair_requirements import why_not_repaired  # noqa: PLC0415 - a room

        return why_not_repaired(self._check.pair, len(opened.seeds)) or ""

    def _mend(self, opened: OpenedPair) -> None:
        """See whether a repair takes the pair where the file is to blame; if asked for, try it."""
        why = self._to_mend(opened)
        if why is None:
            return
        self.figures = replace(self.figures, mendable=not why)
        if why:
            self._miss("mend", why)
        elif self._check.request.mend and (self.figures.mend is None or self._again("mend")):
            self._repair(opened)
        self.keep("killed")

    def _repair(self, opened: OpenedPair) -> None:
        """Try candidates of a repair in what is left of the budget."""
        from edgeflare.check.mend import (  # noqa: PLC0415 - likewise
            FOLDER,
            JUDGING,
            PREPARING,
            mend_figures,
        )

        if self._interrupt.asked():
            self._cut("mend")
            return
        request, profile = self._check.request, opened.devices[0].profile
        each = seconds_per_input(opened)  # now: other load may have come or gone
        until = request.budget - each * JUDGING
        stopped = self._begin("mend", until)
        if stopped() or self._check.began + until - time.monotonic() < each * PREPARING:
            self._cut("mend")
            return
        self._store.keep_folder(FOLDER)
        try:
            found = mend_figures(
                self._check.pair,
                profile,
                self._store.path,
                request.limit,
                stopped,
                self._observer.worked,
                inputs=request.inputs,
            )
        except UserError as unmended:
            self._miss("mend", str(unmended))
        else:
            self.figures = replace(self.figures, mend=found or self.figures.mend)


def _data_say_nothing(document: CheckDocument) -> bool:
    """Whether the data are to blame, so that nothing else is worth its time.

    What the first device was asked tells that; a further one may have had no time for enough.
    """
    figures = replace(document.figures, devices=document.figures.devices[:1])
    cause = find_cause(figures, document.gates) if figures.devices else None
    return cause is not None and cause.rule == "data"


def _opened(check: PairCheck, profile: Profile, stack: ExitStack) -> OpenedPair:
    plan = Plan(
        strategy=check.pair.interface.opened_task.strategy,
        goal=Goal(Find.KERNEL if check.pair.original is None else Find.ANY),
        devices=(profile.name,),
        ensemble=(TWIN_KERNELS,),
        limit=check.request.limit,
    )
    return open_pair(check.pair, plan, [profile], stack)
