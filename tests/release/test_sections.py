"""The sections of a check, and the check as a terminal shows it."""

from __future__ import annotations

import io

import pytest
from msgspec import structs
from rich.console import Console

from checked_figures import (
    DEVICE,
    HARM,
    changes,
    data,
    decisions,
    document,
    fault,
    figures,
    file_figures,
    kernels,
    layer_figures,
)
from edgeflare.core.query import Arm
from edgeflare.pages.terminal import print_page
from edgeflare.release.check_page import check_page
from edgeflare.release.figures.check_figures import CheckFigures
from edgeflare.release.figures.decisions import ChangedInput
from edgeflare.release.figures.device_figures import OutputFigures, ScoreError
from edgeflare.release.figures.file import ExplainedChanges, SensitiveLayer
from edgeflare.release.sections import CheckSection, SectionName


def section(name: SectionName, found: CheckFigures) -> CheckSection:
    return next(one for one in document(found).sections if one.name == name)


def test_data_that_say_less_than_their_number_are_told() -> None:
    varied = section("data", figures(data=data(different=300, classes=10, task_classes=10)))
    assert (varied.state, varied.sentence) == (
        "pass",
        "300 of 300 inputs; the original is right on 90.0%, guesses on 10%;"
        " 736 like these would decide all gates",
    )
    repeated = section("data", figures(data=data(different=100, classes=7, task_classes=10)))
    assert repeated.state == "attention"
    assert repeated.sentence.startswith(
        "200 of 300 inputs are repeated ones; 3 of 10 classes are no input's label; 300 of 300"
    )
    many = section("data", figures(data=data(different=299, classes=90, task_classes=100)))
    assert many.state == "pass"


def test_the_score_of_decisions_is_told_with_its_sign() -> None:
    found = figures()
    (device,) = found.devices
    score = ScoreError(
        score="probability of the decision",
        inputs=300,
        median=-0.0123,
        low=-0.02,
        high=-0.01,
        effect=-0.44,
    )
    output = OutputFigures(output="scores", read=True, compression=None, kernels=None)
    device = structs.replace(device, outputs=(output,))
    lower = structs.replace(found, devices=(device, structs.replace(device, score=score)))
    assert section("numbers", lower).sentence.endswith(
        "; probability of the decision -0.012 (-0.02 to -0.01), effect size -0.44"
    )


def test_a_device_that_may_be_beyond_its_limit_wants_attention() -> None:
    found = section("device", figures(kernels=kernels(changes=changes(3))))
    assert (found.state, found.sentence.partition(";")[0]) == (
        "attention",
        "3 of 300 decisions are others than the host's",
    )


def test_three_layers_are_named_and_changed_inputs_are_grouped_by_what_is_to_blame() -> None:
    layers = layer_figures(
        worst=tuple(
            SensitiveLayer(layer=f"ADD (operator {at})", inputs=50, changed=9 - at, margin=0.1)
            for at in range(3)
        ),
        explained=(ExplainedChanges(description="ordinary rounding in many layers", inputs=2),),
    )
    by_kernels = changed(1, original="cat", twin="cat", device="dog")
    found = figures(layers=layers, decisions=decisions(changed_inputs=(by_kernels,)))
    assert section("layers", found).sentence == (
        "the most sensitive, each with how many of 50 decisions it changes by itself:"
        " ADD (operator 0) (9), ADD (operator 1) (8), ADD (operator 2) (7);"
        " of the changed inputs that were looked into,"
        " 2 by ordinary rounding in many layers, 1 by kernels alone"
    )


def test_a_fault_that_counts_is_said_before_one_that_shows_in_no_decision() -> None:
    """Decisions are as the original's: other constants do not count, a bias that wraps does."""
    crashes = decisions(failed={Arm.DEVICE: {"crash": 3}})  # the cause, before any fault
    both = (fault("coarse", "a scale is coarse"), fault("overflow", "a bias wraps"))
    of_layers = section("layers", figures(layers=layer_figures(*both), decisions=crashes))
    of_file = section("file", figures(file=file_figures(*both), decisions=crashes))
    for seen in (of_layers, of_file):
        assert (seen.state, seen.sentence) == ("fail", "a bias wraps")
    alone = section("file", figures(file=file_figures(both[0])))
    assert (alone.state, alone.sentence) == (
        "attention",
        "a scale is coarse, whose harm these inputs do not show",
    )


@pytest.mark.parametrize(
    ("found", "state", "said"),
    [
        (figures(), "pass", "there is nothing to mend"),
        (figures(kernels=kernels(changes=changes(60))), "not-checked", "no number in the file"),
        (figures(decisions=HARM, mendable=True), "not-checked", "is tried with --mend"),
        (figures(decisions=HARM, missing={"mend": "too few"}), "not-checked", "too few"),
        (
            figures(decisions=HARM, mendable=True, cut=("mend",)),
            "not-checked",
            "give a longer --time-limit",
        ),
    ],
)
def test_a_repair_is_spoken_of_where_the_file_is_to_blame(
    found: CheckFigures, state: str, said: str
) -> None:
    seen = section("mend", found)
    assert seen.state == state
    assert said in seen.sentence
    assert bool(seen.command) is found.mendable


def changed(seed_id: int, **said: str) -> ChangedInput:
    return ChangedInput(
        seed_id=seed_id,
        name=f"a picture with a long name {seed_id}.png",
        said={Arm(arm): words for arm, words in said.items()},
        right="a class with a long name",
        strength=0.3,
    )


def test_three_devices_and_a_long_sentence_are_forty_lines() -> None:
    words = "CONV_2D (operator 17) is quantized coarsely " + "for a reason with many words " * 4
    some = tuple(changed(at, original="cat", twin="dog", device="dog") for at in range(12))
    bad = structs.replace(HARM, changed_inputs=some)
    found = figures(decisions=bad, layers=layer_figures(fault("coarse", words.strip())))
    (device,) = found.devices
    names = [f"{DEVICE}-{at}-with-a-name" for at in range(3)]
    devices = tuple(
        structs.replace(
            device,
            decisions=structs.replace(bad, device=name),
            kernels=kernels(warnings=("something is not delegated, as it should be",)),
        )
        for name in names
    )
    said = io.StringIO()
    page = check_page(document(structs.replace(found, devices=devices)))
    print_page(Console(file=said, width=80), page, "runs/a-check-of-my-pair")
    lines = said.getvalue().splitlines()
    assert "Do not ship. CONV_2D (operator 17)" in said.getvalue()
    assert "edgeflare layers" in said.getvalue()
    shown = [line for line in lines if "✖ fail" in line or "? open" in line]
    assert [one.split()[0] for one in shown[:4]] == [
        *("accuracy-drop", "net-harm", "faults", "accuracy-drop")
    ]
    assert len(lines) <= 40
