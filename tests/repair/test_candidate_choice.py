"""Candidates of a repair: which are planned, what they cost, and which is chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.core.answer import Answer
from edgeflare.devices.device import Device
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.repair import candidate_check, repair_cost
from edgeflare.repair.candidate_choice import (
    CandidateChoice,
    gain_beyond,
    pareto_front,
    surely_gains,
)
from edgeflare.repair.candidate_details import CandidateDetails, PrecisionDetails
from edgeflare.repair.candidate_store import StoredCandidates
from edgeflare.repair.fitting.quantizer import weights_only
from edgeflare.repair.judging.judgement_inputs import JudgedSet, SetName
from edgeflare.repair.repair_candidate import (
    CandidatePlan,
    EnoughTried,
    NoCandidate,
    RepairCandidate,
    StepProgress,
)
from edgeflare.repair.repair_cost import (
    DEFAULT_LIMIT,
    LEAST_SECONDS,
    LEAST_TURNS,
    LONGER,
    MOST_SECONDS,
    MOST_TURNS,
    CostLimit,
    Latency,
    latency_limit,
    least_limit,
    measure,
    size_limit,
)
from edgeflare.repair.repair_methods import (
    BY_LABELS,
    METHODS,
    allows_shifts,
    candidate_plans,
)
from edgeflare.repair.repair_request import RepairRequest, Target
from fitted_networks import judged
from judgements import judgement
from repaired_example import repair_by_shifts
from stored_repairs import REPAIR
from tampering import COMPRESSED, constant_of, with_constant

Read = Callable[[str], CostLimit | None]
Choose = Callable[..., CandidateChoice]


def asked(method: str, target: Target = "float", *, in_place: bool = False) -> RepairRequest:
    return RepairRequest(method, target, in_place, "none", "none", None)


def test_auto_tries_all_that_a_target_allows() -> None:
    every = candidate_plans(asked("auto"))
    assert len({one.name for one in every}) == len(every)
    integers = candidate_plans(asked("auto", "int8-only"))
    assert {one.name for one in integers} < {one.name for one in every}
    assert all(METHODS[one.method].integers for one in integers)
    in_place = candidate_plans(asked("auto", in_place=True))
    assert all(METHODS[one.method].in_place for one in in_place)
    assert {one.method for one in in_place} == {
        "ranges",
        "rounding",
        "equalization",
        "learning",
    }


ROUNDED = {"rounding": "ranges"}
EQUALIZED = {"equalization+ranges+rounding": "rewrites"}


@pytest.mark.parametrize(
    ("request_", "instead_of"),
    [
        (asked("auto"), {**ROUNDED, **EQUALIZED, "precision-search": "weights-only"}),
        (asked("auto", "int8-only"), {**ROUNDED, **EQUALIZED}),
        (asked("auto", in_place=True), ROUNDED),
        (asked("precision"), {}),
    ],
)
def test_auto_tries_some_only_in_the_place_of_a_method_that_it_tries(
    request_: RepairRequest, instead_of: dict[str, str]
) -> None:
    plans = candidate_plans(request_)
    assert {one.name: one.instead_of for one in plans if one.instead_of} == instead_of


def test_each_method_has_candidates() -> None:
    for method in METHODS:
        assert {one.method for one in candidate_plans(asked(method))} == {method}
    for method in ("shifts", *BY_LABELS):
        assert candidate_plans(asked(method)) == []


def test_what_takes_least_time_is_tried_first() -> None:
    assert [one.name for one in candidate_plans(asked("auto"))] == [
        *("rewrites", "ranges", "calibration", "calibration+ranges"),
        *("float-head", "ranges+float-head", "float-tail", "weights-only"),
        *("ranges+rounding", "rounding", "equalization+ranges+rounding", "rounding+weights-only"),
        *("precision-search", "learning"),
    ]


@pytest.mark.parametrize(
    ("target", "in_place", "says"),
    [
        ("float", True, "rewrites the model: leave --in-place away"),
        ("int8-only", False, "computes in float, which --target int8-only cannot"),
    ],
)
@pytest.mark.parametrize("method", ["precision", "shifts"])
def test_limits_that_exclude_everything_say_the_nearest(
    method: str, target: Target, in_place: bool, says: str
) -> None:
    with pytest.raises(UserError, match=f"^--method {method} {says}"):
        candidate_plans(asked(method, target, in_place=in_place))
    assert not allows_shifts(asked(method, target, in_place=in_place))


def test_shifts_are_allowed_where_operators_in_float_may_be_appended() -> None:
    assert allows_shifts(asked("auto"))
    assert allows_shifts(asked("shifts"))
    assert not allows_shifts(asked("ranges"))
    assert not allows_shifts(asked("auto", "int8-only"))
    assert not allows_shifts(asked("auto", in_place=True))


# Limits.


@pytest.mark.parametrize("read", [size_limit, latency_limit])
def test_a_limit_is_a_percentage_and_five_unless_none_lifts_it(read: Read) -> None:
    for text in ("+1%", "1%", " + 1 % ", "1.0%"):
        assert read(text) == CostLimit(share=0.01)
    assert read(DEFAULT_LIMIT) == CostLimit(share=0.05)
    assert read("none") is read(" None ") is None


@pytest.mark.parametrize(
    ("read", "text", "extra"),
    [
        *((size_limit, *one) for one in (("+2KiB", 2048), ("2 kib", 2048), ("0B", 0))),
        (size_limit, "+.5MiB", 2**19),
        *((latency_limit, *one) for one in (("+20us", 2e-5), ("20µs", 2e-5), ("1.5ms", 1.5e-3))),
    ],
)
def test_it_may_be_in_bytes_or_seconds(read: Read, text: str, extra: float) -> None:
    limit = read(text)
    assert limit is not None
    assert limit.allows(1000, 1000 + 0.999 * extra)
    assert not limit.allows(1000, 1000 + 1.001 * extra + 1e-9)


SIZE = r"--max-size .* is no limit: .* B, KiB, MiB, .* \+2KiB, or none"
LATENCY = r"--max-latency .* is no limit: .* us, µs, ms, s, .*20us, or none"


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        *((size_limit, text, SIZE) for text in ("", "%", "-1%", "1", "+1e3%", "1 ms", "two")),
        *((size_limit, text, SIZE) for text in ("+1%%", "9" * 400 + "%")),
        *((latency_limit, text, LATENCY) for text in ("2KiB", "+5", "nan%", "inf us")),
    ],
)
def test_what_is_no_limit_is_refused(read: Read, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read(text)


@given(st.floats(1e-6, 1e9), st.floats(0.5, 3.0))
def test_the_least_limit_allows_the_candidate_and_a_lower_one_does_not(
    before: float, factor: float
) -> None:
    assert (least_limit(100, 90), least_limit(43_800, 44_100)) == ("+0%", "+0.7%")
    after = before * factor
    text = least_limit(before, after)
    lower = f"{float(text[1:-1]) - 0.2:.1f}%"
    least, less = size_limit(text), None if lower.startswith("-") else size_limit(lower)
    assert least is not None
    assert least.allows(before, after)
    assert less is None or not less.allows(before, after)


# What a candidate costs.


class TimedDevice:
    """A device on which batches take what a test says, and no other time passes.

    Attributes:
        before: seconds of a batch of the model before, by the number of the batch.
        factor: seconds of the model after over them, by the number of the batch.
        opening: factor of the time of a model for as long as it is open, by the number of its
            opening.
        batches: names of the models, in the order in which they ran batches.

    """

    profile = SimpleNamespace(name="timed", kernels="builtin", threads=1)

    def __init__(
        self,
        before: Callable[[int], float],
        factor: Callable[[int], float],
        opening: Callable[[int], float] = lambda _: 1.0,
    ) -> None:
        self.before, self.factor, self.opening = before, factor, opening
        self.opened, self.batches, self.now = 0, list[str](), 0.0

    def open_as(self, file: Path, *_: object) -> Any:
        slower, self.opened = self.opening(self.opened), self.opened + 1
        return SimpleNamespace(submit=partial(self.submit, file.stem, slower), close=lambda: None)

    def submit(self, model: str, slower: float, rows: NDArray[np.int8]) -> Any:
        number = len(self.batches)
        seconds = slower * self.before(number)
        seconds *= self.factor(number) if model == "after" else 1.0
        if len(rows) > 1:
            self.batches.append(model)
            self.now += seconds
        return SimpleNamespace(result=lambda: SimpleNamespace(busy_seconds=seconds))


@pytest.fixture
def cost_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Latency]:
    before, after = tmp_path / "before.tflite", tmp_path / "after.tflite"

    def measured(device: TimedDevice, limit: str = "none") -> Latency:
        monkeypatch.setattr(repair_cost, "monotonic", lambda: device.now)
        rows = np.zeros((1, 2), np.int8)
        return measure(cast("Device", device), (before, after), rows, limit=latency_limit(limit))

    return measured


@pytest.mark.parametrize(("seconds", "batches"), [(0.002, LEAST_SECONDS / 0.002), (0.5, 20)])
def test_short_batches_are_more(
    seconds: float, batches: float, cost_of: Callable[..., Latency]
) -> None:
    device = TimedDevice(lambda _: seconds, lambda _: 1.0)
    cost = cost_of(device)
    assert cost.turns == LEAST_TURNS
    assert len(device.batches) == pytest.approx(batches, abs=2 * LEAST_TURNS)
    assert (cost.ratio_low, cost.ratio, cost.ratio_high) == (1.0, 1.0, 1.0)


def test_how_a_model_was_opened_excludes_nothing(cost_of: Callable[..., Latency]) -> None:
    """A third of the openings take 1.4 times as long; an interval within one opening is narrow."""
    rng = np.random.default_rng(0)
    cost = cost_of(
        TimedDevice(
            lambda _: 0.002, lambda _: 1.0, opening=lambda _: 1.4 if rng.random() < 1 / 3 else 1.0
        )
    )
    limit = latency_limit(DEFAULT_LIMIT)
    assert limit is not None
    assert not cost.exceeds(limit)
    assert cost.ratio_low < 1.0 < cost.ratio_high


def test_drift_of_the_device_cancels(cost_of: Callable[..., Latency]) -> None:
    """It slows down by 4 % a batch: whichever model came second each time would seem slower."""
    device = TimedDevice(lambda number: 0.1 * 1.04**number, lambda _: 1.0)
    cost = cost_of(device, "+3%")
    assert cost.ratio == pytest.approx(1.0, abs=0.002)
    turns = {tuple(device.batches[turn : turn + 2]) for turn in range(0, 20, 2)}
    assert turns == {("before", "after"), ("after", "before")}


def noisy(median: float, spread: float) -> Callable[[int], float]:
    """A ratio about its median, half of the time above it."""
    rng = np.random.default_rng(0)
    return lambda _: float(median * np.exp(rng.normal(0.0, spread)))


@pytest.mark.parametrize(
    ("median", "spread", "exceeds"),
    [(2.9, 0.1, True), (1.08, 0.01, True), (1.08, 0.5, False), (1.0, 0.5, False)],
)
def test_a_limit_is_exceeded_where_the_whole_interval_lies_above(
    median: float, spread: float, *, exceeds: bool, cost_of: Callable[..., Latency]
) -> None:
    limit = latency_limit(DEFAULT_LIMIT)
    assert limit is not None
    device = TimedDevice(lambda _: 0.05, noisy(median, spread))
    cost = cost_of(device, DEFAULT_LIMIT)
    assert cost.exceeds(limit) is exceeds
    assert cost.ratio_low <= cost.ratio <= cost.ratio_high
    assert cost.turns >= LEAST_TURNS
    undecided = cost.ratio_low < 1.05 < cost.ratio_high
    assert (device.now > 0.8 * MOST_SECONDS) is undecided


@pytest.mark.parametrize(
    ("median", "spread", "turns"),
    [(1.05, 0.02, MOST_TURNS), (1.05, 0.6, LONGER * MOST_TURNS), (2.9, 0.2, LEAST_TURNS)],
)
def test_a_slow_model_is_measured_in_more_turns_where_they_do_not_decide(
    median: float, spread: float, turns: int, cost_of: Callable[..., Latency]
) -> None:
    """The most where the interval is wide."""
    cost = cost_of(TimedDevice(lambda _: 1.0, noisy(median, spread)), DEFAULT_LIMIT)
    assert cost.turns == turns


def test_batches_that_other_load_interrupts_say_nothing(cost_of: Callable[..., Latency]) -> None:
    """Most of them take up to twenty times as long, and the model takes 1.1 times as long."""
    rng = np.random.default_rng(0)

    def seconds(_: int) -> float:
        return 0.002 * (1.0 if rng.random() < 0.3 else float(rng.uniform(1.0, 20.0)))

    cost = cost_of(TimedDevice(seconds, lambda _: 1.1), DEFAULT_LIMIT)
    assert cost.ratio == pytest.approx(1.1, rel=0.01)
    limit = latency_limit(DEFAULT_LIMIT)
    assert limit is not None
    assert cost.exceeds(limit)


VALUES = st.tuples(*[st.integers(0, 4).map(float)] * 3)


def betters(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


@given(st.lists(VALUES, max_size=12))
def test_a_point_is_on_the_front_where_no_other_one_betters_it(
    values: list[tuple[float, ...]],
) -> None:
    """Each one beside it is bettered by one on it."""
    points = {str(at): one for at, one in enumerate(values)}
    front = pareto_front(points)
    for name, one in points.items():
        bettered = any(betters(other, one) for other in values)
        assert (name in front) is not bettered
        assert not bettered or any(betters(points[on], one) for on in front)
    assert [points[name] for name in front] == sorted(points[name] for name in front)


# The choice.

REQUEST = asked("auto")
SHIFTS = CandidateDetails(
    shifts=repair_by_shifts().candidates[0].details.shifts,
)


def same(_progress: StepProgress) -> Sequence[RepairCandidate]:
    return (RepairCandidate("same", COMPRESSED.read_bytes(), None),)


def refused(_progress: StepProgress) -> Sequence[RepairCandidate]:
    raise UserError("the run has 3 triggering inputs")


def nothing(_progress: StepProgress) -> Sequence[RepairCandidate]:
    raise NoCandidate("no shift gains anything", SHIFTS)


@pytest.fixture
def choice(opened: OpenedPair, sets: Mapping[SetName, JudgedSet], tmp_path: Path) -> Choose:
    def made(
        opened: OpenedPair = opened, *, resume: bool = False, **limits: str
    ) -> CandidateChoice:
        stored = StoredCandidates(tmp_path, REPAIR, resume=resume)
        request = structs.replace(REQUEST, **limits)
        return CandidateChoice(opened, request, sets, stored, lambda _name, _done, _total: None)

    return made


def test_a_gain_is_sure_where_chance_does_not_explain_it() -> None:
    counts = ((20, 5), (4, 3), (5, 20), (0, 0))
    assert [surely_gains(judgement(*one)) for one in counts] == [True, False, False, False]


@pytest.mark.slow
def test_what_cannot_be_made_is_set_aside_beside_others(choice: Choose) -> None:
    makers = [
        CandidatePlan("same", "rounding", same),
        CandidatePlan("refused", "ranges", refused),
        CandidatePlan("shifts", "shifts", nothing),
    ]
    made = choice().best(makers)
    tried = made.tried
    assert made.chosen is None
    assert [one.name for one in tried] == ["same", "refused", "shifts"]
    assert tried[0].sets is not None
    assert tried[0].sets.score == tried[0].score == 1.0
    assert tried[0].file == "candidates/same.tflite"
    assert [one.set_aside for one in tried[1:]] == [
        "the run has 3 triggering inputs",
        "no shift gains anything",
    ]
    assert tried[2].details == SHIFTS


@pytest.mark.slow
def test_where_nothing_can_be_made_the_first_reason_is_an_error(choice: Choose) -> None:
    makers = [CandidatePlan(name, "shifts", refused) for name in ("one", "two")]
    with pytest.raises(UserError, match=r"^the run has 3 triggering inputs$"):
        choice().best(makers)
    made = choice().best([CandidatePlan("shifts", "shifts", nothing)])
    assert made.tried[0].set_aside == "no shift gains anything"


def mending(*places: int) -> dict[SetName, list[Answer]]:
    """Answers to 40 inputs, of which those in some places are as the original's, 0."""
    labels = [int(place not in places) for place in range(40)]
    answers = [Answer(label, False, np.eye(2)[label], np.eye(2)[label]) for label in labels]
    return {"seeds": answers, "sampled": answers}


def test_what_is_offered_gains_more_than_what_is_written_on_the_inputs_that_judge() -> None:
    sets: dict[SetName, JudgedSet] = {
        name: JudgedSet(np.zeros((40, 1)), np.arange(40), None, original, mending()[name])
        for name, original in mending(*range(40)).items()
    }
    written = mending(*range(30))
    assert gain_beyond(sets, mending(*range(10, 40)), None) is not None
    assert gain_beyond(sets, mending(*range(10, 40)), written) is None
    better = gain_beyond(sets, mending(*range(40)), written)
    assert better is not None
    assert better.sampled.mended == 40


def told(name: str) -> CandidateDetails:
    return CandidateDetails(precision=PrecisionDetails(promoted=(name,)))


def made(
    files: Sequence[tuple[str, bytes]], method: str, instead_of: str | None = None
) -> CandidatePlan:
    """What makes candidates of files that are there already."""

    def make(_progress: StepProgress) -> Sequence[RepairCandidate]:
        before = judged("example").network.content
        return [
            RepairCandidate(name, content, None, told(name), in_place=len(content) == len(before))
            for name, content in files
        ]

    return CandidatePlan("+".join(name for name, _ in files), method, make, instead_of=instead_of)


@pytest.mark.slow
def test_all_candidates_of_a_plan_are_judged_with_their_cost(choice: Choose) -> None:
    """A plan in the place of a method is tried where that gains nothing within the limits."""
    network = judged("example").network
    same, original = ("same", network.content), ("original", network.original)
    found = choice(max_size="+200%").best(
        [
            made([same, original], "precision"),
            made([("needed", network.content)], "rounding", instead_of="precision"),
            made([("float", weights_only(network).content)], "weights-only"),
            made([("needless", network.content)], "rounding", instead_of="weights-only"),
        ]
    )
    tried = found.tried
    assert [one.name for one in tried] == ["same", "original", "needed", "float"]
    assert [one.details for one in tried] == [told(one.name) for one in tried]
    assert [[*one.needs] for one in tried] == [[], ["--max-size"], [], []]
    assert all(one.latency_ratio is not None and one.latency_ratio > 0 for one in tried)
    assert all(one.sets is not None for one in tried)
    assert found.chosen is not None
    assert found.chosen.name == "float"
    assert found.offered is not None
    assert (found.offered[0].content, found.offered[1]) == (network.original, tried[1])


@pytest.mark.slow
def test_a_file_of_the_same_length_is_checked_unless_it_was_changed_in_its_place(
    choice: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate_check, "candidate_fault", lambda _pair, _seeds: "it crashes")
    anew = RepairCandidate("calibration", COMPRESSED.read_bytes(), None)
    check = choice().check
    assert check.fault(anew) == "it crashes"
    assert check.fault(replace(anew, in_place=True)) is None


def test_of_equal_gains_the_first_is_chosen(choice: Choose) -> None:
    original = judged("example").network.original
    plans = [made([(name, original)], "precision") for name in ("one", "two")]
    found = choice(max_size="none", max_latency="none").best(plans)
    assert found.chosen is not None
    assert found.chosen.name == "one"


@pytest.mark.slow
def test_what_was_tried_is_not_tried_again(choice: Choose) -> None:
    content = judged("example").network.content
    before = choice().best([made([("same", content)], "rounding")]).tried
    makers = [CandidatePlan("same", "rounding", refused), made([("other", content)], "ranges")]
    after = choice(resume=True).best(makers).tried
    assert after[:1] == before
    assert [one.name for one in after] == ["same", "other"]


@pytest.mark.slow
def test_of_those_tried_the_best_is_chosen_once_there_are_enough(choice: Choose) -> None:
    original = judged("example").network.original
    plans = [made([(name, original)], "precision") for name in ("one", "two")]

    def enough_of(name: str, at: int) -> CandidateChoice:
        def told(step: str, done: int, _total: int) -> None:
            if (step, done) == (name, at):
                raise EnoughTried

        return replace(choice(max_size="none", max_latency="none"), progress=told)

    found = enough_of("candidates", 1).best(plans)
    assert [one.name for one in found.tried] == ["one"]
    assert found.chosen is not None
    with pytest.raises(EnoughTried):
        enough_of("judged", 0).best(plans[1:])


def timed(*ratios: tuple[float, float]) -> Callable[..., Latency]:
    """What measures the ends of the interval of each candidate in turn, and then fails."""
    left = iter(ratios)

    def measured(device: Device, *_: object) -> Latency:
        low, high = next(left)
        return Latency(device.profile.name, 1e-4, 1e-4, (low + high) / 2, low, high, 10)

    return measured


@pytest.mark.slow
def test_a_candidate_is_refused_where_the_whole_interval_is_above_and_alike_on_resuming(
    choice: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with the operators of another takes its time, that of the model before too."""
    network = judged("example").network
    plans = [
        made([("same", network.content)], "rounding"),
        made([("slow", weights_only(network).content)], "weights-only"),
        made(
            [("rough", network.original), ("alike", network.original)],
            "precision",
            instead_of="weights-only",
        ),
    ]
    monkeypatch.setattr(candidate_check, "latency_on", timed((1.25, 3.0), (1.0, 3.0)))
    first = choice(max_latency=DEFAULT_LIMIT, max_size="none").best(plans)
    monkeypatch.setattr(candidate_check, "latency_on", timed())  # a call would raise StopIteration
    again = choice(resume=True, max_latency=DEFAULT_LIMIT, max_size="none")
    for found in (first, again.best(plans)):
        assert [(one.name, one.latency_ratio, one.needs) for one in found.tried] == [
            ("same", 1.0, {}),
            ("slow", 2.125, {"--max-latency": "+112.5%"}),
            ("rough", 2.0, {}),
            ("alike", 2.0, {}),
        ]
        assert found.tried == first.tried
        assert found.tried[1].set_aside == "it needs --max-latency +112.5%"
        assert found.chosen is not None
        assert found.chosen.name == "rough"
        assert found.offered is None  # it gains no more than the chosen one


@pytest.mark.slow
def test_turns_go_on_for_a_limit_that_is_to_be_decided_and_for_no_other(
    choice: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a chosen file takes that was not held to a limit is measured for the page alone."""
    limits: list[object] = []

    def measured(device: Device, *others: object) -> Latency:
        limits.append(others[-1])
        return timed((1.0, 1.0))(device)

    monkeypatch.setattr(candidate_check, "latency_on", measured)
    original = judged("example").network.original
    chosen = choice(max_latency="+7%", max_size="none")
    chosen.best([made([("original", original)], "precision")])
    chosen.check.measured(RepairCandidate("same", COMPRESSED.read_bytes(), None))
    assert limits == [CostLimit(share=0.07), None]


@pytest.mark.slow
def test_time_is_measured_only_where_it_can_decide(
    choice: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method that gains, and less than another candidate, is not what the limits exclude."""
    network = judged("example").network
    original = network.original
    alike = weights_only(network).content
    zeroed = with_constant(alike, constant_of(alike, 0, 0), np.zeros_like)
    files = [("worse", zeroed), ("best", original), ("behind", alike)]
    plans = [made([file], file[0]) for file in files]
    plans.append(made([("needless", original)], "rounding", instead_of="behind"))
    monkeypatch.setattr(candidate_check, "latency_on", timed((1.0, 1.0)))
    limits = {"max_latency": DEFAULT_LIMIT, "max_size": "none"}
    found = choice(**limits).best(plans)
    assert [(one.name, one.latency_ratio, one.set_aside) for one in found.tried] == [
        ("worse", None, "its time was not measured, since it does not surely gain"),
        ("best", 1.0, None),
        (
            "behind",
            None,
            "its time was not measured, since best gains as much or more within the limits",
        ),
    ]
    assert all(one.score is not None for one in found.tried)
    assert found.chosen is not None
    assert (found.chosen.name, found.offered, found.front) == ("best", None, ["best"])


@pytest.mark.slow
def test_the_best_of_all_is_timed_first_also_where_a_device_was_lost_before(
    choice: Choose, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = judged("example").network
    limits = {"max_latency": DEFAULT_LIMIT, "max_size": "none"}

    def lost(*_: object) -> Latency:
        raise InfrastructureError

    monkeypatch.setattr(candidate_check, "latency_on", lost)
    files = [("less", weights_only(network).content), ("best", network.original)]
    with pytest.raises(InfrastructureError):
        choice(**limits).best([made([file], "precision") for file in files])
    monkeypatch.setattr(candidate_check, "latency_on", timed((1.0, 1.0)))
    tried = [CandidatePlan(name, "precision", refused) for name, _ in files]
    found = choice(resume=True, **limits).best(tried)
    assert [(one.name, one.latency_ratio) for one in found.tried] == [("less", None), ("best", 1.0)]


@pytest.mark.slow
def test_every_device_holds_to_the_limit_of_time(
    choice: Choose, opened: OpenedPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = replace(opened, devices=opened.devices * 2)
    monkeypatch.setattr(candidate_check, "latency_on", timed((0.5, 0.75), (1.25, 1.5)))
    limited = choice(both, max_latency=DEFAULT_LIMIT)
    found = limited.best([made([("original", judged("example").network.original)], "precision")])
    assert [one.ratio for one in found.tried[0].latency] == [0.625, 1.375]
    assert (found.chosen, found.tried[0].needs) == (None, {"--max-latency": "+37.5%"})
    assert found.offered is not None
