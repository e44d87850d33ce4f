"""Whether the operators of a compressed model are right on a device, each by itself.

That is a run of `edgeflare conform --from`, as an ordinary one in the folder of a check. Its models
are given values of their own, also such as the model's own data never have. So what it finds is a
reason to look, and why the model may not ship only where its decisions or its layers show harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from edgeflare.conform.conform_run import ConformanceRun, run_conformance
from edgeflare.conform.conformance_arms import conformance_on
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.model_reading import ModelReading, read_operators
from edgeflare.conform.findings.known_issues import known_issues
from edgeflare.conform.record.conform_document import ConformDocument
from edgeflare.conform.record.conform_header import ConformRequest
from edgeflare.conform.record.conform_journal import begin_journal
from edgeflare.conform.rounds.model_figures import model_figures
from edgeflare.core.interrupt import Interrupt
from edgeflare.devices.device import Device
from edgeflare.models.model_file import read_model_file
from edgeflare.release.figures.device_figures import OperatorFault, SeenOperators
from edgeflare.run.run_directory import RunDirectory

_NEAR: Final = 16
"""Models near to the operators that are drawn beside those as they stand."""

_MOST: Final = 64
"""Models that are drawn, at most."""

_ARITHMETIC: Final = 1.2e7
"""Multiply-accumulates that are planned for each second, of operators as they stand. Two cores run
35 million on a device and three kernel sets, the reference one included, four rows of each; two
thirds of the time are left to open the kernel sets and to shrink what fails."""


def operator_figures(
    device: Device,
    model: Path,
    folder: Path,
    seconds: float,
    interrupt: Interrupt,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> SeenOperators:
    """Try the operators of a model on a device.

    Args:
        device: a connected device.
        model: the `.tflite` file.
        folder: folder of the run, which is begun anew.
        seconds: seconds that the run may take.
        interrupt: the user's wish to stop.
        progress: is called with the number of models that were run, and that of all.

    Raises:
        UserError: none of the operators is known, or the device opens no model.

    """
    content = read_model_file(model)
    reading = read_operators(content, str(model))
    own = {read.cell for read in reading.known}
    cells = tuple(cell for cell in chosen_cells() if cell in own)
    about = model_figures(model.name, content, reading, cells)
    models = _models(reading, seconds)
    request = ConformRequest(cells, "uniform", "none", models, seconds, 0, about.sha256)
    with ExitStack() as stack:
        opened = conformance_on(device, stack, interrupt.asked)
        header = opened.header(request)
        journal = begin_journal(folder, header, overwrite=True)
        stack.callback(journal.close)
        run = ConformanceRun(
            header, RunDirectory(folder), journal, about, reading, issues=known_issues()
        )
        document = run_conformance(
            run, opened.arms, _Progress(models, progress), interrupt.asked_by
        )
    known = document.model
    return SeenOperators(
        device=device.profile.name,
        run=folder.name,
        operators=0 if known is None else known.operators,
        tried=0 if known is None else known.operators_tried,
        models=document.models,
        faults=tuple(_faults(document)),
    )


def _models(reading: ModelReading, seconds: float) -> int:
    """Return how many models go with some time, beginning with the operators as they stand."""
    left, count = _ARITHMETIC * seconds, 0
    for operator in reading.distinct:
        left -= reading.arithmetic[operator.place]
        if left < 0 and count:
            return count
        count += 1
    return min(_MOST, count + _NEAR)


class _Progress:
    """Tells how many models were run."""

    def __init__(self, models: int, progress: Callable[[int, int], None]) -> None:
        self._models, self._progress = models, progress

    def conformed(self, models: int, cells: tuple[int, int], failing: int) -> None:  # noqa: ARG002
        """See that a round has ended."""
        self._progress(min(models, self._models), self._models)

    def graphs_tried(self, graphs: int, cells: tuple[int, int], failing: int) -> None:
        """See that graphs were run, which a check does not draw."""

    def shrunk(self, done: int, total: int) -> None:
        """See that findings were shrunk; that is quick here."""


def _faults(document: ConformDocument) -> Sequence[OperatorFault]:
    """Return the findings that count, those of the model's own operators first."""
    found = [
        OperatorFault(
            number=finding.number,
            operator=finding.operator,
            type=finding.type,
            symptom=finding.symptom,
            condition=finding.condition,
            places=finding.places,
            issue="" if finding.issue is None else finding.issue.sentence,
        )
        for finding in document.findings
        if finding.counted
    ]
    return sorted(found, key=lambda fault: not fault.places)
