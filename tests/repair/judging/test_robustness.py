"""Seeds that keep their label under attack, with the model before a repair and after it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.repair.judging import robustness as attacks
from edgeflare.repair.judging.judgement_inputs import SEEDS, JudgedSet, SetName
from edgeflare.repair.judging.robustness import robustness
from tampering import COMPRESSED


@pytest.fixture
def few(sets: Mapping[SetName, JudgedSet]) -> JudgedSet:
    seeds, some = sets[SEEDS], slice(12)
    return JudgedSet(
        seeds.inputs[some], seeds.seed_ids[some], None, seeds.original[some], seeds.before[some]
    )


@pytest.mark.whitebox
def test_fewer_labels_stand_an_attack_and_all_stand_one_that_goes_nowhere(
    opened: OpenedPair, few: JudgedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = COMPRESSED.read_bytes()
    found = robustness(content, content, opened, few)
    assert found.why_not is None
    assert all(one.before == one.after for one in found.kept.values())
    none, fgsm, pgd = (found.kept[name].before for name in ("none", "fgsm", "pgd"))
    assert none == found.asked == len(few.inputs)
    assert none > fgsm >= pgd
    monkeypatch.setattr(attacks, "RADIUS", 0.2)  # rounded away
    assert robustness(content, content, opened, few).kept["pgd"].before == none


@pytest.mark.slow
def test_what_cannot_be_attacked_is_a_line(
    opened: OpenedPair, few: JudgedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    for name in [one for one in sys.modules if one.startswith("edgeflare.whitebox")]:
        monkeypatch.delitem(sys.modules, name)
    found = robustness(COMPRESSED.read_bytes(), COMPRESSED.read_bytes(), opened, few)
    assert str(found.why_not).endswith("pip install 'edgeflare[whitebox]'")
    assert not found.kept
