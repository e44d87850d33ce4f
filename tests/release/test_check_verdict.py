"""The verdict of a check, and the cause that it names."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from checked_figures import (
    DEVICE,
    HARM,
    cell,
    changes,
    data,
    decisions,
    fault,
    field_figures,
    figures,
    file_figures,
    kernels,
    layer_figures,
)
from edgeflare.core.query import Arm
from edgeflare.diagnose.layers.layer_figures import LayerError
from edgeflare.release.causes.cause import Rule
from edgeflare.release.check_verdict import ShipVerdict, judge
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.condition_cells import FieldCell
from edgeflare.release.figures.data import OtherReading
from edgeflare.release.figures.decisions import ClassLoss
from edgeflare.release.figures.device_figures import OutputFigures, StageFigures
from edgeflare.release.gates import judged_gates, read_limits
from edgeflare.run.systematic.figures import (
    ClippedOutput,
    OtherOrder,
    ScoreShift,
    SystematicDifferences,
)

NONE = SystematicDifferences(
    first=Arm.ORIGINAL, second=Arm.DEVICE, orders=(), flows=(), shifts=(), clipped=()
)
ORDER = OtherOrder(
    first="original",
    second="twin",
    what="classes",
    head="",
    moved=(("a", "b"), ("b", "a")),
    before=0.4,
    after=1.0,
    seeds=300,
)
READING = OtherReading(
    description="read with its channels in reverse order",
    against="original",
    inputs=64,
    before=30,
    after=62,
)
AS_DEVICE = structs.replace(READING, against="device")
SHIFT = ScoreShift(
    head="", score="value", lower=290, higher=10, median=-0.3, low=-0.4, high=-0.2, p_corrected=1e-9
)
CLIPPED = ClippedOutput(output="Identity", side="high", end=6.0, share=0.9, values=1, positions=1)
STAGES = StageFigures(
    inputs=250,
    changed=221,
    labelled=250,
    right=29,
    right_as_pair=218,
    harmed=190,
    helped=1,
    given=1.0,
    decided=0,
    settings=("scale 255 instead of 127.5",),
)
KERNELS = kernels(changes=changes(60))
BROKEN = decisions(
    failed={Arm.TWIN: {"nan": 9}, Arm.DEVICE: {"nan": 9}},
    begins="in the compressed file it begins in MUL (operator 27)",
)


def judged(known: CheckFigures, *gates: str, strict: bool = False) -> ShipVerdict:
    return judge(known, judged_gates(known, read_limits(gates)), [DEVICE], strict=strict)


def harm(**systematic: Any) -> Any:
    """Return the decisions of a file that does harm, and differs systematically."""
    found = SystematicDifferences(
        **{**{name: getattr(NONE, name) for name in NONE.__struct_fields__}, **systematic}
    )
    return decisions(right=HARM.right, changes=HARM.changes, by_file=HARM.by_file, systematic=found)


def test_what_does_as_the_original_may_ship() -> None:
    found = judged(figures())
    assert (found.name, found.cause) == ("ship", None)
    assert found.sentence.startswith("As far as 300 inputs tell")
    assert "right on 90.0% on phone, 90.0% as the original" in found.sentence
    decided = judged(figures(), *(f"{name}<.1" for name in ("accuracy-drop", "net-harm")))
    assert "would decide kernel-changes" in decided.next


def test_each_gate_has_to_be_decided_where_that_is_asked_for() -> None:
    assert judged(figures(), strict=True).name == "undecided"
    wide = ("accuracy-drop<.1", "net-harm<.1", "kernel-changes<.1", "field-loss<inf")
    assert judged(figures(), *wide, strict=True).name == "ship"
    unchecked = judged(figures(), *wide[:3], strict=True)
    assert "field-loss could not be checked" in unchecked.sentence


def test_a_value_beyond_its_limit_is_undecided_while_its_gate_is_open() -> None:
    known = decisions(
        changes=changes(8, harmed=6, helped=2), by_file=changes(8, harmed=6, helped=2)
    )
    found = judged(figures(decisions=known))
    assert (found.name, found.cause) == ("undecided", None)
    assert "do not decide accuracy-drop" in found.sentence


@pytest.mark.parametrize(
    ("known", "rule", "said"),
    [
        (figures(decisions=decisions(inputs=5)), "data", "5 inputs cannot decide anything"),
        (
            figures(data=data(different=19)),
            "data",
            "Of 300 inputs no more than 19 are different ones, which cannot decide anything",
        ),
        (figures(data=data(label_order=ORDER)), "data", "labels have the classes in another order"),
        (figures(data=data(other_reading=READING)), "data", "97% of 64 inputs instead of 47%"),
        (figures(data=data(right=31)), "data", "not better than guessing"),
        (figures(data=data(right=55)), "data", "The original goes 9.3% of the way from guessing"),
        (
            figures(decisions=decisions(failed={Arm.ORIGINAL: {"nan": 200}})),
            "data",
            "original itself has no finite answer to 200",
        ),
        (
            figures(decisions=BROKEN),
            "failures",
            "The compressed file puts out NaN or infinity on 9",
        ),
        (
            figures(decisions=decisions(failed={Arm.TWIN: {"nan": 9}})),
            "failures",
            "The compressed file on the host, and not on phone, puts out NaN or infinity on 9 of",
        ),
        (
            figures(decisions=decisions(failed={Arm.ORIGINAL: {"nan": 2}, Arm.DEVICE: {"nan": 9}})),
            "failures",
            "The original puts out NaN or infinity on 2 and the device puts out NaN or infinity on"
            " 9 of 300 inputs; the twin never",
        ),
        (figures(file=file_figures(fault("unread-input"))), "file", "Something is wrong"),
        (figures(layers=layer_figures(fault("overflow"))), "file", "Something is wrong"),
        (figures(decisions=HARM, file=file_figures(fault("options"))), "file", "omething"),
        (
            figures(kernels=kernels(stages=STAGES)),
            "stages",
            "[device.preprocess]: scale 255 instead of 127.5); the compressed file is fine; right"
            " on 11.6% of 250 inputs, and on 87.2%",
        ),
        (
            figures(
                kernels=KERNELS, layers=layer_figures(on_device={DEVICE: ("MUL (operator 1)",)})
            ),
            "kernels",
            "phone does not compute the file as the host does: MUL (operator 1)",
        ),
        (
            figures(decisions=harm(orders=(ORDER,))),
            "order",
            "classes are the original's in another",
        ),
        (
            figures(decisions=HARM, reading=READING),
            "preprocessing",
            "channels in reverse order, it decides as the original; so on 97% of 64 inputs instead",
        ),
        (figures(decisions=HARM, layers=layer_figures(fault("input-range"))), "range", "omething"),
        (
            figures(decisions=HARM, layers=layer_figures(fault("cut-off", "it (saturated)"))),
            "range",
            "It (saturated)",
        ),
        (figures(decisions=harm(clipped=(CLIPPED,))), "range", "Identity is cut off at 6: 90%"),
        (figures(decisions=HARM, layers=layer_figures(fault("coarse"))), "layer", "omething"),
        (figures(decisions=HARM, layers=layer_figures(fault("constants"))), "layer", "omething"),
        (
            figures(
                decisions=decisions(
                    losses=(ClassLoss(name="Shirt", inputs=21, left=21, came=0, p_corrected=1e-5),)
                )
            ),
            "class",
            "Shirt is lost: phone decides otherwise on 21 of the 21 inputs",
        ),
        (figures(decisions=harm(shifts=(SHIFT,))), "one-sided", "value is lower on phone on 290"),
        (
            figures(field=field_figures(cell("fog", 1, 20, p=1e-4))),
            "field",
            "Under fog at severity 1 the compressed model is right on 66.7% of 150 inputs instead"
            " of 80.0%",
        ),
        (figures(decisions=HARM), "accuracy", "no single layer is to blame; right on 80.0%"),
        (
            figures(decisions=HARM, layers=layer_figures(other_constants=5)),
            "accuracy",
            "as one that was pruned or trained anew: 5 layers have other constants",
        ),
        (
            figures(decisions=HARM, layers=None),
            "accuracy",
            "less accurate, and its layers were not held against the original's; right on 80.0%",
        ),
        (
            figures(decisions=HARM, layers=layer_figures(matched=0)),
            "accuracy",
            "its layers were not held against the original's",
        ),
        (
            figures(decisions=decisions(labelled=0, right={}, changes=changes(60))),
            "changes",
            "without labels nobody can say whether for the worse; no fault of the file and no"
            " kernel explains them",
        ),
        (
            figures(
                decisions=decisions(labelled=0, right={}, changes=changes(60)),
                layers=layer_figures(matched=0),
            ),
            "changes",
            "no kernel explains them, as far as was seen without the layers",
        ),
    ],
)
def test_the_cause_is_named(known: CheckFigures, rule: Rule, said: str) -> None:
    found = judged(known)
    assert found.cause is not None
    assert found.cause.rule == rule
    assert said in found.sentence
    assert found.name == ("undecided" if rule in ("data", "changes") else "do-not-ship")
    assert found.next == found.cause.next_step


ALL = figures(
    data=data(right=31),
    decisions=decisions(
        failed=BROKEN.failed,
        right=HARM.right,
        changes=HARM.changes,
        by_file=HARM.by_file,
        losses=(ClassLoss(name="Shirt", inputs=21, left=21, came=0, p_corrected=1e-5),),
        systematic=harm(orders=(ORDER,), shifts=(SHIFT,), clipped=(CLIPPED,)).systematic,
    ),
    kernels=kernels(stages=STAGES, changes=changes(60)),
    reading=READING,
    file=file_figures(fault("unread-input")),
    layers=layer_figures(fault("input-range"), fault("coarse")),
)


def test_stages_that_harm_nobody_are_no_cause() -> None:
    harmless = structs.replace(STAGES, harmed=10, helped=10)
    assert judged(figures(kernels=kernels(stages=harmless))).name == "ship"


@pytest.mark.parametrize(
    ("undecided", "wrong", "said"),
    [
        (0, (), "does not give the same twice: 5 of 32"),
        (0, ("ADD (operator 1)",), "ADD (operator 1)"),
        (2, ("ADD (operator 1)",), "does not give the same twice: 5 of 32"),
    ],
)
def test_outputs_that_vary_by_rounding_hide_no_wrong_layer(
    undecided: int, wrong: tuple[str, ...], said: str
) -> None:
    seen = kernels(changes=changes(60), unsteady=5, undecided=undecided)
    layers = layer_figures(on_device={DEVICE: wrong} if wrong else {})
    found = judged(figures(kernels=seen, layers=layers))
    assert found.cause is not None
    assert found.cause.rule == "kernels"
    assert said in found.cause.sentence


def test_other_kernels_hide_no_fault_of_the_file() -> None:
    layers = layer_figures(fault("constants", "CONV_2D has other constants"))
    found = judged(figures(decisions=HARM, kernels=KERNELS, layers=layers)).cause
    assert found is not None
    assert found.rule == "kernels"
    assert found.evidence.endswith(
        "on the host the file decides 40 of 300 inputs otherwise than the original: CONV_2D has"
        " other constants"
    )
    assert found.next_step.endswith("neither mends the file")


def test_constants_that_no_compression_explains_are_told_of_a_model_that_may_ship() -> None:
    off = "a constant of CONV_2D is off by 42 steps"
    layers = layer_figures(fault("constants", off))
    for known in (decisions(), decisions(labelled=0, right={})):
        found = judged(figures(decisions=known, layers=layers))
        assert found.name == "ship"
        assert f"{off}, whose harm these inputs do not show" in found.sentence
        assert "that was found" not in found.sentence


@pytest.mark.parametrize(
    ("snr_db", "not_finite", "told"),
    [
        (2.6, 0, "3 dB from the original's"),
        (-0.3, 0, "0 dB from the original's"),
        (None, 9, "NaN or infinity on 9 of 9 inputs, where the original's is finite"),
    ],
)
def test_an_output_that_nothing_judges_is_told_of_where_it_is_far_off(
    snr_db: float | None, not_finite: int, told: str
) -> None:
    error = LayerError(9 - not_finite, not_finite, None, snr_db, 1.0, 5.0, None, not_finite)
    found = figures()
    said = {}
    for read in (True, False):
        output = OutputFigures(output="sure", read=read, compression=error, kernels=None)
        device = structs.replace(found.devices[0], outputs=(output,))
        said[read] = judged(structs.replace(found, devices=(device,))).sentence
    assert "sure" not in said[True]
    assert f"; sure, which the task does not read, is {told}" in said[False]


def test_few_inputs_are_enough_to_see_what_is_broken() -> None:
    broken = structs.replace(BROKEN, inputs=5)
    assert judged(figures(data=data(inputs=5), decisions=broken)).name == "do-not-ship"


def test_a_further_device_that_answered_few_inputs_decides_nothing() -> None:
    (first,) = figures().devices
    its = structs.replace(first.decisions, device="board", inputs=9)
    both = (first, structs.replace(first, decisions=its))
    found = judged(structs.replace(figures(), devices=both))
    assert (found.name, found.sentence.partition(";")[0]) == (
        "undecided",
        "9 inputs cannot decide anything",
    )
    assert found.next == "go on with --resume, and a longer --time-limit"
    some = (first, structs.replace(first, decisions=structs.replace(its, inputs=40)))
    found = judged(structs.replace(figures(), devices=some))
    assert found.sentence.startswith("As far as 40 inputs tell")


def test_of_several_devices_the_one_that_changes_most_is_told_of() -> None:
    """Without labels nobody is harmed on any."""
    unlabelled = decisions(labelled=0, right={})
    (first,) = figures(decisions=unlabelled).devices
    its = structs.replace(unlabelled, device="board", changes=changes(12), by_file=changes(12))
    both = (first, structs.replace(first, decisions=its))
    found = judged(figures(data=data(labelled=0, right=None), devices=both))
    assert found.name == "ship"
    assert "12 of 300 decisions changed on board, 0 by kernels" in found.sentence


def test_one_class_alone_tells_nothing_of_guessing() -> None:
    assert judged(figures(data=data(guessing_accuracy=None))).name == "ship"


def test_where_the_original_is_never_right_nothing_can_be_lost() -> None:
    found = judged(figures(data=data(guessing_accuracy=None, right=0)))
    assert found.name == "undecided"
    assert "right on none of 300 inputs" in found.sentence
    assert judged(figures(data=data(guessing_accuracy=None, right=1))).name == "ship"


def test_a_class_is_not_to_blame_where_others_lose_as_well() -> None:
    lost = ClassLoss(
        name="Shirt", inputs=21, left=21, came=0, p_corrected=1e-5, harmed_elsewhere=30
    )
    known = decisions(right=HARM.right, changes=HARM.changes, by_file=HARM.by_file, losses=(lost,))
    found = judged(figures(decisions=known))
    assert found.cause is not None
    assert found.cause.rule == "accuracy"
    assert "most in Shirt" in found.sentence


def test_an_order_of_the_labels_has_to_be_that_of_the_models() -> None:
    slight = structs.replace(ORDER, first="labels", before=0.0, after=0.5)
    found = judged(figures(data=data(label_order=slight, right=31)))
    assert "not better than guessing" in found.sentence


def test_an_order_that_mends_little_is_none_and_another_network_is_one() -> None:
    slight = structs.replace(ORDER, before=0.04, after=0.6)
    one = harm(orders=(slight,))
    apart = structs.replace(one, changes=changes(280, harmed=250, helped=5))
    layers = layer_figures(other_constants=9)
    found = judged(figures(decisions=apart, layers=layers))
    assert found.cause is not None
    assert found.cause.rule == "accuracy"
    assert "does not seem to be made from this original: 9 layers" in found.sentence
    pruned = judged(figures(decisions=one, layers=layers))
    assert "pruned or trained anew" in pruned.sentence


def test_how_inputs_are_prepared_says_nothing_of_a_device_alone() -> None:
    guess = data(guessed="pixels are scaled to 0..1", right=None, labelled=0)
    assert judged(figures(data=guess)).name == "undecided"
    alone = structs.replace(guess, reference=Arm.TWIN)
    found = judged(figures(data=alone, decisions=decisions(by_file=None, labelled=0, right={})))
    assert "computes the file as the host does" in found.sentence


def test_the_first_rule_that_applies_decides() -> None:
    """Each fault is mended in turn, and the next one is named."""
    from msgspec.structs import replace  # noqa: PLC0415

    (device,) = ALL.devices

    def but(known: CheckFigures, **parts: Any) -> CheckFigures:
        (its,) = known.devices
        mine = {name: parts.pop(name) for name in ("decisions", "kernels") if name in parts}
        return replace(known, devices=(replace(its, **mine),), **parts)

    steps = [ALL]
    steps.append(but(steps[-1], data=data()))
    own = replace(device.decisions, failed={})
    steps.append(but(steps[-1], decisions=own))
    steps.append(but(steps[-1], file=file_figures()))
    steps.append(but(steps[-1], kernels=kernels(changes=changes(60))))
    steps.append(but(steps[-1], kernels=kernels()))
    own = replace(own, systematic=harm(shifts=(SHIFT,), clipped=(CLIPPED,)).systematic)
    steps.append(but(steps[-1], decisions=own))
    steps.append(but(steps[-1], reading=None))
    steps.append(but(steps[-1], layers=layer_figures(fault("coarse"))))
    own = replace(own, systematic=harm(shifts=(SHIFT,)).systematic)
    steps.append(but(steps[-1], decisions=own))
    steps.append(but(steps[-1], layers=layer_figures()))
    own = replace(own, losses=())
    steps.append(but(steps[-1], decisions=own))
    own = replace(own, systematic=None)
    steps.append(but(steps[-1], decisions=own))
    steps.append(but(steps[-1], decisions=decisions()))
    causes = [judged(one).cause for one in steps]
    assert [None if one is None else one.rule for one in causes] == [
        *("data", "failures", "file", "stages", "kernels", "order", "preprocessing"),
        *("range", "range", "layer", "class", "one-sided", "accuracy", None),
    ]


@pytest.mark.parametrize(
    "one",
    [
        cell("fog", 1, 20, p=0.02),  # by chance
        cell("fog", 1, 6, p=1e-4),  # few
        cell("fog", 1, 12, p=1e-4),  # perhaps fewer than the limit
    ],
)
def test_a_condition_counts_where_it_costs_much_for_certain(one: FieldCell) -> None:
    assert judged(figures(field=field_figures(one))).name == "ship"


def test_a_condition_costs_what_is_not_lost_without_it() -> None:
    found = field_figures(cell("fog", 1, 20, p=1e-4), clean=15)
    assert judged(figures(field=found)).name == "ship"


def test_a_condition_may_be_sure_on_further_inputs_alone() -> None:
    first, further = (
        field_figures(one) for one in (cell("fog", 1, 9), cell("dusk", 2, 20, p=1e-3))
    )
    found = judged(figures(field=structs.replace(first, further=further)))
    assert found.cause is not None
    assert (found.name, found.cause.rule) == ("do-not-ship", "field")
    assert found.cause.sentence.startswith("Under dusk at severity 2")


def test_nothing_is_decided_before_anything_is_known() -> None:
    found = judged(CheckFigures())
    assert found.name == "undecided"
    assert "phone was not asked" in found.sentence


class TestNotAllIsKnown:
    """What a check does not know when it was cut off."""

    def test_a_device_that_was_not_asked(self) -> None:
        known = figures()
        gates = judged_gates(known, read_limits([]))
        found = judge(known, gates, [DEVICE, "other"], strict=False)
        assert (found.name, found.sentence) == (
            "undecided",
            "Not all is known: other was not asked",
        )
        refused = structs.replace(known, missing={"answers of other": "no operator DENSIFY"})
        found = judge(refused, gates, [DEVICE, "other"], strict=False)
        assert "other refuses the model: no operator DENSIFY" in found.sentence

    def test_a_fault_is_one_whatever_else_is_not_known(self) -> None:
        known = figures(file=file_figures(fault("unread-input")), cut=("the check", "layers"))
        assert judged(known).name == "do-not-ship"

    def test_the_layers_were_not_looked_into(self) -> None:
        assert judged(figures(layers=None, cut=("layers",))).name == "undecided"
        assert judged(figures(cut=("layers", "field"))).name == "ship"
        few = judged(figures(layers=layer_figures(inputs=1), cut=("layers",)))
        assert (few.name, few.sentence) == (
            "undecided",
            "Not all is known: there was no time for the layers on more than 1 input",
        )
        assert judged(figures(layers=layer_figures(inputs=1))).name == "ship"  # there are no more
        assert judged(figures(layers=None)).name == "ship"  # they cannot be seen

    def test_a_check_under_way_is_never_ship(self) -> None:
        assert judged(figures(cut=("the check",))).name == "undecided"
        lost = judged(figures(missing={"lost": "the cable was pulled"}, cut=("the check",)))
        assert "the cable was pulled" in lost.sentence


def test_without_labels_what_is_missing_for_the_accuracy_comes_next() -> None:
    known = data(labelled=0, right=None)
    found = judged(figures(data=known, decisions=decisions(labelled=0, right={})))
    without = "give labels with the inputs, so that the accuracy is known"
    assert (found.name, found.next) == ("ship", without)
    unlike = decisions(labelled=0, right={}, changes=changes(changed=3))
    limit = ", or a limit for what changes: --gate 'changed<0.05'"
    assert judged(figures(data=known, decisions=unlike)).next == without + limit
    assert judged(figures(data=known, decisions=unlike), "changed<0.5").next == without


def test_without_labels_what_was_not_checked_is_said() -> None:
    found = judged(figures(decisions=decisions(labelled=0, right={})))
    assert found.name == "ship"
    assert "not checked: accuracy-drop, net-harm" in found.sentence
