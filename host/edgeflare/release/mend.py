"""What `edgeflare repair` at equal cost would give, by its own figures of inputs that it held out.

It is an ordinary repair in the folder of the check, by the defaults of the command: it may be
shown, searched, checked, and gone on with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edgeflare.bench.grid import claimed_folder
from edgeflare.devices.profile import Profile
from edgeflare.models.pair import Pair
from edgeflare.release.figures.check_figures import MendedInputs, MendFigures
from edgeflare.repair.judging.judgement import SetJudgement
from edgeflare.repair.repair_candidate import EnoughTried, ReportProgress
from edgeflare.repair.repair_document import RepairDocument
from edgeflare.repair.repair_request import DEFAULT_REQUEST
from edgeflare.repair.repair_run import repair_pair

FOLDER: Final = "mend"

PREPARING: Final = 20_000
"""Inputs for all arms in whose time a repair has made the inputs that candidates are judged by, as
was measured of a ResNet-20; without it nothing comes of a repair."""

JUDGING: Final = 10_000
"""Likewise the last candidate is tried, and the chosen one judged."""

_DEVICES: Final = "devices"
"""The step of a repair by which the chosen candidate is judged."""


def mend_figures(
    pair: Pair,
    profile: Profile,
    folder: Path,
    limit: int | None,
    enough: Callable[[], bool],
    progress: ReportProgress,
    *,
    inputs: bool,
) -> MendFigures | None:
    """Repair a pair, or go on with that.

    Args:
        pair: a pair that a repair takes.
        profile: the device to repair it for.
        folder: folder of the check, in which that of the repair is made.
        limit: how many of the inputs are taken, at most; None for all.
        enough: says whether no further candidate is to be tried.
        progress: is called as the steps go on.
        inputs: whether some inputs that are mended or broken are kept, to be shown.

    Returns:
        The figures; None where there was no time to try a single candidate.

    Raises:
        UserError: no candidate can be made of the models or the inputs.

    """

    def told(step: str, done: int, total: int) -> None:
        progress(step, done, total)
        if step != _DEVICES and enough():
            raise EnoughTried

    path, request = folder / FOLDER, replace(DEFAULT_REQUEST, limit=limit)
    with claimed_folder(path, resume=True, holds="repair"):
        try:
            found = repair_pair(pair, None, [profile], request, path, told, resume=True)
        except EnoughTried:
            return None
        found = found if inputs else found.without_inputs()
        found.write(path, pair)
    return figures_of(found.document)


def figures_of(document: RepairDocument) -> MendFigures:
    """Return the figures of a repair."""
    judged, offered = document.judged, document.offered
    return MendFigures(
        folder=FOLDER,
        candidate=document.chosen,
        written=document.written,
        why=document.why,
        deviating=None if judged is None else _deviating([judged.seeds]),
        wrong=None if judged is None else _wrong(judged.seeds),
        near=None if judged is None else _deviating(judged.scored),
        beyond=() if offered is None else offered.options,
        near_beyond=None
        if offered is None
        else sum(input_set.after.deviating for input_set in offered.judged.scored),
    )


def _deviating(sets: Sequence[SetJudgement]) -> MendedInputs:
    return MendedInputs(
        inputs=sum(input_set.after.inputs - input_set.after.failed for input_set in sets),
        before=sum(input_set.before.deviating for input_set in sets),
        after=sum(input_set.after.deviating for input_set in sets),
        mended=sum(input_set.mended for input_set in sets),
        broken=sum(input_set.broken for input_set in sets),
    )


def _wrong(seeds: SetJudgement) -> MendedInputs | None:
    """Return the labelled inputs that are decided wrongly; None where none is labelled."""
    before, after, changed = seeds.before, seeds.after, seeds.accuracy
    if changed is None or before.right is None or after.right is None:
        return None
    return MendedInputs(
        inputs=after.labelled,
        before=before.labelled - before.right,
        after=after.labelled - after.right,
        mended=changed.mended,
        broken=changed.broken,
    )
