"""Drafts as JSON: nothing of what was drawn is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from drafting import mutating
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.drafts.draft_json import draft_to_json
from edgeflare.conform.drafts.seed_models import drawn_seeds
from edgeflare.conform.drafts.uniform_drawing import UniformDrawing


def _again(draft: Draft) -> Draft:
    return Draft(tuple(_node(one) for one in json.loads(json.dumps(draft_to_json(draft)))))


def _node(one: dict[str, Any]) -> DraftNode:
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in one["settings"].items()
    }
    rest = one["constants"], tuple(one["sources"]), one["given"]
    return DraftNode(one["operator"], one["type"], settings, *rest)


@given(seed=st.integers(0, 2**32))
def test_a_drawn_operator_is_read_back(seed: int) -> None:
    drawing = UniformDrawing(Coverage(chosen_cells()), np.random.default_rng(seed))
    for draft in drawing.ask(8):
        assert _again(draft) == draft


@given(seed=st.integers(0, 2**32))
def test_who_feeds_whom_is_read_back(seed: int) -> None:
    (draft,) = drawn_seeds(1, mutating(seed))
    assert _again(draft) == draft


def test_the_place_in_a_model_of_the_user_is_read_back() -> None:
    (draft,) = UniformDrawing(Coverage(chosen_cells()), np.random.default_rng(0)).ask(1)
    given_one = Draft((replace(draft.nodes[0], given=3),))
    assert _again(given_one) == given_one
