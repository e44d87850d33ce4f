"""Packs of models run, each in a fresh process, with what became of them."""

from __future__ import annotations

import re
import time
from concurrent.futures import wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from edgeflare.conform.execution.failing_models import is_misshapen
from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure, RunFailureKind
from edgeflare.conform.execution.model_opener import LoadRefused, ModelOpener
from edgeflare.conform.execution.model_pack import ModelPack
from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.tflite import WorkerDied
from edgeflare.untrusted_text import printable

MOST_LOSSES = 10
"""Times in a row that a device may be lost by the same pack. A bad link loses one in three; a pack
that always does would never end."""

_CRASHED_LOADING = "crashed on loading it: "
"""How the agent's runtime says that not its answer, but its end, came on loading."""

INVALID_COMMANDS = "invalid commands, and would answer zeros"
"""How the agent's runtime says that an accelerator took a model, and would answer zeros: no refusal
either."""

_WORKER_DIED = re.compile("workers in a row|does not load any more")
"""How an agent says that not it, but the process of a model is lost. The model loads at times, as
one may whose shapes are computed from memory that nothing wrote."""

_REPLACEMENTS = 3
"""Time to replace a process that died, also on a busy machine, as a multiple of the loading
time."""

Outcome = tuple[ModelAnswer, ...] | RunFailure
"""An answer for each model of a pack, or why the pack as a whole gave none."""


class PackRunner:
    """Runs packs in one place.

    Attributes:
        processes: packs that were loaded so far, each into a process of its own.

    """

    def __init__(self, opener: ModelOpener) -> None:
        self.processes = 0
        self._opener = opener
        self._folder = TemporaryDirectory(prefix="edgeflare-conform-")

    def run(self, pack: ModelPack, seconds: float) -> Outcome:
        """Run a pack; a device that is lost meanwhile is brought back, and the pack run again.

        Args:
            pack: the pack, whose models are run on all their rows.
            seconds: time that one row may take before the pack counts as hanging.

        Raises:
            InfrastructureError: the device does not come back, or the same pack always loses it.

        """
        losses = 0
        while True:
            try:
                return self._attempt(pack, seconds)
            except WorkerDied as died:
                return RunFailure("crash", printable(str(died).partition(": ")[2]))
            except DeviceLost as lost:
                if _WORKER_DIED.search(str(lost)):
                    return RunFailure("crash", printable(str(lost)))
                losses += 1
                if losses > MOST_LOSSES:
                    raise InfrastructureError(
                        f"the same models lost the device {losses} times in a row: {lost}"
                    ) from lost
                self._opener.recover()

    def close(self) -> None:
        """Remove the folder of files. Closing twice is no error."""
        self._folder.cleanup()

    def _attempt(self, pack: ModelPack, seconds: float) -> Outcome:
        path = Path(self._folder.name, "models.tflite")
        path.write_bytes(pack.content)
        self.processes += 1
        begin = time.monotonic()
        try:
            session = self._opener.open(path, pack.steps)
        except LoadRefused as refused:
            return _refusal(str(refused))
        # A process that dies is replaced, and the row tried again, before the answer comes.
        replacing = _REPLACEMENTS * (time.monotonic() - begin)
        try:
            return _run(session, pack, seconds, replacing)
        finally:
            session.close()


def _run(session: Evaluator, pack: ModelPack, seconds: float, slack_seconds: float) -> Outcome:
    rows = pack.rows(session.signature)
    outputs = []
    # The first row by itself: what kills the process there would do so on each, and be tried twice.
    for part in (rows[:1], rows[1:]):
        if not len(part):
            continue
        answer = session.submit(part)
        # The agent looks at the time too, but tries again what hung: here the search for whichever
        # model it is does that.
        wait([answer], seconds * len(part) + slack_seconds)
        if not answer.done():
            return RunFailure("hang", f"no answer within {seconds:.3g} s")
        batch = answer.result()
        if batch.failures:
            at = min(batch.failures)
            kind = cast("RunFailureKind", batch.failures[at])
            detail = printable(batch.details.get(at, ""))
            return RunFailure("misshapen" if is_misshapen(detail) else kind, detail)
        outputs.append(batch.outputs)
    return pack.answers(session.signature, np.concatenate(outputs))


def _refusal(detail: str) -> RunFailure:
    _, crashed, death = detail.partition(_CRASHED_LOADING)
    if INVALID_COMMANDS in detail:
        crashed, death = detail, detail[detail.index(INVALID_COMMANDS) :]
    return RunFailure("crash", f"on loading: {death}") if crashed else RunFailure("refused", detail)
