"""What the field does to a compressed model that it does not do to its original.

Every natural condition of the domain is tried at the severities at which originals still work. An
average over all severities hides harm: where original and compressed model are ruined alike,
nothing is lost any more. So each *cell*, a condition at a severity, is judged by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from time import monotonic
from typing import Final

from msgspec.structs import replace

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.conditions.condition import changed_input
from edgeflare.conditions.condition_choice import (
    DEFAULT_SET,
    ChosenCondition,
    chosen_conditions,
)
from edgeflare.conditions.condition_registry import own_conditions
from edgeflare.core.answer import Answer
from edgeflare.core.query import Arm
from edgeflare.core.truths import Truths, is_right
from edgeflare.errors import UserError
from edgeflare.release.answers import changes_between
from edgeflare.release.figures.condition_cells import FieldCell, FieldFigures
from edgeflare.statistics.binomial import sign_test
from edgeflare.statistics.multiple_comparisons import holm

SEVERITIES: Final = (1, 2, 3)
"""Severities at which conditions are tried."""

_FURTHER: Final = frozenset({"low-light"})
"""Conditions that are tried beside the common ones, which for images are those of a paper."""

INPUTS: Final = 150
"""Inputs in each cell, at most."""

_AGAIN: Final = 3
"""Cells that are tried on further inputs: those that lose most.

Corrected for all cells, a loss has to be great to be significant on few inputs. Corrected for these
alone, on inputs that they were not chosen by, a smaller one is seen.
"""

_FEWEST_AGAIN: Final = 50
"""Further inputs below which none are tried."""

_TOGETHER: Final = 25
"""Inputs that all cells are asked about before the next ones are, at most, so that what is cut off
is as far in all of them."""

_CELL_SECONDS: Final = 5.0
"""Seconds that a cell is asked for, at most, before the next one is."""

_WORKS: Final = 0.75
"""Share of what the original gets right without a condition that it has to get right under it."""

_TWO_OF_THREE: Final = 2 / 3
"""Time of an input here, of what all arms take for it: the twin is not asked."""

_CONDITION_SEED: Final = 0
"""The run seed that conditions draw from."""


def field_figures(
    opened: OpenedPair,
    places: Sequence[int],
    stopped: Callable[[], bool],
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> FieldFigures:
    """Try the conditions of the domain.

    Args:
        opened: the pair, on one device.
        places: the positions of inputs among its seeds, those first that are taken first.
        stopped: whether to come to an end.
        progress: is called with the number of answers, and that of all.

    Raises:
        UserError: the domain has no conditions, or nothing is known to be right.

    """
    cells, known = _cells(opened), _known(opened, places)
    if not known:
        raise UserError("conditions are judged by labels, against the original")
    figures = _tried(opened, cells, known[:INPUTS], stopped, progress)
    if figures is None:
        raise UserError("there was no time left for conditions")
    further, names = known[INPUTS:], [(cell.condition, cell.severity) for cell in figures.ranked]
    most = [cell for cell in cells if (cell[0].name, cell[1]) in names[:_AGAIN]]
    if len(further) < _FEWEST_AGAIN or not most or stopped():
        return figures
    return replace(
        figures, further=_tried(opened, most, further, stopped, lambda _done, _all: None)
    )


def _tried(
    opened: OpenedPair,
    cells: Sequence[tuple[ChosenCondition, int]],
    known: Sequence[int],
    stopped: Callable[[], bool],
    progress: Callable[[int, int], None],
) -> FieldFigures | None:
    """Return what cells do to inputs; None where there was time for none."""
    answers: list[list[_Answered]] = [[] for _ in cells]
    truths, together = opened.truths, _together(opened, known)
    for begin in range(0, len(known), together):
        some = known[begin : begin + together]
        for at, (condition, severity) in enumerate(cells):
            if stopped():
                break
            answers[at] += _asked(opened, condition, severity, some)
            progress(sum(map(len, answers)), len(cells) * len(known))
    found = [
        _cell(condition.name, severity, truths, given)
        for (condition, severity), given in zip(cells, answers, strict=True)
        if given
    ]
    if not found:
        return None
    clean = _asked(opened, None, 0, known[: max(cell.changes.inputs for cell in found)])
    return _judged(found, _cell("unchanged", 0, truths, list(clean)))


def _together(opened: OpenedPair, known: Sequence[int]) -> int:
    """Return how many inputs a cell is asked about before the next one is: fewer slow ones."""
    begun = monotonic()
    tuple(_asked(opened, None, 0, known[:1]))
    return max(1, min(_TOGETHER, int(_CELL_SECONDS / (monotonic() - begun))))


def field_seconds(opened: OpenedPair, places: Sequence[int], each: float) -> float:
    """Return about how many seconds it takes, where all arms take so many for an input; at most.

    Args:
        opened: the pair, on one device.
        places: the positions of inputs among its seeds.
        each: seconds that all arms take for one.

    """
    try:
        known = len(_known(opened, places))
        asked = len(_cells(opened)) * min(INPUTS, known) + (_AGAIN + 1) * max(0, known - INPUTS)
        return asked * _TWO_OF_THREE * each
    except UserError:
        return 0.0


def _cells(opened: OpenedPair) -> list[tuple[ChosenCondition, int]]:
    """Return the conditions of the domain, at each severity.

    Raises:
        UserError: it has none.

    """
    domain = opened.pair.interface.domain_name
    further = [condition.name for condition in own_conditions(domain) if condition.name in _FURTHER]
    names = ",".join([DEFAULT_SET, *further]) if further else None
    return list(product(chosen_conditions(domain, names, SEVERITIES), SEVERITIES))


def _known(opened: OpenedPair, places: Sequence[int]) -> list[int]:
    """Return the positions of the inputs that conditions are judged by, against an original."""
    if Arm.ORIGINAL not in opened.panel.arms:
        return []
    truths, ids = opened.truths, opened.seeds.seed_ids
    return [at for at in places if truths[ids[at]] is not None][: 2 * INPUTS]


_Answered = tuple[int, Answer, Answer]
"""The id of a seed, and what the original and the device answered to it under a condition."""


def _asked(
    opened: OpenedPair, condition: ChosenCondition | None, severity: int, places: Sequence[int]
) -> Iterator[_Answered]:
    """Yield what the arms answer to inputs under a condition, or as they are."""
    seeds, space = opened.seeds, opened.pair.interface.domain.space
    ids, inputs = [seeds.seed_ids[at] for at in places], [seeds.inputs[at] for at in places]
    if condition is not None:
        change = condition.condition
        inputs = [
            changed_input(change, input_, severity, _CONDITION_SEED, space) for input_ in inputs
        ]
    arms = (Arm.ORIGINAL, Arm.DEVICE)
    for seed_id, query in zip(ids, opened.evaluate(inputs, ids, arms), strict=True):
        yield seed_id, query.outcome[Arm.ORIGINAL], query.outcome[Arm.DEVICE]


def _cell(condition: str, severity: int, truths: Truths, given: Sequence[_Answered]) -> FieldCell:
    right = [truths[seed_id] for seed_id, *_ in given]
    first, device = ([answer[1] for answer in given], [answer[2] for answer in given])
    return FieldCell(
        condition=condition,
        severity=severity,
        right=sum(map(is_right, first, right)),
        changes=changes_between(first, device, right),
        p_corrected=1.0,
    )


def _judged(found: Sequence[FieldCell], clean: FieldCell) -> FieldFigures:
    """Return the figures with each cell's p, of those in which the original still works."""
    least = _WORKS * clean.right / clean.changes.inputs
    working = [cell for cell in found if cell.right >= least * cell.changes.inputs]
    tests = holm([sign_test(cell.changes.helped, cell.changes.harmed) for cell in working])
    judged = [replace(cell, p_corrected=p) for cell, p in zip(working, tests, strict=True)]
    judged.sort(key=lambda cell: cell.net, reverse=True)
    return FieldFigures(
        inputs=clean.changes.inputs,
        cells=len(found),
        unchanged=clean,
        ranked=tuple(judged),
    )
