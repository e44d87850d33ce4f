"""What a check has measured so far, and which of its phases were cut off or could not be done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import UserError
from edgeflare.release.check_document import CheckDocument, StoppedBy
from edgeflare.release.check_verdict import LOST, THE_CHECK
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.device_figures import DeviceFigures
from edgeflare.release.pair_check import CheckObserver, CheckStore, PairCheck

ANSWERS_UNTIL: Final = 0.5
"""Share of the time after which no further input is asked."""

FIELD_UNTIL: Final = 0.7
"""Share of the time after which no further condition is tried."""

LAYERS_UNTIL: Final = 0.9
"""Share of the time after which the layers are looked into on no further input."""


class CheckRecord:
    """What a check under way has measured, kept at once.

    Attributes:
        check: what is checked.
        figures: what was measured so far.
        store: keeps what there is after each phase.
        observer: watches the check.
        interrupt: the user's wish to stop.
        seconds: seconds that all arms take for an input, by the device's name.
        until: seconds after the check began at which measuring has to end.

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
        cut = tuple(phase for phase in figures.cut if phase != THE_CHECK)
        self.figures = replace(figures, missing=missing, cut=cut)
        self._cut_before = figures.cut
        self.check, self.store = check, store
        self.observer, self.interrupt = observer, interrupt
        self.seconds: dict[str, float] = {}
        self.until = check.seconds_to_measure

    def document(self, stopped_by: StoppedBy | None = "killed") -> CheckDocument:
        """Return what the figures come to so far.

        Args:
            stopped_by: what ended the check; None where nothing did. While the check is under way
                that is "killed", which a reader of the folder finds where nothing was kept after.

        """
        return self.check.document(self.figures, stopped_by)

    def keep(self, stopped_by: StoppedBy | None = "killed") -> CheckDocument:
        """Store the document of the figures so far, and return it."""
        document = self.document(stopped_by)
        self.store.keep(document)
        return document

    def begin(self, name: str, until: float, about: float | None = None) -> Callable[[], bool]:
        """Begin a phase, and return what says whether it has to end.

        Args:
            name: name of the phase.
            until: seconds after the check began at which the phase has to end.
            about: seconds that the phase takes; None where nobody knows.

        """
        if not self.interrupt.asked():
            self.observer.begun(name, about, max(0.0, self.seconds_left(until)))
        self._uncut(name)
        self.found(name)
        return self.check.stopped(until, self.interrupt, lambda: self.cut(name))

    def refuse(self, name: str, why: str) -> None:
        """Note why a phase cannot be done that has not begun, and keep the figures."""
        self._uncut(name)
        self.miss(name, why)
        self.keep()

    @contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """Note why a phase cannot be done where it is refused, and keep the figures after it."""
        try:
            yield
        except UserError as refused:
            self.miss(name, str(refused))
        self.keep()

    def update(self, **measured: object) -> None:
        """Replace some of the figures."""
        self.figures = replace(self.figures, **measured)

    def device(self, name: str) -> DeviceFigures | None:
        """Return the figures of a device; None where it has not answered."""
        return next(
            (device for device in self.figures.devices if device.decisions.device == name), None
        )

    def update_device(self, figures: DeviceFigures) -> None:
        """Replace the figures of a device, in the order in which devices were named."""
        known = {device.decisions.device: device for device in (*self.figures.devices, figures)}
        order = [known[name] for name in self.check.request.devices if name in known]
        self.update(devices=tuple(order))

    def was_cut(self, name: str) -> bool:
        """Whether a phase was cut off before the check went on, so that it is done anew."""
        return name in self._cut_before

    def cut(self, name: str) -> None:
        """Note that a phase was cut off, or not begun."""
        if name not in self.figures.cut:
            self.update(cut=(*self.figures.cut, name))

    def _uncut(self, name: str) -> None:
        self.update(cut=tuple(phase for phase in self.figures.cut if phase != name))

    def miss(self, name: str, why: str) -> None:
        """Note why a part could not be measured."""
        self.update(missing={**self.figures.missing, name: why})

    def found(self, name: str) -> None:
        """Forget why a part could not be measured before."""
        known = self.figures.missing
        self.update(missing={part: why for part, why in known.items() if part != name})

    def lose(self, why: str) -> None:
        """Note that a device or a process was lost in the phase that is under way."""
        self.miss(LOST, why)
        self.cut(THE_CHECK)

    def seconds_left(self, until: float) -> float:
        """Return the seconds until so many after the check began; negative once they are over."""
        return self.check.began + until - time.monotonic()

    def about(self, device: str, of: Callable[[float], float]) -> float | None:
        """Return what a phase takes, by what an input takes on a device; None without that."""
        each = self.seconds.get(device)
        return None if each is None else of(each)
