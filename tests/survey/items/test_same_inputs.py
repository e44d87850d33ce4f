"""Whether items are made as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.errors import UserError
from edgeflare.run.stored_answers import input_crc32
from edgeflare.survey.items.same_inputs import require_same_input, require_same_inputs
from edgeflare.survey.items.surveyed_items import SurveyedItems
from linear_laboratory import linear_laboratory
from surveying import DARK, NOISE


def items_of(folder: Path, *chosen: ChosenCondition) -> SurveyedItems:
    laboratory = linear_laboratory(folder)
    return SurveyedItems.of(chosen, laboratory.images, laboratory.interface.domain.space, 0)


def checksums(items: SurveyedItems) -> dict[int, int]:
    return {item: input_crc32(items.make(item)) for item in range(len(items))}


def test_items_that_are_made_as_before_are_the_same(tmp_path: Path) -> None:
    items = items_of(tmp_path, ChosenCondition("mist", NOISE, (1, 2)))
    require_same_inputs(items, checksums(items), "runs/before")
    require_same_inputs(items, {}, "runs/before")
    require_same_input(items, 30, items.make(30), checksums(items)[30])


def test_a_name_that_stands_for_another_condition_is_told(tmp_path: Path) -> None:
    before = items_of(tmp_path, ChosenCondition("mist", NOISE, (1, 2)))
    now = items_of(tmp_path, ChosenCondition("mist", DARK, (1, 2)))
    said = "^runs/before has other inputs under 'mist' at severity 1 than"
    with pytest.raises(UserError, match=said):
        require_same_inputs(now, checksums(before), "runs/before")


def test_an_input_that_is_made_otherwise_is_told(tmp_path: Path) -> None:
    items = items_of(tmp_path, ChosenCondition("mist", NOISE, (1, 2)))
    with pytest.raises(UserError, match="'mist' returned another input than before"):
        require_same_input(items, 30, items.make(31), checksums(items)[30])
