"""The rules of the verdict, each by a table of its own, and what holds for any table."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import answer_of, detector_outputs_of, objects_decoder
from edgeflare.core.answer import Answer
from edgeflare.core.arm import Arm
from edgeflare.core.joint_answer import joint_answer
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import ExecutionMode, Vote
from edgeflare.diagnose.seed_disagreement import Disagreement
from edgeflare.diagnose.stage_votes import StageVotes
from edgeflare.diagnose.verdict import Name, Which, judge
from edgeflare.tasks.classification import ClassDecoder
from edgeflare.tasks.segmentation.segmentation_task import Segmentation
from edgeflare.tasks.value_decoder import Measure, ValueAnswer
from edgeflare_protos.kernel_sets import Kernels

CLASSES = 4
FACES = objects_decoder()
MASKS = Segmentation().decoder(detector_outputs_of(Tensor("mask", (1, 4, 4, 1), "float32")))
SETS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")


def vote(
    arm: Arm,
    label: int | None,
    kernels: Kernels | None = None,
    threads: int = 1,
    times: int = 2,
    *,
    delegated: int | None = None,
    tied: bool = False,
) -> Vote:
    spread = [0.1] * CLASSES
    if label is not None:
        spread[label] = 0.7
    return Vote(
        ExecutionMode(arm, kernels, threads, delegated),
        (label,) * times,
        (hash((label, kernels)) & 0xFFFF,) * times,
        tied,
        None if label is not None else "crash",
        tuple(spread) if label is not None else (),
    )


def table(
    original: int | None,
    host: dict[Kernels, int | None],
    device: int | None,
    on: Kernels = "builtin",
    others: dict[Kernels, int | None] | None = None,
    threaded: int | None = -1,
) -> Evidence:
    """Evidence from labels alone; -1 threads as the device is."""
    votes = [vote(Arm.TWIN, label, kernels) for kernels, label in host.items()]
    more = [vote(Arm.DEVICE, label, kernels) for kernels, label in (others or {}).items()]
    more.append(vote(Arm.DEVICE, device if threaded == -1 else threaded, on, 2))
    return Evidence(
        original=None if original is None else vote(Arm.ORIGINAL, original),
        twin=votes[0],
        host=tuple(votes),
        device=vote(Arm.DEVICE, device, on, times=3),
        others=tuple(more),
        recorded=(device,) * 3,
    )


def said(evidence: Evidence) -> tuple[Name, Which | None]:
    verdict = judge(evidence)
    return verdict.name, verdict.which


ALIKE: dict[Kernels, int | None] = {"xnnpack": 1, "builtin": 1, "reference": 1}


def test_twin_and_device_against_the_original_is_compression() -> None:
    evidence = table(0, ALIKE, 1, others=ALIKE)
    assert said(evidence) == ("compression", None)
    assert judge(evidence).shares == (1.0, 0.0)


def test_classes_are_named_where_they_have_names() -> None:
    names = ("bag", "coat", "sandal", "shirt")
    compression = replace(table(0, ALIKE, 1, others=ALIKE), classes=names)
    assert judge(compression).why == "twin and device both give coat, the original bag"
    kernel = replace(table(0, {"xnnpack": 0, "builtin": 1, "reference": 1}, 1), classes=names)
    assert judge(kernel).why.startswith("the host too gives coat with builtin kernels")
    several = replace(table(3, {"xnnpack": 0, "builtin": 0, "reference": 0}, 1), classes=names)
    assert judge(several).why.startswith("original, twin and device give shirt, bag and coat")
    unstable = replace(compression, recorded=(2, None))
    assert judge(unstable).why == "the device now answers coat, and sandal, nothing in the run"
    # As many names as there are classes, or none.
    assert judge(replace(compression, classes=())).why == (
        "twin and device both give 1, the original 0"
    )


def test_nothing_deviates() -> None:
    assert said(table(1, ALIKE, 1, others=ALIKE)) == ("none", None)


@pytest.mark.parametrize(
    ("host", "on", "which"),
    [
        ({"xnnpack": 0, "builtin": 1, "reference": 1}, "builtin", "delegate"),
        ({"xnnpack": 0, "builtin": 1, "reference": 0}, "builtin", "built-in kernels"),
        ({"xnnpack": 0, "builtin": 0, "reference": 1}, "reference", "reference kernels"),
    ],
)
def test_kernels_are_named_by_who_stands_alone(
    host: dict[Kernels, int | None], on: Kernels, which: Which
) -> None:
    assert said(table(0, host, 1, on, others={"xnnpack": 0})) == ("kernel", which)


@pytest.mark.parametrize(
    ("host", "on", "whose"),
    [
        (
            {"xnnpack": 0, "builtin": 1, "reference": 1},
            "builtin",
            "the host's XNNPACK delegate stands alone against the device's built-in kernels",
        ),
        (
            {"xnnpack": 0, "builtin": 0, "reference": 1},
            "reference",
            "the device's reference kernels stand alone against the host's XNNPACK delegate",
        ),
        (
            {"builtin": 0, "reference": 0, "xnnpack": 1},
            "xnnpack",
            "the device's XNNPACK delegate stands alone against the host's built-in kernels",
        ),
    ],
)
def test_it_is_said_whose_kernels_they_are(
    host: dict[Kernels, int | None], on: Kernels, whose: str
) -> None:
    verdict = judge(table(0, host, 1, on))
    assert verdict.name == "kernel"
    assert verdict.why == f"the host too gives 1 with {on} kernels; {whose}"


def test_an_answer_that_depends_on_threads_is_the_thread_counts() -> None:
    evidence = table(0, {"xnnpack": 0, "builtin": 0, "reference": 0}, 1, threaded=0)
    assert said(evidence) == ("kernel", "thread count")


def test_what_no_kernels_of_the_host_do_is_the_runtimes_the_machines_or_the_devices() -> None:
    evidence = table(0, {"xnnpack": 0, "builtin": 0, "reference": 0}, 1, "xnnpack")
    assert said(evidence) == ("kernel", "device")
    assert said(replace(evidence, same_machine=False)) == ("kernel", "machine")
    assert said(replace(evidence, same_runtime=False, same_machine=False)) == (
        "kernel",
        "runtime version",
    )


@pytest.mark.parametrize("on", ["gpu", "npu"])
def test_an_accelerator_is_blamed_where_the_devices_own_cpu_gives_the_twins_answer(
    on: Kernels,
) -> None:
    same: dict[Kernels, int | None] = {"xnnpack": 0, "builtin": 0, "reference": 0}
    evidence = table(0, same, 1, on, others={"xnnpack": 0, "builtin": 0})
    which = f"{on.upper()} accelerator"
    assert said(evidence) == ("kernel", which)
    # The host has none to compare with, whatever else differs.
    assert said(replace(evidence, same_machine=False, same_runtime=False)) == ("kernel", which)
    silent = table(0, same, 1, on, others={"xnnpack": 1})
    assert said(replace(silent, same_machine=False)) == ("kernel", "machine")


def accelerated(
    label: int,
    others: list[Vote],
    *,
    kernels: Kernels = "gpu",
    precision: str = "fp16",
    fallback: bool = False,
    taken: int = 9,
) -> Evidence:
    """Evidence on a device with an accelerator, where twin and original give 0 with all kernels."""
    evidence = table(0, {"xnnpack": 0, "builtin": 0, "reference": 0}, label)
    mode = ExecutionMode(Arm.DEVICE, kernels, 1, taken, 9, precision, fallback)
    device = replace(vote(Arm.DEVICE, label, kernels, times=3), mode=mode)
    cpu = [vote(Arm.DEVICE, 0, one) for one in SETS]
    return replace(evidence, device=device, others=(*others, *cpu))


def asked(label: int, precision: str, *, fallback: bool, taken: int = 9) -> Vote:
    mode = ExecutionMode(Arm.DEVICE, "gpu", 1, taken, 9, precision, fallback)
    return replace(vote(Arm.DEVICE, label, "gpu"), mode=mode)


def on_the_cpu(label: int) -> Vote:
    return vote(Arm.DEVICE, label, "compiled-cpu")


def test_float16_is_blamed_where_float32_gives_the_twins_answer() -> None:
    exact = asked(0, "fp32", fallback=False)
    evidence = accelerated(1, [exact, on_the_cpu(0)])
    assert said(evidence) == ("kernel", "accelerator precision")
    assert judge(evidence).why == (
        "the device gives 0 where its GPU accelerator computes in float32 throughout"
    )
    # Another answer than both is no sign of it, and in float32 nothing is rounded to float16.
    wrong = [asked(2, "fp32", fallback=False), on_the_cpu(0)]
    assert said(accelerated(1, wrong)) == ("kernel", "GPU accelerator")
    plain = accelerated(1, [on_the_cpu(0)], precision="fp32")
    assert said(plain) == ("kernel", "GPU accelerator")
    # With another number of nodes on the accelerator too.
    part = accelerated(1, [asked(0, "fp32", fallback=True, taken=4)], fallback=True, taken=5)
    assert said(part) == ("kernel", "accelerator precision")


def test_the_fallback_is_blamed_where_the_cpu_alone_accounts_for_the_answer() -> None:
    wrong = [asked(1, "fp32", fallback=True, taken=5), on_the_cpu(1)]
    part = accelerated(1, wrong, fallback=True, taken=5)
    assert said(part) == ("kernel", "CPU fallback")
    assert judge(part).why == (
        "4 of 9 nodes fell back to the CPU, and the device gives 1 with all of them there"
    )
    # Nodes on the accelerator are at fault if the CPU has the twin's answer, and may be if it has
    # a third one.
    for label in (0, 2):
        of_gpu = accelerated(1, [wrong[0], on_the_cpu(label)], fallback=True, taken=5)
        assert said(of_gpu) == ("kernel", "GPU accelerator")
    # Nor is it the fallback where the host's XNNPACK, which runs those nodes, answers likewise.
    host = tuple(
        replace(one, labels=(1, 1)) if one.mode.ran == "xnnpack" else one for one in part.host
    )
    twin = next(one for one in host if one.mode.ran == "builtin")
    natural = replace(part, twin=twin, host=host)
    assert said(natural) == ("kernel", "GPU accelerator")
    # A model that it takes whole has no nodes on the CPU, whatever that answers.
    whole = accelerated(1, [asked(1, "fp32", fallback=True), on_the_cpu(1)], fallback=True)
    assert said(whole) == ("kernel", "GPU accelerator")


def test_the_fallback_is_blamed_where_nothing_deviates_without_it() -> None:
    alone = asked(0, "fp16", fallback=False)
    evidence = accelerated(1, [alone, on_the_cpu(2)], fallback=True, taken=5)
    assert said(evidence) == ("kernel", "CPU fallback")
    assert judge(evidence).why == "the device gives 0 where nothing may fall back to the CPU"


def test_an_accelerator_that_took_nothing_is_not_blamed() -> None:
    silent = accelerated(1, [on_the_cpu(1)], kernels="npu", fallback=True, taken=0)
    assert said(silent) == ("kernel", "CPU fallback")
    assert judge(silent).why == "its NPU accelerator took no node, so that the CPU ran them all"


def test_a_compiled_model_on_the_cpu_is_xnnpack() -> None:
    host: dict[Kernels, int | None] = {"builtin": 0, "xnnpack": 1, "reference": 0}
    natural = table(0, host, 1, "compiled-cpu", others={"builtin": 0})
    assert said(natural) == ("kernel", "delegate")
    alike: dict[Kernels, int | None] = {"xnnpack": 0, "builtin": 0, "reference": 0}
    wrong = table(0, alike, 1, "compiled-cpu", others={"xnnpack": 0})
    assert said(wrong) == ("kernel", "compiled model's CPU kernels")


def test_how_an_accelerator_ran_is_said_of_its_votes() -> None:
    part = accelerated(1, [], fallback=True, taken=5).device
    assert str(part.mode) == "device, gpu, fp16, fallback of 4 of 9 nodes"
    assert str(asked(0, "fp32", fallback=False).mode) == "device, gpu, fp32"
    known = part.to_json()
    assert (known["precision"], known["fallback"], known["total_nodes"]) == ("fp16", True, 9)
    assert "precision" not in vote(Arm.DEVICE, 1, "builtin").to_json()


def test_a_runtime_that_delegates_nothing_though_it_was_asked_to() -> None:
    evidence = table(0, {"xnnpack": 0, "builtin": 1, "reference": 1}, 1, "xnnpack")
    device = vote(Arm.DEVICE, 1, "xnnpack", times=3, delegated=0)
    silent = replace(evidence, device=device, others=())
    assert said(silent) == ("kernel", "delegate")
    assert said(replace(silent, same_runtime=False)) == ("kernel", "runtime version")


def test_a_host_that_contradicts_itself_and_a_device_that_does_not() -> None:
    host: dict[Kernels, int | None] = {"xnnpack": 0, "builtin": 1, "reference": 1}
    assert said(table(0, host, 1, others={"xnnpack": 1, "reference": 1})) == ("host-suspect", None)
    assert said(table(0, host, 1, others={"xnnpack": 0, "reference": 1}))[0] == "kernel"
    chance = table(0, host, 1, others={"xnnpack": 1, "reference": 1})
    other = tuple(replace(vote, outputs=(7, 7)) for vote in chance.host)
    assert said(replace(chance, host=other))[0] == "kernel"
    evidence = table(0, {"xnnpack": 0, "builtin": 0, "reference": 0}, 1)
    shaky = replace(evidence.host[2], labels=(0, 1))
    assert said(replace(evidence, host=(*evidence.host[:2], shaky)))[0] == "host-suspect"


def test_a_device_that_contradicts_itself() -> None:
    evidence = table(0, ALIKE, 1)
    labels = replace(evidence.device, labels=(1, 2, 1))
    assert said(replace(evidence, device=labels)) == ("unstable", None)
    outputs = replace(evidence.device, outputs=(1, 2, 1))
    assert said(replace(evidence, device=outputs)) == ("unstable", None)
    assert said(replace(evidence, recorded=(2, 2, 2))) == ("unstable", None)


def test_three_labels_are_several_with_shares() -> None:
    evidence = table(0, ALIKE, 2)
    assert said(evidence)[0] == "several"
    shares = judge(evidence).shares
    assert shares is not None
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) > 0.1


def test_a_twin_that_is_tied_is_half_way() -> None:
    evidence = table(0, {"xnnpack": 0, "builtin": 0, "reference": 0}, 1)
    tied = replace(evidence.twin, tied=True)
    assert said(replace(evidence, twin=tied))[0] == "several"


@pytest.mark.parametrize("pair", ["original-twin", "twin-device"])
def test_most_seeds_read_otherwise_without_a_layer_to_blame(pair: str) -> None:
    evidence = table(0, ALIKE, 1)
    wrong = {pair: Disagreement(0.8, 1.0, varied=True)}
    seen = replace(evidence, compression_in_layer=False, kernel_in_layer=False, seeds=wrong)
    assert said(seen) == ("input-suspect", None)
    assert said(replace(seen, compression_in_layer=True, kernel_in_layer=True)) == (
        "compression",
        None,
    )
    explained = {pair: replace(wrong[pair], explained="read upside down (99% of 64 seeds)")}
    found = replace(seen, compression_in_layer=True, kernel_in_layer=True, seeds=explained)
    assert said(found) == ("input-suspect", None)
    assert "upside down" in judge(found).why
    some = {pair: Disagreement(0.1, 0.5, varied=True, explained="read upside down")}
    assert said(replace(seen, seeds=some)) == ("input-suspect", None)


def with_stages(evidence: Evidence, shipped: int, outputs: int, inputs: int) -> Evidence:
    """Evidence of a device with stages of its own; that of `evidence` is with the pair's."""

    def answered(label: int) -> Vote:
        return vote(Arm.DEVICE, label, "builtin", times=3)

    stages = StageVotes(answered(shipped), answered(outputs), answered(inputs), device_queries=3)
    return replace(evidence, stages=stages, recorded=(shipped,) * 3)


@pytest.mark.parametrize(
    ("shipped", "outputs", "inputs", "name"),
    [
        (2, 0, 2, "output-stage"),
        (2, 2, 0, "input-stage"),
        (2, 2, 2, "both-stages"),
        (2, 0, 0, "both-stages"),
        (2, 1, 3, "both-stages"),
    ],
)
def test_a_stage_of_the_device_that_changes_its_answer(
    shipped: int, outputs: int, inputs: int, name: Name
) -> None:
    alike: dict[Kernels, int | None] = dict.fromkeys(SETS, 0)
    evidence = with_stages(table(0, alike, 0, others=alike), shipped, outputs, inputs)
    assert said(evidence) == (name, None)
    assert judge(evidence).why.startswith("the device gives 2, and 0 with the pair's ")


def test_a_stage_is_named_before_kernels_and_compression_that_are_left() -> None:
    kernels: dict[Kernels, int | None] = {"xnnpack": 0, "builtin": 1, "reference": 1}
    for left, word in (
        (table(0, ALIKE, 1, others=ALIKE), "compression"),
        (table(0, kernels, 1), "kernel: delegate"),
    ):
        evidence = with_stages(left, 2, 1, 2)
        assert said(evidence) == ("output-stage", None)
        assert judge(evidence).why.endswith(f"; then what is left is {word}")


def test_a_stage_that_changes_nothing_leaves_the_verdict_to_equal_stages() -> None:
    kernels: dict[Kernels, int | None] = {"xnnpack": 0, "builtin": 1, "reference": 1}
    assert said(with_stages(table(0, kernels, 1), 1, 1, 1)) == ("kernel", "delegate")
    assert said(with_stages(table(0, ALIKE, 1, others=ALIKE), 1, 1, 1)) == ("compression", None)


def test_a_device_whose_own_stages_answer_otherwise_than_in_the_run_is_unstable() -> None:
    evidence = with_stages(table(0, ALIKE, 1, others=ALIKE), 2, 1, 2)
    assert said(replace(evidence, recorded=(3,) * 3)) == ("unstable", None)


@pytest.mark.parametrize(
    "few",
    [
        Disagreement(0.05, 1.0, varied=True),
        Disagreement(0.8, 0.2, varied=True),
        Disagreement(0.9, 1.0, varied=False),
    ],
)
def test_few_seeds_few_classes_or_a_constant_output_are_no_wrong_input(few: Disagreement) -> None:
    seen = replace(table(0, ALIKE, 1), compression_in_layer=False, seeds={"original-twin": few})
    assert said(seen) == ("compression", None)


def test_a_crash_is_whose_kernels_crash() -> None:
    assert said(table(0, ALIKE, None)) == ("kernel", "device")
    nobody: dict[Kernels, int | None] = dict.fromkeys(SETS)
    assert said(table(0, nobody, None)) == ("compression", None)
    assert said(table(0, {"xnnpack": None, "builtin": 1, "reference": 1}, 1))[0] == "host-suspect"


def test_there_is_no_verdict_without_repeats() -> None:
    evidence = table(0, ALIKE, 1)
    once = replace(evidence.device, labels=(1, 1), outputs=(5, 5))
    with pytest.raises(ValueError, match="no verdict without 3 answers"):
        judge(replace(evidence, device=once))


LABELS = st.none() | st.integers(0, CLASSES - 1)


@st.composite
def tables(draw: st.DrawFn) -> Evidence:
    evidence = table(
        draw(st.none() | st.integers(0, CLASSES - 1)),
        {kernels: draw(LABELS) for kernels in SETS},
        draw(LABELS),
        draw(st.sampled_from(SETS)),
        draw(st.dictionaries(st.sampled_from(SETS), LABELS)),
        draw(st.just(-1) | LABELS),
    )
    flags = st.booleans()
    return replace(evidence, same_runtime=draw(flags), same_machine=draw(flags))


@given(tables())
def test_any_table_has_a_verdict_that_fits_the_labels(evidence: Evidence) -> None:
    verdict = judge(evidence)
    assert verdict.name in get_args(Name)
    assert verdict.why
    assert "\n" not in verdict.why
    json.dumps(verdict.to_json(), allow_nan=False)
    f = None if evidence.original is None else evidence.original.label
    h, g = evidence.twin.label, evidence.device.label
    if verdict.name in ("kernel", "several"):
        assert verdict.which in get_args(Which)
        assert h != g
    if verdict.name == "compression":
        assert h == g
    if verdict.name == "none":
        assert h == g
        assert evidence.original is None or f == g
    if verdict.shares is not None:
        assert sum(verdict.shares) == pytest.approx(1.0)
        assert min(verdict.shares) >= 0.0


@given(tables(), st.permutations(range(CLASSES)))
def test_labels_are_only_names(evidence: Evidence, names: list[int]) -> None:
    """A verdict does not depend on which class is called what."""

    def renamed(known: Vote) -> Vote:
        spread = [0.0] * len(known.probabilities)
        for label, p in enumerate(known.probabilities):
            spread[names[label]] = p
        labels = tuple(None if label is None else names[label] for label in known.labels)
        return replace(known, labels=labels, probabilities=tuple(spread))

    other = replace(
        evidence,
        original=None if evidence.original is None else renamed(evidence.original),
        twin=renamed(evidence.twin),
        host=tuple(map(renamed, evidence.host)),
        device=renamed(evidence.device),
        others=tuple(map(renamed, evidence.others)),
        recorded=tuple(None if label is None else names[label] for label in evidence.recorded),
    )
    assert said(other) == said(evidence)


def of_value(arm: Arm, value: float, kernels: Kernels | None = None, times: int = 2) -> Vote:
    nothing = np.empty(0)
    answer = ValueAnswer(
        *(0, False, nothing, nothing),
        values=np.array([[value]], np.float32),
        measure=Measure(0.1, "absolute"),
    )
    mode = ExecutionMode(arm, kernels, 1)
    return Vote(mode, (0,) * times, (int(value * 1000),) * times, answer=answer)


def of_values(original: float, host: dict[Kernels, float], device: float) -> Evidence:
    twins = tuple(of_value(Arm.TWIN, value, kernels) for kernels, value in host.items())
    asked = of_value(Arm.DEVICE, device, "builtin", 3)
    return Evidence(of_value(Arm.ORIGINAL, original), twins[0], twins, asked, recorded=(0,) * 3)


def test_values_are_compared_by_their_distance() -> None:
    alike: dict[Kernels, float] = {"xnnpack": 1.0, "builtin": 1.0, "reference": 1.0}
    assert said(of_values(0.95, alike, 1.0)) == ("none", None)
    compression = judge(of_values(0.5, alike, 1.0))
    assert compression.name == "compression"
    assert compression.shares == (1.0, 0.0)
    assert compression.why == (
        "the distance between the device's values and the original's is 0.5, and between the"
        " device's and the twin's 0"
    )
    delegate: dict[Kernels, float] = {"xnnpack": 1.0, "builtin": 1.5, "reference": 1.5}
    kernel = judge(of_values(1.0, delegate, 1.5))
    assert (kernel.name, kernel.which) == ("kernel", "delegate")
    assert kernel.why.startswith("the host too gives the device's values with builtin kernels")
    several = judge(of_values(0.5, delegate, 1.5))
    assert (several.name, several.shares) == ("several", (0.5, 0.5))
    assert several.why.startswith(
        "the distance between the twin's values and the original's is 0.5, and between the"
        " device's and the twin's 0.5"
    )


def of_faces(arm: Arm, scores: tuple[float, ...], kernels: Kernels | None = None) -> Vote:
    rows = [(n / 4, 0.1, n / 4 + 0.2, 0.3, score, 0.0) for n, score in enumerate(scores)]
    mode = ExecutionMode(arm, kernels, 1)
    return Vote(mode, (0, 0, 0), (len(rows),) * 3, answer=answer_of(FACES, *rows))


def test_objects_are_written_out_and_the_kind_is_named() -> None:
    two, one = (0.875, 0.75), (0.875, 0.25)
    evidence = Evidence(
        of_faces(Arm.ORIGINAL, two),
        of_faces(Arm.TWIN, one, "xnnpack"),
        (),
        of_faces(Arm.DEVICE, one, "xnnpack"),
        recorded=(3, 3, 3),
        classes=("face",),
        decoder=FACES,
    )
    assert judge(evidence).why == (
        "twin and device both give 1 object: face .88, the original 2 objects: face .88, face .75"
        " (object vanished)"
    )
    apart = replace(evidence, twin=of_faces(Arm.TWIN, (), "xnnpack"))
    assert judge(apart).why.startswith(
        "the original gives 2 objects: face .88, face .75; the twin no object; the device 1 object"
    )
    shaky = replace(evidence.device, labels=(0, None, 0))
    assert judge(replace(evidence, device=shaky)).why == (
        "the device answered something, nothing, something in turn"
    )


def test_what_compression_alone_changed_is_all_its_share() -> None:
    two, one = (0.875, 0.75), (0.875, 0.25)
    nearly = (0.625, 0.25)  # the device is less sure of the face that is there all the same
    evidence = Evidence(
        of_faces(Arm.ORIGINAL, two),
        of_faces(Arm.TWIN, one, "xnnpack"),
        (),
        of_faces(Arm.DEVICE, nearly, "builtin"),
        decoder=FACES,
    )
    found = judge(evidence)
    assert (found.name, found.shares) == ("compression", (1.0, 0.0))
    failed = replace(evidence.device, failure="crash", answer=None)
    assert judge(replace(evidence, device=failed)).shares is None


def test_ordinary_rounding_is_not_blamed_for_a_file_that_fails() -> None:
    evidence = table(0, dict.fromkeys(SETS), None)
    failing = replace(
        evidence,
        twin=replace(evidence.twin, failure="crash"),
        device=replace(evidence.device, failure="crash"),
    )
    for grade, which in (("spread", None), ("faulty", "faulty"), (None, None)):
        assert said(replace(failing, compression_as=grade)) == ("compression", which)  # type: ignore[arg-type]


def of_mask(arm: Arm, pixels: int, kernels: Kernels | None = None) -> Vote:
    scores = np.zeros((1, 4, 4, 1), np.float32)
    scores.ravel()[:pixels] = 1.0
    (answer,) = MASKS.read(RawBatch(scores[None]))
    return Vote(ExecutionMode(arm, kernels, 1), (0, 0, 0), (pixels,) * 3, answer=answer)


def test_masks_are_said_by_their_mean_iou_and_no_class_is_named() -> None:
    evidence = Evidence(
        of_mask(Arm.ORIGINAL, 8),
        of_mask(Arm.TWIN, 4, "xnnpack"),
        (),
        of_mask(Arm.DEVICE, 4, "xnnpack"),
        recorded=(1, 1, 1),
        classes=("background", "person"),
        decoder=MASKS,
    )
    why = judge(evidence).why
    assert why == (
        "the mean IoU between the device's mask and the original's is 0.5833, and between the"
        " device's and the twin's 1 (low mean iou)"
    )
    assert judge(replace(evidence, original=of_mask(Arm.ORIGINAL, 4))).why == "no two arms deviate"
    crashed = judge(replace(evidence, recorded=(None,) * 3))
    assert crashed.why.startswith("the device now answers something, and nothing")


def test_frames_too_many_for_joint_scores_share_their_own() -> None:
    """Of 40 frames one is decided otherwise; a quarter of its change was made by the kernels."""

    def frames(score: float) -> Answer:
        tensor = Tensor("out", (1, 2), "float32")
        rows = np.array([[3.0, 0.0]] * 39 + [[score, 0.0]], np.float32)
        return joint_answer(list(ClassDecoder(tensor, "logits").read(RawBatch(rows))))

    scores = {Arm.ORIGINAL: 2.0, Arm.TWIN: -1.0, Arm.DEVICE: -2.0}
    votes = {
        arm: Vote(
            ExecutionMode(arm, "builtin", 1), (int(score < 0),) * 3, (1,) * 3, answer=frames(score)
        )
        for arm, score in scores.items()
    }
    evidence = Evidence(votes[Arm.ORIGINAL], votes[Arm.TWIN], (votes[Arm.TWIN],), votes[Arm.DEVICE])
    assert judge(evidence).shares == pytest.approx((0.75, 0.25))
