"""A check: what it measures, in which order, and until when.

Its phases are the answers of the arms, on one device after the other, the files, and the layers.
What one has measured is kept at once, and a check that was cut off goes on behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from msgspec.structs import replace

from edgeflare import __version__
from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.campaign.plan_defaults import TWIN_KERNELS
from edgeflare.check.answers import (
    Answers,
    ask_arms,
    data_figures,
    decision_figures,
    kernel_figures,
    places,
)
from edgeflare.check.check_document import CheckDocument, CheckRequest, StoppedBy
from edgeflare.check.cost import cost_figures
from edgeflare.check.drawn_inputs import DrawnCheck
from edgeflare.check.field import field_figures
from edgeflare.check.figures import CheckFigures, DeviceFigures
from edgeflare.check.file_faults import file_figures
from edgeflare.check.gates import judged_gates
from edgeflare.check.layer_faults import INPUTS, layer_figures
from edgeflare.check.near import near_figures
from edgeflare.check.numbers import output_figures
from edgeflare.check.readings import (
    reading_of_the_device,
    reading_of_the_file,
    reading_of_the_reference,
)
from edgeflare.check.sections import sections_of
from edgeflare.check.verdict import computes_as_the_host, judge
from edgeflare.core.domain import Domain
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.pair import Pair
from edgeflare.run.plan import Plan

_ANSWERS_UNTIL: Final = 0.5
"""The part of the budget after which no further input is asked."""

_FIELD_UNTIL: Final = 0.7
"""Likewise none is tried under a condition."""

_LAYERS_UNTIL: Final = 0.9
"""Likewise none is looked into."""


@dataclass(frozen=True, slots=True)
class PairCheck:
    """What is checked.

    Attributes:
        pair: a pair.
        profiles: its devices.
        request: what is asked.
        named: the pair, as a command line names it.
        began: when it began, by the monotonic clock; earlier by what it has taken before.
        draws: whether inputs are drawn, since there is neither an original nor data.

    """

    pair: Pair
    profiles: Sequence[Profile]
    request: CheckRequest
    named: str
    began: float
    draws: bool = False

    def document(self, figures: CheckFigures, stopped_by: StoppedBy | None) -> CheckDocument:
        """Return what some figures come to."""
        known = self.request
        gates = judged_gates(figures, known.gates)
        verdict = judge(figures, gates, strict=known.strict)
        return CheckDocument(
            verdict=verdict.name,
            sentence=verdict.sentence,
            next=verdict.next,
            cause=verdict.cause,
            as_the_host=computes_as_the_host(figures, gates, verdict.cause),
            gates=gates,
            sections=sections_of(figures, gates, verdict.cause, self.named),
            figures=figures,
            edgeflare=__version__,
            pair=self.pair.name,
            interface=None if self.draws else self.pair.interface.described(),
            asked=known,
            stopped_by=stopped_by,
            seconds=round(time.monotonic() - self.began, 3),
            notes=self.pair.notes,
        )


class CheckObserver(Protocol):
    """Who watches a check."""

    def worked(self, name: str, done: int, total: int) -> None:
        """Take how far a phase is."""


class UnobservedCheck:
    """Nobody watches."""

    def worked(self, name: str, done: int, total: int) -> None:
        """Do nothing."""


class CheckStore(Protocol):
    """What keeps a check.

    Attributes:
        path: the folder of the check.

    """

    @property
    def path(self) -> Path:
        """The folder of the check."""

    def keep_folder(self, name: str) -> None:
        """Note a folder within it that a search makes."""

    def keep(self, document: CheckDocument) -> None:
        """Keep what there is to say so far."""

    def keep_layers(self, table: LayersDocument) -> None:
        """Keep the layer table."""

    def keep_input(self, seed_id: int, one: Input, domain: Domain) -> str:
        """Keep an input that is looked into, and return its path in the folder."""


def run_check(
    check: PairCheck,
    figures: CheckFigures,
    store: CheckStore,
    observer: CheckObserver,
    interrupt: Interrupt,
) -> CheckDocument:
    """Measure what is not measured yet, and return what it comes to.

    Args:
        check: what is checked.
        figures: what an earlier part of the check has measured.
        store: keeps what there is after each phase.
        observer: watches it.
        interrupt: whether the user wants to stop.

    Raises:
        UserError: a model, the inputs or a profile is not what it should be.
        InfrastructureError: a device or a worker process is lost; what there is was kept.

    """
    run = _Run(check, figures, store, observer, interrupt)
    measure = run.measure_drawn if check.draws else run.measure
    try:
        for at, profile in enumerate(check.profiles):
            measure(at, profile)
    except InfrastructureError as lost:
        run.miss("device that was lost", str(lost))
        run.keep("infrastructure")
        raise
    return run.keep(interrupt.asked_by() or ("budget" if run.cut else None))


_LEAST_SECONDS: Final = 5.0
"""Without so much time, nothing is searched near to the inputs."""

_MOST_SECONDS: Final = 60.0
"""More are not spent on it, whatever the budget."""


def planned_check(check: PairCheck) -> list[str]:
    """Return what a check would do, a line each; the models and the first device are opened.

    Raises:
        UserError, InfrastructureError: as `run_check`.

    """
    if check.draws:
        names = ", ".join(check.request.devices)
        return [f"drawn inputs to the host and {names}; the layers on some of them"]
    with ExitStack() as stack:
        opened = _opened(check, check.profiles[0], stack)
        given = places(opened)[:_TIMED]
        inputs, ids = opened.seeds.inputs, opened.seeds.seed_ids
        arms, known = opened.panel.arms, len(opened.seeds)
        begun = time.monotonic()
        tuple(opened.evaluate([inputs[at] for at in given], [ids[at] for at in given], arms))
        each = (time.monotonic() - begun) / len(given)
    seconds = each * known * len(check.profiles)
    gates = ", ".join(f"{name} < {limit:g}" for name, limit in check.request.gates.items())
    return [
        f"answers of {', '.join(arms)} to {known} inputs on {', '.join(check.request.devices)}:"
        f" about {seconds:.0f} s, at most {_ANSWERS_UNTIL * check.request.budget:.0f} s",
        f"the files; the layers on at most {min(INPUTS, known)} inputs, until"
        f" {_LAYERS_UNTIL * check.request.budget:.0f} s",
        f"gates: {gates}",
    ]


_TIMED: Final = 8
"""Inputs that tell how long one takes."""


class _Run:
    """A check under way.

    Attributes:
        figures: what was measured so far.
        cut: whether the budget has cut something off.

    """

    def __init__(
        self,
        check: PairCheck,
        figures: CheckFigures,
        store: CheckStore,
        observer: CheckObserver,
        interrupt: Interrupt,
    ) -> None:
        self.figures, self.cut = replace(figures, missing={}), False
        self._check, self._store = check, store
        self._observer, self._interrupt = observer, interrupt

    def measure(self, at: int, profile: Profile) -> None:
        """Measure what a device does; on the first one what is about the file, too."""
        if self._stopped(_ANSWERS_UNTIL)():
            self.miss(f"device {profile.name}", f"{profile.name} was not asked")
            return
        with ExitStack() as stack:
            opened = _opened(self._check, profile, stack)
            if not self._answered(at, opened):
                for answers in ask_arms(
                    opened,
                    self._stopped(_ANSWERS_UNTIL),
                    lambda done, of: self._observer.worked("answers", done, of),
                ):
                    self._take(at, answers)
                self._keep_inputs(at, opened)
            if self.figures.file is None:
                self.figures = replace(self.figures, file=file_figures(opened.pair))
                self.keep(None)
            if self.figures.field is None and "field" not in self.figures.missing:
                self._try_conditions(opened)
            if not self.figures.costs[at:]:
                self._measure_cost(opened)
            if not self._looked_into(at, opened):
                self._look_into_layers(at, opened)
            if at == 0 and self.figures.near is None and self._check.request.near:
                self._search_near(opened)

    def measure_drawn(self, at: int, profile: Profile) -> None:
        """Measure what a device does on drawn inputs."""
        if self.figures.drawn[at:]:
            return
        stopped = self._stopped(_LAYERS_UNTIL)
        if stopped():
            self.miss(f"device {profile.name}", f"{profile.name} was not asked")
            return
        drawn = DrawnCheck(self._check.pair, profile, stopped, self._observer.worked)
        figures, layers = drawn.run()
        self.figures = replace(self.figures, drawn=(*self.figures.drawn, figures))
        if isinstance(layers, str):
            self.miss("layers", layers)
        else:
            known = self.figures.layers
            on_device = {**(known.on_device if known else {}), **layers.on_device}
            self.figures = replace(self.figures, layers=replace(layers, on_device=on_device))
        self.keep(None)

    def miss(self, name: str, why: str) -> None:
        """Note what could not be measured."""
        self.figures = replace(self.figures, missing={**self.figures.missing, name: why})

    def keep(self, stopped_by: StoppedBy | None) -> CheckDocument:
        """Keep what there is to say so far, and return it."""
        document = self._check.document(self.figures, stopped_by)
        self._store.keep(document)
        return document

    def _stopped(self, part: float) -> Callable[[], bool]:
        """Return what says whether a phase has to end, after a part of the budget."""
        ends = self._check.began + part * self._check.request.budget

        def stopped() -> bool:
            over = time.monotonic() > ends
            self.cut |= over
            return over or self._interrupt.asked()

        return stopped

    def _answered(self, at: int, opened: OpenedPair) -> bool:
        known = self.figures.devices[at : at + 1]
        return bool(known) and known[0].decisions.inputs == len(opened.seeds)

    def _take(self, at: int, answers: Answers) -> None:
        """Keep what the answers of a device come to."""
        if not answers.evaluated:
            return
        kernels = replace(kernel_figures(answers), reading=reading_of_the_device(answers))
        its = DeviceFigures(
            decisions=decision_figures(answers),
            kernels=kernels,
            outputs=output_figures(answers),
        )
        devices = (*self.figures.devices[:at], its, *self.figures.devices[at + 1 :])
        self.figures = replace(self.figures, devices=devices)
        if at == 0:
            data = data_figures(answers)
            self.figures = replace(
                self.figures,
                data=replace(data, other_reading=reading_of_the_reference(answers)),
                reading=reading_of_the_file(answers),
            )
        self.keep(None)

    def _keep_inputs(self, at: int, opened: OpenedPair) -> None:
        """Keep the inputs that a device decides otherwise, to be shown."""
        if not self._check.request.inputs or not self.figures.devices[at:]:
            return
        keep, domain = self._store.keep_input, opened.pair.interface.domain
        its = self.figures.devices[at]
        kept = tuple(
            replace(one, file=keep(one.seed_id, opened.seeds.input_of(one.seed_id), domain))
            for one in its.decisions.changed_inputs
        )
        its = replace(its, decisions=replace(its.decisions, changed_inputs=kept))
        devices = (*self.figures.devices[:at], its, *self.figures.devices[at + 1 :])
        self.figures = replace(self.figures, devices=devices)

    def _measure_cost(self, opened: OpenedPair) -> None:
        stopped = self._stopped(_FIELD_UNTIL)
        if stopped():
            self.miss("cost", "there was no time left for it")
            return
        found = cost_figures(opened, stopped)
        self.figures = replace(self.figures, costs=(*self.figures.costs, found))
        self.keep(None)

    def _try_conditions(self, opened: OpenedPair) -> None:
        stopped = self._stopped(_FIELD_UNTIL)
        try:
            found = field_figures(
                opened,
                places(opened),
                stopped,
                lambda done, of: self._observer.worked("conditions", done, of),
            )
        except UserError as untried:
            self.miss("field", str(untried))
        else:
            self.figures = replace(self.figures, field=found)
        self.keep(None)

    def _search_near(self, opened: OpenedPair) -> None:
        """Search from a few inputs, in what is left of the budget."""
        seconds = self._check.began + self._check.request.budget - time.monotonic()
        if self._stopped(_LAYERS_UNTIL)() or seconds < _LEAST_SECONDS:
            self.miss("near", "there was no time left for it")
            return
        try:
            found = near_figures(
                opened,
                places(opened),
                self._store.path,
                min(seconds, _MOST_SECONDS),
                self._interrupt,
                self._store.keep_folder,
                lambda done, of: self._observer.worked("searches", done, of),
            )
        except UserError as unsearched:
            self.miss("near", str(unsearched))
        else:
            self.figures = replace(self.figures, near=found)
        self.keep(None)

    def _looked_into(self, at: int, opened: OpenedPair) -> bool:
        """Whether nothing is left to be seen in the layers.

        On further devices they are looked into where these decide otherwise than the host.
        """
        layers = self.figures.layers
        if "layers" in self.figures.missing and at:
            return True
        if layers is None:
            return False
        if at:
            its = self.figures.devices[at]
            return its.decisions.device in layers.on_device or not its.kernels.changes.strictly
        return layers.inputs >= min(INPUTS, len(opened.seeds))

    def _look_into_layers(self, at: int, opened: OpenedPair) -> None:
        stopped = self._stopped(_LAYERS_UNTIL)
        if stopped() or not self.figures.devices[at:]:
            self.miss("layers", "there was no time left for them")
            return
        changed = [one.seed_id for one in self.figures.devices[at].decisions.changed_inputs]
        try:
            layers, table = layer_figures(
                opened,
                places(opened),
                changed,
                stopped,
                lambda done, of: self._observer.worked("layers", done, of),
            )
        except UserError as unseen:
            self.miss("layers", str(unseen))
            self.keep(None)
            return
        known = self.figures.layers
        if at and known is not None:
            layers = replace(known, on_device={**known.on_device, **layers.on_device})
        else:
            self._store.keep_layers(table)
        missing = {name: why for name, why in self.figures.missing.items() if name != "layers"}
        self.figures = replace(self.figures, layers=layers, missing=missing)
        self.keep(None)


def _opened(check: PairCheck, profile: Profile, stack: ExitStack) -> OpenedPair:
    plan = Plan(
        strategy=check.pair.interface.opened_task.strategy,
        goal=Goal(Find.KERNEL if check.pair.original is None else Find.ANY),
        devices=(profile.name,),
        ensemble=(TWIN_KERNELS,),
        limit=check.request.limit,
    )
    return open_pair(check.pair, plan, [profile], stack)
