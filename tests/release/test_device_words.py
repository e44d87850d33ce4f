"""What a check says of a device: what is odd, what is as it should be, and where a fault is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from checked_figures import (
    DEVICE,
    changes,
    figures,
    kernels,
    layer_figures,
    operator_fault,
    operators,
    variant,
)
from edgeflare.release.causes.first_cause import find_cause
from edgeflare.release.check_verdict import judge
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.gates import judged_gates, read_limits
from edgeflare.release.sections import CheckSection, sections_of
from edgeflare.run.run_document import RunDevice

WRONG = kernels(changes=changes(60))
ALONE = layer_figures(on_device={DEVICE: ()})


def section(known: CheckFigures) -> CheckSection:
    gates = judged_gates(known, read_limits([]))
    cause = find_cause(known, gates)
    return next(one for one in sections_of(known, gates, cause, str) if one.name == "device")


def test_what_was_looked_into_is_said() -> None:
    provenance = replace(
        WRONG.device.provenance, kernels="xnnpack", delegated_nodes=7, total_nodes=9
    )
    its = kernels(
        variants=(variant(), variant("batch", others=3, snr_db=60.0)),
        device=RunDevice(name=DEVICE, provenance=provenance),
    )
    found = section(figures(kernels=its, operators=(operators(),)))
    assert found.state == "pass"
    for said in (
        "the same twice, on 4 threads, in batches of 4 but for rounding",
        "9 of 9 operators tried by themselves, in 25 models",
        "xnnpack took 7 of 9 nodes",
    ):
        assert said in found.sentence


@pytest.mark.parametrize(
    ("its", "more", "said"),
    [
        (
            {"variants": (variant(others=9, changed=1),)},
            {},
            "decides 1 of 16 inputs otherwise on 4",
        ),
        ({"variants": (variant("batch", others=9, changed=9),)}, {}, "otherwise in batches of 4"),
        ({"variants": (variant("batch", failed=2),)}, {}, "no answer to 2 of 16 inputs in batches"),
        (
            {},
            {"operators": (operators(operator_fault()),)},
            "conform finds MUL float32: wrong values where size > 4 on values of its own, near to",
        ),
        (
            {},
            {"operators": (operators(operator_fault(3, issue="LiteRT#1, open")),)},
            "on values of its own, as it stands; this is LiteRT#1, open",
        ),
        (
            {},
            {"operators": (operators(operator_fault(3), operator_fault(), operator_fault()),)},
            "conform finds MUL (operator 3): wrong values on values of its own, as it stands",
        ),
    ],
)
def test_what_harms_no_decision_is_for_attention(
    its: dict[str, object], more: dict[str, object], said: str
) -> None:
    known = figures(kernels=kernels(**its), **more)
    found = section(known)
    assert found.state == "attention"
    assert said in found.sentence
    gates = judged_gates(known, read_limits([]))
    assert judge(known, gates, [DEVICE], strict=False).name == "ship"


def test_threads_that_decide_otherwise_for_certain_are_a_cause() -> None:
    known = figures(kernels=kernels(variants=(variant(others=9, changed=7, failed=1),)))
    cause = find_cause(known, judged_gates(known, read_limits([])))
    assert cause is not None
    assert cause.sentence == (
        "phone decides 8 of 16 inputs otherwise on 4 threads than on as many as its profile says"
    )
    assert find_cause(known, judged_gates(known, read_limits(["kernel-changes<inf"]))) is None


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"layers": ALONE}, "each of its 9 layers is right by itself, and not all together"),
        (
            {"layers": structs.replace(ALONE, together={DEVICE: ("SPLIT (operator 8)", "ADD")})},
            "SPLIT (operator 8) and ADD are right by themselves, and wrong together",
        ),
        (
            {"layers": ALONE, "operators": (operators(operator_fault(3)),)},
            "MUL (operator 3): wrong values by itself, on values that were drawn for it",
        ),
        ({"layers": ALONE, "operators": (operators(operator_fault()),)}, "not all together"),
    ],
)
def test_a_device_that_computes_otherwise_is_said_with_where(
    known: dict[str, object], said: str
) -> None:
    found = figures(kernels=WRONG, **known)
    cause = find_cause(found, judged_gates(found, read_limits([])))
    assert cause is not None
    assert cause.rule == "kernels"
    assert said in cause.sentence


def test_a_wrong_layer_is_said_with_the_condition_that_conform_finds() -> None:
    wrong = layer_figures(on_device={DEVICE: ("MUL (operator 3) (up to 2)",)})
    for place, there in ((3, True), (4, False)):
        known = figures(kernels=WRONG, layers=wrong, operators=(operators(operator_fault(place)),))
        cause = find_cause(known, judged_gates(known, read_limits([])))
        assert cause is not None
        said = "conform finds MUL float32 with wrong values where size > 4"
        assert (said in cause.evidence) == there
