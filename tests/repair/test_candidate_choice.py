"""Tests of edgeflare.repair.candidate_choice: what is tried, set aside, and what surely gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.devices.device import Device
from edgeflare.errors import UserError
from edgeflare.repair import candidate_choice
from edgeflare.repair.candidate_choice import CandidateChoice, surely_gains
from edgeflare.repair.cost_limits import DEFAULT
from edgeflare.repair.judging.judged_inputs import JudgedSet
from edgeflare.repair.repair_candidate import CandidateMaker, Method, NoCandidate, RepairCandidate
from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.repair_progress import StepProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.stored_candidates import StoredCandidates
from fitted_networks import judged
from judgements import judgement
from tampering import COMPRESSED

REQUEST = RepairRequest("auto", "float", False, "none", "none", None)


def same(_progress: StepProgress) -> Sequence[RepairCandidate]:
    return (RepairCandidate("same", COMPRESSED.read_bytes(), None),)


def refused(_progress: StepProgress) -> Sequence[RepairCandidate]:
    raise UserError("the run has 3 triggering inputs")


def nothing(_progress: StepProgress) -> Sequence[RepairCandidate]:
    raise NoCandidate("no shift gains anything", {"shifts": {"folds": 5}})


def choice(
    opened: OpenedPair,
    sets: Mapping[str, JudgedSet],
    folder: Path,
    max_size: str = "none",
    max_latency: str = "none",
) -> CandidateChoice:
    request = replace(REQUEST, max_size=max_size, max_latency=max_latency)
    stored = StoredCandidates(folder, {}, resume=False)
    return CandidateChoice(opened, request, sets, stored, lambda _name, _done, _total: None)


def test_a_gain_is_sure_where_chance_does_not_explain_it() -> None:
    assert surely_gains(judgement(20, 5))
    assert not surely_gains(judgement(4, 3))
    assert not surely_gains(judgement(5, 20))
    assert not surely_gains(judgement(0, 0))


@pytest.mark.slow
def test_what_cannot_be_made_is_set_aside_beside_others(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], tmp_path: Path
) -> None:
    makers = [
        CandidateMaker("same", "bias", same),
        CandidateMaker("refused", "ranges", refused),
        CandidateMaker("shifts", "shifts", nothing),
    ]
    made = choice(opened, sets, tmp_path).best(makers)
    tried = made.tried
    assert made.chosen is None
    assert [one.name for one in tried] == ["same", "refused", "shifts"]
    assert tried[0].judgement is not None
    assert tried[0].judgement.score == 1.0
    assert [one.set_aside for one in tried[1:]] == [
        "the run has 3 triggering inputs",
        "no shift gains anything",
    ]
    assert tried[2].details == {"shifts": {"folds": 5}}


@pytest.mark.slow
def test_where_nothing_can_be_made_the_first_reason_is_an_error(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], tmp_path: Path
) -> None:
    makers = [CandidateMaker(name, "shifts", refused) for name in ("one", "two")]
    with pytest.raises(UserError, match=r"^the run has 3 triggering inputs$"):
        choice(opened, sets, tmp_path).best(makers)
    made = choice(opened, sets, tmp_path).best([CandidateMaker("shifts", "shifts", nothing)])
    assert made.tried[0].set_aside == "no shift gains anything"


def made(
    files: Sequence[tuple[str, bytes]], method: Method, instead_of: Method | None = None
) -> CandidateMaker:
    """What makes candidates of files that are there already."""

    def make(_progress: StepProgress) -> Sequence[RepairCandidate]:
        return [RepairCandidate(name, content, None, {"plan": name}) for name, content in files]

    return CandidateMaker("+".join(name for name, _ in files), method, make, instead_of)


@pytest.mark.slow
def test_all_candidates_of_a_plan_are_judged_with_their_cost(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], tmp_path: Path
) -> None:
    network = judged("example").network
    same, original = ("same", network.content), ("original", network.original)
    found = choice(opened, sets, tmp_path, "+200%").best(
        [
            made([same, original], "precision"),
            made([("needless", network.content)], "bias", instead_of="precision"),
            made([("needed", network.content)], "bias", instead_of="weights-only"),
        ]
    )
    tried = found.tried
    assert [one.name for one in tried] == ["same", "original", "needed"]
    assert [one.details for one in tried] == [{"plan": one.name} for one in tried]
    assert [[*one.needs] for one in tried] == [[], ["--max-size"], []]
    assert all(one.ratio is not None and one.ratio > 0 and one.judgement for one in tried)
    assert found.chosen is None
    assert found.offered is not None
    assert (found.offered[0].content, found.offered[1]) == (network.original, tried[1])


@pytest.mark.slow
def test_what_was_tried_is_not_tried_again(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], tmp_path: Path
) -> None:
    content = judged("example").network.content
    before = choice(opened, sets, tmp_path).best([made([("same", content)], "bias")]).tried
    stored = StoredCandidates(tmp_path, {}, resume=True)
    again = CandidateChoice(opened, REQUEST, sets, stored, lambda _name, _done, _total: None)
    makers = [CandidateMaker("same", "bias", refused), made([("other", content)], "ranges")]
    after = again.best(makers).tried
    assert after[:1] == before
    assert [one.name for one in after] == ["same", "other"]


def timed(*ratios: tuple[float, float]) -> Callable[..., Cost]:
    """What measures the ends of the interval of each candidate in turn, and then fails."""
    left = iter(ratios)

    def measured(device: Device, *_: object) -> Cost:
        low, high = next(left)
        return Cost(device.profile.name, 1, 1, 1e-4, 1e-4, (low + high) / 2, low, high, 10)

    return measured


@pytest.mark.slow
def test_a_candidate_is_refused_where_the_whole_interval_is_above_and_alike_on_resuming(
    opened: OpenedPair,
    sets: Mapping[str, JudgedSet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file with the operators of the model before is not even measured."""
    network = judged("example").network
    plans = [
        made([("same", network.content)], "bias"),
        made([("slow", network.original)], "weights-only"),
        made([("rough", network.original)], "precision", instead_of="weights-only"),
    ]
    monkeypatch.setattr(candidate_choice, "cost_on", timed((1.25, 3.0), (1.0, 3.0)))
    first = choice(opened, sets, tmp_path, max_latency=DEFAULT).best(plans)
    monkeypatch.setattr(candidate_choice, "cost_on", timed())  # a call would raise StopIteration
    stored = StoredCandidates(tmp_path, {}, resume=True)
    again = replace(choice(opened, sets, tmp_path / "other", max_latency=DEFAULT), stored=stored)
    for found in (first, again.best(plans)):
        assert [(one.name, one.ratio, one.needs) for one in found.tried] == [
            ("same", 1.0, {}),
            ("slow", 2.125, {"--max-latency": "+112.5%"}),
            ("rough", 2.0, {}),
        ]
        assert found.tried == first.tried
        assert found.tried[1].set_aside == "it needs --max-latency +112.5%"
        assert found.chosen is not None
        assert found.chosen.name == "rough"
        assert found.offered is None  # it gains no more than the chosen one


@pytest.mark.slow
def test_every_device_holds_to_the_limit_of_time(
    opened: OpenedPair,
    sets: Mapping[str, JudgedSet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = replace(opened, devices=opened.devices * 2)
    monkeypatch.setattr(candidate_choice, "cost_on", timed((0.5, 0.75), (1.25, 1.5)))
    limited = choice(both, sets, tmp_path, max_latency=DEFAULT)
    found = limited.best([made([("original", judged("example").network.original)], "precision")])
    assert [one.ratio for one in found.tried[0].costs] == [0.625, 1.375]
    assert (found.chosen, found.tried[0].needs) == (None, {"--max-latency": "+37.5%"})
    assert found.offered is not None
