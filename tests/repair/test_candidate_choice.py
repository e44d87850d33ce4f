"""Tests of edgeflare.repair.candidate_choice: which candidates are set aside, and which gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from edgeflare.campaign.opened_pair import OpenedPair
from edgeflare.errors import UserError
from edgeflare.repair.candidate_choice import CandidateChoice, surely_gains
from edgeflare.repair.candidate_plans import CandidateMaker, NoCandidate, RepairCandidate
from edgeflare.repair.judging.judged_inputs import JudgedSet
from edgeflare.repair.repair_progress import StepProgress
from edgeflare.repair.repair_request import RepairRequest
from judgements import judgement
from tampering import COMPRESSED

REQUEST = RepairRequest("auto", "float", False, None, None, None)


def same(_progress: StepProgress) -> Sequence[RepairCandidate]:
    return (RepairCandidate("same", COMPRESSED.read_bytes(), None),)


def refused(_progress: StepProgress) -> Sequence[RepairCandidate]:
    raise UserError("the run has 3 triggering inputs")


def nothing(_progress: StepProgress) -> Sequence[RepairCandidate]:
    raise NoCandidate("no shift gains anything", {"shifts": {"folds": 5}})


def choice(opened: OpenedPair, sets: Mapping[str, JudgedSet]) -> CandidateChoice:
    return CandidateChoice(opened, REQUEST, sets, lambda _name, _done, _total: None)


def test_a_gain_is_sure_where_chance_does_not_explain_it() -> None:
    assert surely_gains(judgement(20, 5))
    assert not surely_gains(judgement(4, 3))
    assert not surely_gains(judgement(5, 20))
    assert not surely_gains(judgement(0, 0))


@pytest.mark.slow
def test_what_cannot_be_made_is_set_aside_beside_others(
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    makers = [
        CandidateMaker("same", same),
        CandidateMaker("refused", refused),
        CandidateMaker("shifts", nothing),
    ]
    tried, chosen = choice(opened, sets).best(makers)
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
    opened: OpenedPair, sets: Mapping[str, JudgedSet]
) -> None:
    with pytest.raises(UserError, match=r"^the run has 3 triggering inputs$"):
        choice(opened, sets).best([CandidateMaker("one", refused), CandidateMaker("two", refused)])
    tried, _ = choice(opened, sets).best([CandidateMaker("shifts", nothing)])
    assert tried[0].set_aside == "no shift gains anything"
