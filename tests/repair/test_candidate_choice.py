"""Tests of edgeflare.repair.candidate_choice: what is tried, set aside, and what surely gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.errors import UserError
from edgeflare.repair import candidate_choice
from edgeflare.repair.candidate_choice import CandidateChoice, surely_gains
from edgeflare.repair.judging.judged_inputs import JudgedSet
from edgeflare.repair.repair_candidate import CandidateMaker, Method, NoCandidate, RepairCandidate
from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.repair_progress import StepProgress
from edgeflare.repair.repair_request import RepairRequest
from edgeflare.repair.stored_candidates import StoredCandidates
from fitted_networks import judged
from judgements import judgement
from tampering import COMPRESSED

REQUEST = RepairRequest("auto", "float", False, None, None, None)


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
    max_size: str | None = None,
    max_latency: str | None = None,
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
    tried, chosen = choice(opened, sets, tmp_path).best(makers)
    assert chosen is None
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
    tried, _ = choice(opened, sets, tmp_path).best([CandidateMaker("shifts", "shifts", nothing)])
    assert tried[0].set_aside == "no shift gains anything"


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
    tried, best = choice(opened, sets, tmp_path, "+200%").best(
        [
            made([same, original], "precision"),
            made([("needless", network.content)], "bias", instead_of="precision"),
            made([("needed", network.content)], "bias", instead_of="weights-only"),
        ]
    )
    assert [one.name for one in tried] == ["same", "original", "needed"]
    assert [one.details for one in tried] == [{"plan": one.name} for one in tried]
    scored = [one.name for one in tried if one.judgement is not None]
    assert scored == ["same", "needed"]  # the original is larger than the limit allows
    assert all(one.ratio is not None and one.ratio > 0 for one in tried if one.judgement)
    assert best is None


@pytest.mark.slow
def test_limits_that_exclude_everything_name_the_nearest(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], tmp_path: Path
) -> None:
    larger = judged("example").network.original
    limited = choice(opened, sets, tmp_path, max_size="+0%")
    says = r"^the limits exclude every candidate: larger needs --max-size \+[\d.]+%$"
    plan = made([("largest", larger + bytes(100)), ("larger", larger)], "precision")
    with pytest.raises(UserError, match=says):
        limited.best([plan, CandidateMaker("refused", "ranges", refused)])


@pytest.mark.slow
def test_what_was_tried_is_not_tried_again(
    opened: OpenedPair, sets: Mapping[str, JudgedSet], tmp_path: Path
) -> None:
    content = judged("example").network.content
    before, _ = choice(opened, sets, tmp_path).best([made([("same", content)], "bias")])
    stored = StoredCandidates(tmp_path, {}, resume=True)
    again = CandidateChoice(opened, REQUEST, sets, stored, lambda _name, _done, _total: None)
    makers = [CandidateMaker("same", "bias", refused), made([("other", content)], "ranges")]
    after, _ = again.best(makers)
    assert after[:1] == before
    assert [one.name for one in after] == ["same", "other"]


@pytest.mark.slow
def test_time_excludes_no_candidate_with_the_operators_of_the_model_before(
    opened: OpenedPair,
    sets: Mapping[str, JudgedSet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy device it would seem to take longer, so it is not measured."""
    slow = Cost("emulated-xnnpack", 1, 1, 1.0, 2.0, 2.0)
    monkeypatch.setattr(candidate_choice, "cost_on", lambda *_: slow)
    network = judged("example").network
    limited = choice(opened, sets, tmp_path, max_latency="+5%")
    tried, _ = limited.best([made([("same", network.content)], "bias")])
    assert [(one.ratio, one.set_aside) for one in tried] == [(1.0, None)]
    with pytest.raises(UserError, match=r"--max-latency \+100%"):
        limited.best([made([("original", network.original)], "precision")])
