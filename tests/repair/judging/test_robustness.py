"""Seeds that keep their label under attack, with the model before a repair and after it."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np
import pytest

from edgeflare.campaign.pair_panel import OpenedPair
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.judging import robustness as attacks
from edgeflare.repair.judging.candidate_model import CandidateModel
from edgeflare.repair.judging.judgement_inputs import SEEDS, JudgedSet, SetName
from edgeflare.repair.judging.robustness import robustness
from tampering import COMPRESSED, with_constant


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
    assert none == found.seeds == len(few.inputs)
    assert none > fgsm >= pgd
    monkeypatch.setattr(attacks, "RADIUS", 0.2)  # rounded away
    assert robustness(content, content, opened, few).kept["pgd"].before == none


@pytest.mark.whitebox
def test_each_of_two_models_is_attacked_by_its_own_gradient(
    opened: OpenedPair, few: JudgedSet
) -> None:
    before = COMPRESSED.read_bytes()
    graph = Graph(before)
    last = [one for one in graph.layers if one.name == "FULLY_CONNECTED"][-1].inputs[1]
    after = with_constant(
        before,
        graph.tensors[last].name,
        lambda weights: np.where(np.arange(weights.shape[1]) % 4, 0, weights),
    )
    found = robustness(before, after, opened, few).kept
    turned = robustness(after, before, opened, few).kept
    assert {name: (one.after, one.before) for name, one in turned.items()} == {
        name: (one.before, one.after) for name, one in found.items()
    }
    assert found["none"].before > found["none"].after


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


@pytest.mark.slow
def test_a_refusal_names_no_folder_of_the_moment(
    opened: OpenedPair, few: JudgedSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(model: CandidateModel, *_: object) -> None:
        raise UserError(f"{model.path} has no gradient")

    monkeypatch.setattr(attacks, "attacked_inputs", refuse)
    found = robustness(COMPRESSED.read_bytes(), COMPRESSED.read_bytes(), opened, few)
    assert found.why_not == "candidate.tflite has no gradient"
