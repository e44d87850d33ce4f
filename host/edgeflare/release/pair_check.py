"""What is checked, what is asked of it and said to look further, who watches it, what keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from shlex import join
from typing import Final, Protocol

from msgspec.structs import replace

from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.profile import Profile
from edgeflare.diagnose.layers.layers_document import LayersDocument
from edgeflare.models.model_file import read_model_file
from edgeflare.models.pair import Pair
from edgeflare.release.check_document import CheckDocument, CheckRequest, StoppedBy
from edgeflare.release.check_verdict import THE_CHECK, computes_as_the_host, judge
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.gates import judged_gates
from edgeflare.release.sections import Named, sections_of
from edgeflare_protos import __version__

MOST_INPUTS: Final = 10_000
"""Inputs that are asked at most, where no other number is asked for. All that are asked are decoded
first, and decoding 50,000 small pictures took half a minute. So many decide a limit of 1 %."""

_MEASURED: Final = 0.6
"""The part of the time limit that what is measured may take, where a repair may be tried."""


@dataclass(frozen=True, slots=True)
class PairCheck:
    """What is checked.

    Attributes:
        pair: the pair.
        profiles: profiles of the devices.
        request: what is asked of the check.
        named: returns a command about it; see `Named`.
        began: when it began, or was gone on with, by the monotonic clock.
        before: seconds that it took before it was gone on with.
        draws: whether inputs are drawn, since there is neither an original nor data.
        guessed: what was assumed of how inputs are prepared and may well be wrong.

    """

    pair: Pair
    profiles: Sequence[Profile]
    request: CheckRequest
    named: Named
    began: float
    before: float = 0.0
    draws: bool = False
    guessed: str = ""

    def document(self, figures: CheckFigures, stopped_by: StoppedBy | None) -> CheckDocument:
        """Return what some figures come to.

        Args:
            figures: what was measured.
            stopped_by: what ended it before all was; None where all was.

        """
        known = self.request
        if stopped_by == "killed":  # it is what there is to say until it goes on
            figures = replace(figures, cut=(*figures.cut, THE_CHECK))
        gates = judged_gates(figures, known.gates)
        verdict = judge(figures, gates, known.devices, strict=known.strict)
        return CheckDocument(
            verdict=verdict.name,
            sentence=verdict.sentence,
            next_step=verdict.next,
            cause=verdict.cause,
            devices_match_host=computes_as_the_host(figures, gates, verdict.cause, known.devices),
            gates=gates,
            sections=sections_of(figures, gates, verdict.cause, self.named),
            figures=figures,
            edgeflare=__version__,
            pair=self.pair.name,
            interface=None if self.draws else self.pair.interface.described(),
            plan=known,
            stopped_by=stopped_by,
            seconds=round(self.before + time.monotonic() - self.began, 3),
            notes=(*self.pair.notes, *self._taken(figures)),
        )

    def _taken(self, figures: CheckFigures) -> tuple[str, ...]:
        """Return a note where as many inputs were taken as are without a limit of the user's."""
        if self.request.limit or figures.data is None or figures.data.available < MOST_INPUTS:
            return ()
        return (f"at most {MOST_INPUTS:,} inputs are taken; --limit takes another number",)

    @property
    def most_inputs(self) -> int:
        """How many of the inputs are asked, at most."""
        return self.request.limit or MOST_INPUTS

    @property
    def seconds_to_measure(self) -> float:
        """The part of the time limit in which all is measured; a repair has what is left of it."""
        return (_MEASURED if self.request.mend else 1.0) * self.request.time_limit_seconds

    def stopped(
        self, seconds: float, interrupt: Interrupt, cut: Callable[[], None]
    ) -> Callable[[], bool]:
        """Return what says whether a phase has to end.

        Args:
            seconds: seconds since the check began, after which the phase has to end.
            interrupt: the user's wish to stop, after which it has to end, too.
            cut: is called where the phase has to end.

        """
        ends = self.began + seconds

        def stopped() -> bool:
            over = time.monotonic() > ends or interrupt.asked()
            if over:
                cut()
            return over

        return stopped


def check_request(  # noqa: PLR0913 - what users may ask
    pair: Pair,
    profiles: Sequence[Profile],
    gates: Mapping[str, float],
    *,
    limit: int | None,
    time_limit_seconds: float,
    strict: bool,
    draws: bool = False,
    inputs: bool = True,
    near: bool = True,
    mend: bool = False,
) -> CheckRequest:
    """Return what is asked of a check.

    Args:
        pair: what is checked.
        profiles: profiles of the devices.
        gates: the limits, by the names of the gates.
        limit: how many of the inputs are asked, at most; None for `MOST_INPUTS`.
        time_limit_seconds: seconds that the check may take.
        strict: whether each gate has to be decided for a model to ship.
        draws: whether inputs are drawn, since there is neither an original nor data.
        inputs: whether the inputs that are looked into are kept, to be shown.
        near: whether inputs near to them are searched for; none are where inputs are not kept.
        mend: whether a repair is tried where the file is to blame.

    """
    model = sha256(read_model_file(pair.compressed)).hexdigest() if draws else ""
    return CheckRequest(
        about="device" if pair.original is None else "pair",
        fingerprint=model or pair.fingerprint(),
        devices=tuple(profile.name for profile in profiles),
        limit=limit,
        gates=dict(gates),
        strict=strict,
        time_limit_seconds=time_limit_seconds,
        keep_inputs=inputs,
        near=near and inputs,
        mend=mend,
    )


class CheckObserver(Protocol):
    """Who watches a check."""

    def begun(self, name: str, about: float | None, most: float) -> None:
        """Take that a phase begins, and its seconds: about how many, if known, and at most."""

    def worked(self, name: str, done: int, total: int) -> None:
        """Take how far a phase is."""

    def said(self, document: CheckDocument) -> None:
        """Take what there is to say once the arms have answered."""


class CheckStore(Protocol):
    """What keeps a check."""

    @property
    def path(self) -> Path:
        """The folder of the check."""

    def keep_folder(self, name: str) -> None:
        """Note a folder within it that a search makes."""

    def keep(self, document: CheckDocument) -> None:
        """Keep what there is to say so far."""

    def keep_layers(self, table: LayersDocument) -> None:
        """Keep the layer table."""

    def keep_input(self, seed_id: int, input_: Input, domain: Domain) -> str:
        """Keep an input that is looked into, and return its path in the folder."""


_INPUTS: Final = {
    "check --mend": "--inputs",
    "layers": "--inputs",
    "repair": "--seeds",
    "search": "--seeds",
    "survey": "--inputs",
}
"""The option by which a command takes other inputs than the pair's."""


def command_about(pair: str | None, compressed: str, inputs: Path | None, device: str) -> Named:
    """Return what makes commands about what is checked.

    Args:
        pair: the folder of its `pair.toml`; None where there is a compressed model alone.
        compressed: the path of the compressed model.
        inputs: other inputs than the pair's; None without.
        device: the name of the first device.

    """
    return partial(_command, pair, compressed, inputs, device)


def _command(pair: str | None, compressed: str, inputs: Path | None, device: str, name: str) -> str:
    if name == "conform":
        return join(["edgeflare", name, "--from", pair or compressed, "--device", device])
    if pair is None:
        return ""
    given = [] if inputs is None else [_INPUTS[name], str(inputs)]
    out = ["--out", f"runs/{Path(pair).resolve().name}-repaired"] if name == "repair" else []
    words, options = name.split()[:1], name.split()[1:]
    return join(["edgeflare", *words, pair, *given, "--device", device, *options, *out])
