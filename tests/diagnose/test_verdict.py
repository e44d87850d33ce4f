"""The rules of the verdict, as tables of who answers what, and what holds for any table."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, convert

from detectors import answer_of, detector_outputs_of, objects_decoder
from edgeflare.core.answer import Answer
from edgeflare.core.joint_answer import joint_answer
from edgeflare.core.query import Arm
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.devices.profile import Precision
from edgeflare.diagnose.evidence import Evidence
from edgeflare.diagnose.execution_modes import ExecutionMode, Vote
from edgeflare.diagnose.explanation import explained_evidence
from edgeflare.diagnose.seed_disagreement import Disagreement
from edgeflare.diagnose.stage_votes import StageVotes
from edgeflare.diagnose.verdict import MarginShares, Name, Which, judge
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
    delegated: int | None = None,
) -> Vote:
    spread = [0.1] * CLASSES
    if label is not None:
        spread[label] = 0.7
    return Vote(
        ExecutionMode(arm, kernels, threads, delegated),
        (label,) * times,
        (hash((label, kernels)) & 0xFFFF,) * times,
        False,
        None if label is not None else "crash",
        tuple(spread) if label is not None else (),
    )


def labels(said: str) -> dict[Kernels, int | None]:
    """Labels of XNNPACK, built-in and reference kernels: "-" is none, "." was not asked."""
    known = zip(SETS, said, strict=True)
    return {one: None if label == "-" else int(label) for one, label in known if label != "."}


def table(
    original: int | None,
    host: str,
    device: int | None,
    on: Kernels = "builtin",
    others: str = "...",
    threaded: int | None = -1,
    twin: Kernels = "xnnpack",
) -> Evidence:
    """Evidence from labels alone; -1 threads as the device is."""
    known = labels(host)
    votes = [vote(Arm.TWIN, label, one) for one, label in ({twin: known[twin]} | known).items()]
    more = [vote(Arm.DEVICE, label, kernels) for kernels, label in labels(others).items()]
    more.append(vote(Arm.DEVICE, device if threaded == -1 else threaded, on, 2))
    return Evidence(
        original=None if original is None else vote(Arm.ORIGINAL, original),
        twin=votes[0],
        host=tuple(votes),
        device=vote(Arm.DEVICE, device, on, times=3),
        others=tuple(more),
        recorded=(device,) * 3,
    )


def accelerated(
    *others: Vote,
    kernels: Kernels = "gpu",
    precision: Precision = "fp16",
    fallback: bool = False,
    taken: int = 9,
) -> Evidence:
    """Evidence on a device whose accelerator gives 1, where all else gives 0 with all kernels."""
    evidence = table(0, "000", 1)
    mode = ExecutionMode(Arm.DEVICE, kernels, 1, taken, 9, precision, fallback)
    device = replace(vote(Arm.DEVICE, 1, kernels, times=3), mode=mode)
    cpu = [vote(Arm.DEVICE, 0, one) for one in SETS]
    return replace(evidence, device=device, others=(*others, *cpu))


def asked(label: int, precision: Precision, *, fallback: bool = False, taken: int = 9) -> Vote:
    mode = ExecutionMode(Arm.DEVICE, "gpu", 1, taken, 9, precision, fallback)
    return replace(vote(Arm.DEVICE, label, "gpu"), mode=mode)


def on_the_cpu(label: int) -> Vote:
    return vote(Arm.DEVICE, label, "compiled-cpu")


def with_stages(evidence: Evidence, shipped: int, outputs: int, inputs: int) -> Evidence:
    """Evidence of a device with stages of its own; that of `evidence` is with the pair's."""
    own, *pairs = (vote(Arm.DEVICE, one, "builtin", times=3) for one in (shipped, outputs, inputs))
    stages = StageVotes(own, pairs[0], pairs[1], {}, device_queries=3)
    return replace(evidence, stages=stages, recorded=(shipped,) * 3)


COMPRESSION = table(0, "111", 1, others="111")
APART = table(0, "111", 1)
KERNELS = table(0, "011", 1)
STEADY = table(0, "000", 1)
ALONE = table(0, "000", 1, "xnnpack")
"""What no kernels of the host do."""
CONTRADICTORY = table(0, "011", 1, others="1.1")
"""A host that contradicts itself, and a device that does not."""
UNDELEGATED = vote(Arm.DEVICE, 1, "xnnpack", times=3, delegated=0)
SILENT = replace(table(0, "011", 1, "xnnpack"), device=UNDELEGATED, others=())
"""A runtime that delegates nothing though it was asked to."""
SHIPPED = with_stages(COMPRESSION, 2, 1, 2)
EXACT = accelerated(asked(0, "fp32"), on_the_cpu(0))
"""In float32 the accelerator gives the twin's answer."""
PARTLY = accelerated(
    asked(1, "fp32", fallback=True, taken=5), on_the_cpu(1), fallback=True, taken=5
)
"""The CPU alone accounts for the answer."""
WITHOUT_FALLBACK = accelerated(asked(0, "fp16"), on_the_cpu(2), fallback=True, taken=5)
NOTHING_TAKEN = accelerated(on_the_cpu(1), kernels="npu", fallback=True, taken=0)


def in_part(label: int) -> Evidence:
    """The compiled CPU kernels give this in the place of 1."""
    return replace(PARTLY, others=(PARTLY.others[0], on_the_cpu(label), *PARTLY.others[2:]))


def natural() -> Evidence:
    """The host's XNNPACK, which runs the nodes that fell back, answers as the device does."""
    xnnpack, *others = PARTLY.host
    return replace(PARTLY, twin=others[0], host=(replace(xnnpack, labels=(1, 1)), *others))


def elsewhere(evidence: Evidence, *, runtime: bool = False) -> Evidence:
    return replace(evidence, same_machine=False, same_runtime=not runtime)


def shaky(evidence: Evidence, **fields: Any) -> Evidence:
    return replace(evidence, device=replace(evidence.device, **fields))


RULES: dict[tuple[Name, Which | None], list[Evidence]] = {
    ("none", None): [table(1, "111", 1, others="111")],
    ("compression", None): [COMPRESSION, table(0, "---", None), with_stages(COMPRESSION, 1, 1, 1)],
    ("several", "device"): [table(0, "111", 2)],
    ("unstable", None): [
        shaky(APART, labels=(1, 2, 1)),
        shaky(APART, outputs=(1, 2, 1)),
        replace(APART, recorded=(2, 2, 2)),
        replace(SHIPPED, recorded=(3, 3, 3)),
    ],
    ("host-suspect", None): [
        table(0, "-11", 1),
        CONTRADICTORY,
        replace(STEADY, host=(*STEADY.host[:2], replace(STEADY.host[2], labels=(0, 1)))),
    ],
    # Kernels are named by who stands alone.
    ("kernel", "delegate"): [
        table(0, "011", 1, others="0.."),
        table(0, "011", 1, others="0.1"),
        replace(
            CONTRADICTORY, host=tuple(replace(one, outputs=(7, 7)) for one in CONTRADICTORY.host)
        ),
        SILENT,
        table(0, "100", 1, "compiled-cpu", ".0.", twin="builtin"),
        with_stages(KERNELS, 1, 1, 1),
    ],
    ("kernel", "builtin"): [table(0, "010", 1, others="0..")],
    ("kernel", "reference"): [table(0, "001", 1, "reference", "0..")],
    ("kernel", "compiled-cpu"): [table(0, "000", 1, "compiled-cpu", "0..")],
    ("kernel", "thread-count"): [table(0, "000", 1, threaded=0)],
    ("kernel", "device"): [ALONE, table(0, "111", None)],
    ("kernel", "machine"): [elsewhere(ALONE), elsewhere(table(0, "000", 1, "gpu", "1.."))],
    ("kernel", "runtime-version"): [
        elsewhere(ALONE, runtime=True),
        replace(SILENT, same_runtime=False),
    ],
    # Of accelerators the host has none to compare with; the device's own CPU gives the twin's.
    ("kernel", "npu"): [table(0, "000", 1, "npu", "00.")],
    ("kernel", "gpu"): [
        table(0, "000", 1, "gpu", "00."),
        elsewhere(table(0, "000", 1, "gpu", "00."), runtime=True),
        accelerated(asked(2, "fp32"), on_the_cpu(0)),
        accelerated(on_the_cpu(0), precision="fp32"),
        in_part(0),
        in_part(2),
        natural(),
        accelerated(asked(1, "fp32", fallback=True), on_the_cpu(1), fallback=True),
    ],
    ("kernel", "accelerator-precision"): [
        EXACT,
        accelerated(asked(0, "fp32", fallback=True, taken=4), fallback=True, taken=5),
    ],
    ("kernel", "cpu-fallback"): [PARTLY, WITHOUT_FALLBACK, NOTHING_TAKEN],
    # A stage that changes the answer is named before kernels and compression that are left.
    ("output-stage", None): [
        with_stages(table(0, "000", 0, others="000"), 2, 0, 2),
        SHIPPED,
        with_stages(KERNELS, 2, 1, 2),
    ],
    ("input-stage", None): [with_stages(table(0, "000", 0, others="000"), 2, 2, 0)],
    ("both-stages", None): [
        with_stages(table(0, "000", 0, others="000"), 2, *both) for both in ((2, 2), (0, 0), (1, 3))
    ],
}


@pytest.mark.parametrize(
    ("verdict", "evidence"), [(verdict, one) for verdict, all_ in RULES.items() for one in all_]
)
def test_who_answers_what_decides_the_verdict(
    verdict: tuple[Name, Which | None], evidence: Evidence
) -> None:
    found = judge(evidence)
    assert (found.name, found.which) == verdict


def test_a_twin_that_is_tied_is_half_way() -> None:
    assert judge(replace(STEADY, twin=replace(STEADY.twin, tied=True))).name == "several"


NAMES = ("bag", "coat", "sandal", "shirt")
NAMED = replace(COMPRESSION, classes=NAMES)


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (COMPRESSION, "twin and device agree"),
        (table(3, "000", 1), "no two arms agree; "),
        (
            replace(NAMED, recorded=(2, None)),
            "the device now answers coat, and sandal, nothing in the run",
        ),
        (
            KERNELS,
            "the host does as the device with builtin kernels; "
            "the host's XNNPACK delegate stands alone"
            " against the device's built-in kernels",
        ),
        (
            table(0, "001", 1, "reference"),
            "the host does as the device with reference kernels; "
            "the device's reference kernels stand"
            " alone against the host's XNNPACK delegate",
        ),
        (
            table(0, "100", 1, "xnnpack", twin="builtin"),
            "the host does as the device with xnnpack kernels; "
            "the device's XNNPACK delegate stands alone"
            " against the host's built-in kernels",
        ),
        (
            EXACT,
            "the device does as the twin where its GPU accelerator computes in float32 throughout",
        ),
        (
            PARTLY,
            "4 of 9 nodes fell back to the CPU, and the device gives the same answer with all of"
            " them there",
        ),
        (WITHOUT_FALLBACK, "the device does as the twin where nothing may fall back to the CPU"),
        (
            with_stages(table(0, "000", 0, others="000"), 2, 0, 2),
            "the device gives 2, and 0 with the pair's ",
        ),
        (NOTHING_TAKEN, "its NPU accelerator took no node, so that the CPU ran them all"),
    ],
)
def test_it_is_said_why(evidence: Evidence, why: str) -> None:
    assert judge(evidence).why.startswith(why)


def test_what_is_left_behind_a_stage_is_said() -> None:
    for left, word in ((COMPRESSION, "compression"), (KERNELS, "kernel: delegate")):
        assert judge(with_stages(left, 2, 1, 2)).why.endswith(f"; then what is left is {word}")


def test_shares_are_all_of_one_or_parts_of_several() -> None:
    assert judge(COMPRESSION).shares == MarginShares(1.0, 0.0)
    shares = judge(table(0, "111", 2)).shares
    assert shares is not None
    assert shares.compression + shares.kernel == pytest.approx(1.0)
    assert min(shares.compression, shares.kernel) > 0.1


def test_how_an_accelerator_ran_is_said_of_its_votes() -> None:
    part = PARTLY.device
    assert str(part.mode) == "device, gpu, fp16, fallback of 4 of 9 nodes"
    assert str(asked(0, "fp32").mode) == "device, gpu, fp32"
    written = {(one.kernels, one.precision): one for one in explained_evidence(PARTLY).votes}
    known = written["gpu", "fp16"]
    assert (known.fallback, known.total_nodes) == (True, 9)
    assert written["builtin", UNSET].total_nodes is UNSET


@pytest.mark.parametrize("pair", ["original-twin", "twin-device"])
def test_most_seeds_read_otherwise_without_a_layer_to_blame(pair: str) -> None:
    wrong, upside_down = Disagreement(0.8, 1.0, varied=True), "read upside down (99% of 64 seeds)"
    unblamed: dict[str, Any] = {"compression_in_layer": False, "kernel_in_layer": False}
    blamed: dict[str, Any] = {"compression_in_layer": True, "kernel_in_layer": True}
    explained = replace(wrong, explained=upside_down)
    for seeds, layers, name in (
        (wrong, unblamed, "input-suspect"),
        (wrong, blamed, "compression"),
        (explained, blamed, "input-suspect"),
        (replace(explained, rate=0.1, distance=0.5), unblamed, "input-suspect"),
    ):
        found = judge(replace(APART, seeds={pair: seeds}, **layers))
        assert (found.name, found.which) == (name, None)
        assert ("upside down" in found.why) == (seeds.explained is not None)


@pytest.mark.parametrize(
    "few",
    [
        Disagreement(0.05, 1.0, varied=True),
        Disagreement(0.8, 0.2, varied=True),
        Disagreement(0.9, 1.0, varied=False),
    ],
)
def test_few_seeds_few_classes_or_a_constant_output_are_no_wrong_input(few: Disagreement) -> None:
    seen = replace(APART, compression_in_layer=False, seeds={"original-twin": few})
    assert judge(seen).name == "compression"


def test_there_is_no_verdict_without_repeats() -> None:
    once = replace(APART.device, labels=(1, 1), outputs=(5, 5))
    with pytest.raises(ValueError, match="no verdict without 3 answers"):
        judge(replace(APART, device=once))


@st.composite
def tables(draw: st.DrawFn) -> Evidence:
    label, answered = st.none() | st.integers(0, CLASSES - 1), st.sampled_from("-0123")
    evidence = table(
        draw(label),
        "".join(draw(answered) for _ in SETS),
        draw(label),
        draw(st.sampled_from(SETS)),
        "".join(draw(answered | st.just(".")) for _ in SETS),
        draw(st.just(-1) | label),
    )
    flags = st.booleans()
    return replace(evidence, same_runtime=draw(flags), same_machine=draw(flags))


@given(tables())
def test_any_table_has_a_verdict_that_fits_the_labels(evidence: Evidence) -> None:
    verdict = judge(evidence)
    assert verdict.name in get_args(Name)
    assert verdict.why
    assert "\n" not in verdict.why
    json.dumps(asdict(verdict), allow_nan=False)
    f = None if evidence.original is None else evidence.original.label
    h, g = evidence.twin.label, evidence.device.label
    if verdict.name in ("kernel", "several"):
        assert convert(verdict.which, Which | None) == verdict.which
        assert h != g
    if verdict.name == "compression":
        assert h == g
    if verdict.name == "none":
        assert h == g
        assert evidence.original is None or f == g
    if verdict.shares is not None:
        shares = verdict.shares
        assert shares.compression + shares.kernel == pytest.approx(1.0)
        assert min(shares.compression, shares.kernel) >= 0.0


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
    one, same = judge(other), judge(evidence)
    assert (one.name, one.which) == (same.name, same.which)


# Values, objects and masks.


def answered(arm: Arm, answer: Answer, kernels: Kernels = "xnnpack") -> Vote:
    """A vote whose answers have no labels, and always the same outputs."""
    mode = ExecutionMode(arm, None if arm is Arm.ORIGINAL else kernels, 1)
    return Vote(mode, (0,) * 3, (hash(repr(answer)) & 0xFFFF,) * 3, answer=answer)


def of_arms(original: Answer, twin: Answer, device: Answer, **fields: Any) -> Evidence:
    votes = map(answered, (Arm.ORIGINAL, Arm.TWIN, Arm.DEVICE), (original, twin, device))
    first, second, third = votes
    return Evidence(first, second, (), third, recorded=(0,) * 3, **fields)


def value(one: float) -> Answer:
    nothing, values = np.empty(0), np.array([[one]], np.float32)
    measure = Measure(0.1, "absolute")
    return ValueAnswer(0, False, nothing, nothing, values=values, measure=measure)


def of_values(original: float, twin: float, others: float, device: float) -> Evidence:
    """The twin is XNNPACK, the host's other kernels give the same, and the device is built in."""
    evidence = of_arms(value(original), value(twin), value(device))
    host = [answered(Arm.TWIN, value(others), one) for one in SETS[1:]]
    on_device = answered(Arm.DEVICE, value(device), "builtin")
    return replace(evidence, host=(evidence.twin, *host), device=on_device)


def test_values_are_compared_by_their_distance() -> None:
    for evidence, name, which, shares, why in (
        (of_values(0.95, 1.0, 1.0, 1.0), "none", None, None, ""),
        (
            of_values(0.5, 1.0, 1.0, 1.0),
            *("compression", None, MarginShares(1.0, 0.0)),
            "the distance between the device's values and the original's is 0.5, and between the"
            " device's and the twin's 0",
        ),
        (
            of_values(1.0, 1.0, 1.5, 1.5),
            *("kernel", "delegate", None),
            "the host does as the device with builtin kernels",
        ),
        (
            of_values(0.5, 1.0, 1.5, 1.5),
            *("several", "delegate", MarginShares(0.5, 0.5)),
            "the distance between the twin's values and the original's is 0.5, and between the"
            " device's and the twin's 0.5",
        ),
    ):
        found = judge(evidence)
        assert (found.name, found.which) == (name, which)
        assert shares in (None, found.shares)
        assert found.why.startswith(why)


def faces(*scores: float) -> Answer:
    rows = [(n / 4, 0.1, n / 4 + 0.2, 0.3, score, 0.0) for n, score in enumerate(scores)]
    return answer_of(FACES, *rows)


def of_faces(twin: Answer, device: Answer) -> Evidence:
    return of_arms(faces(0.875, 0.75), twin, device, classes=("face",), decoder=FACES)


def test_objects_are_told_by_who_agrees() -> None:
    """What compression alone changed is all its share, also where the device is less sure."""
    one = faces(0.875, 0.25)
    found = of_faces(one, one)
    for evidence, why in (
        (found, "twin and device agree"),
        (of_faces(faces(), one), "no two arms agree; "),
        (
            shaky(found, labels=(0, None, 0)),
            "the device answered something, nothing, something in turn",
        ),
    ):
        assert judge(evidence).why.startswith(why)
    unsure = of_faces(one, faces(0.625, 0.25))
    assert (judge(unsure).name, judge(unsure).shares) == ("compression", MarginShares(1.0, 0.0))
    failed = replace(shaky(unsure, failure="crash", answer=None), recorded=())
    assert judge(failed).shares is None


@pytest.mark.parametrize(("grade", "which"), [("spread", None), ("faulty", "faulty"), (None, None)])
def test_ordinary_rounding_is_not_blamed_for_a_file_that_fails(grade: Any, which: str) -> None:
    failing = shaky(table(0, "---", None), failure="crash")
    twin = replace(failing.twin, failure="crash")
    found = judge(replace(failing, twin=twin, compression_as=grade))
    assert (found.name, found.which) == ("compression", which)


def test_masks_are_said_by_their_mean_iou_and_no_class_is_named() -> None:
    half, quarter = np.zeros((2, 1, 1, 4, 4, 1), np.float32)
    half.ravel()[:8] = quarter.ravel()[:4] = 1.0
    ((more,), (less,)) = (MASKS.read(RawBatch(scores)) for scores in (half, quarter))
    settings = {"classes": ("background", "person"), "decoder": MASKS}
    evidence = of_arms(more, less, less, **settings)
    assert judge(evidence).why == (
        "the mean IoU between the device's mask and the original's is 0.5833, and between the"
        " device's and the twin's 1"
    )
    assert judge(of_arms(less, less, less, **settings)).why == "no two arms deviate"
    crashed = judge(replace(evidence, recorded=(None,) * 3))
    assert crashed.why.startswith("the device now answers something, and nothing")


def test_frames_too_many_for_joint_scores_share_their_own() -> None:
    """Of 40 frames one is decided otherwise; a quarter of its change was made by the kernels."""

    def frames(score: float) -> Answer:
        tensor = Tensor("out", (1, 2), "float32")
        rows = np.array([[3.0, 0.0]] * 39 + [[score, 0.0]], np.float32)
        return joint_answer(list(ClassDecoder((tensor,), 0, "logits").read(RawBatch(rows))))

    evidence = of_arms(*map(frames, (2.0, -1.0, -2.0)))
    shares = judge(replace(evidence, host=(evidence.twin,))).shares
    assert shares is not None
    assert (shares.compression, shares.kernel) == pytest.approx((0.75, 0.25))
