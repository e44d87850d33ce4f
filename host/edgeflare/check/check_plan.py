"""What a check would do, and how long that takes."""

from __future__ import annotations

from contextlib import ExitStack
from math import ceil

from edgeflare.check.answers import places, seconds_per_input
from edgeflare.check.cost import cost_seconds
from edgeflare.check.field import field_seconds
from edgeflare.check.layer_faults import INPUTS, layer_seconds
from edgeflare.check.near import near_seconds
from edgeflare.check.pair_check import PairCheck
from edgeflare.check.phases.answer_phase import open_on
from edgeflare.check.phases.check_record import ANSWERS_UNTIL, FIELD_UNTIL, LAYERS_UNTIL


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
    budget, devices = check.seconds_to_measure, len(check.profiles)
    gates = ", ".join(f"{name} {limit:g}" for name, limit in check.request.gates.items())
    near = [f"searches near to inputs: about {ceil(near_seconds(each))} s, until {budget:.0f} s"]
    return [
        f"answers of {', '.join(arms)} to {known} inputs on {', '.join(check.request.devices)}:"
        f" about {ceil(each * known * devices)} s, until {ANSWERS_UNTIL * budget:.0f} s",
        f"the files, the cost and the conditions: about {ceil(others)} s,"
        f" until {FIELD_UNTIL * budget:.0f} s",
        f"the layers on at most {min(INPUTS, known)} inputs: about"
        f" {ceil(layer_seconds(known, each))} s, until {LAYERS_UNTIL * budget:.0f} s",
        *(near if check.request.near else []),
        *([_mending(check)] if check.request.mend else []),
        f"gates, at most: {gates}",
    ]


def _mending(check: PairCheck) -> str:
    seconds = check.request.budget
    return f"where the file is to blame, a repair at equal cost, until {seconds:.0f} s"
