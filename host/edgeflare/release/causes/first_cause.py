"""The rules in their order, of which the first that applies says why a model may not ship.

An earlier rule makes the later ones meaningless: where the data are wrong no accuracy says
anything, where outputs are not finite no order of classes does, and where the device prepares its
inputs otherwise no layer is to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from edgeflare.release.causes import data_causes, decision_causes, device_causes, file_causes
from edgeflare.release.causes.cause import Cause, KnownToRules
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.gates import CheckGate
from edgeflare.release.harm import counted_faults


def find_cause(figures: CheckFigures, gates: tuple[CheckGate, ...]) -> Cause | None:
    """Return the first cause that applies; None where the model may ship, as far as is known.

    Args:
        figures: what was measured.
        gates: how the gates ended that it is held to.

    """
    known = KnownToRules(figures, gates, tuple(counted_faults(figures)))
    return next(chain.from_iterable(rule(known) for rule in _RULES), None)


_RULES: Final[tuple[Callable[[KnownToRules], Iterator[Cause]], ...]] = (
    data_causes.wrong_data,
    device_causes.wrong_on_drawn_inputs,
    decision_causes.failed_inputs,
    file_causes.faulty_file,
    data_causes.few_inputs,
    device_causes.other_stages,
    device_causes.other_kernels,
    device_causes.other_by_threads,
    file_causes.other_order,
    file_causes.other_preprocessing,
    file_causes.cut_off_range,
    file_causes.faulty_layer,
    decision_causes.lost_class,
    decision_causes.one_sided_scores,
    decision_causes.lost_in_the_field,
    decision_causes.lost_accuracy,
    decision_causes.failed_gate,
    data_causes.unjudged_changes,
)
