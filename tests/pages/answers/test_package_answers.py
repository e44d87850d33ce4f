"""Answers of another package's form: as documents keep them, with and without the package."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import msgspec
import pytest

from edgeflare.errors import UserError
from edgeflare.pages.answers.answer_form import AnsweredInput, AnswerForm
from edgeflare.pages.answers.answer_forms import recorded, words_of
from edgeflare.pages.answers.package_answers import PACKAGE_FORMS, PackageAnswers, PageBlocks
from edgeflare.pages.page import Facts, Sentences
from edgeflare.record.json_types import JsonValue, plain_json

TRIGGER = AnsweredInput("trigger", ("original", "device"), None, 0, 0, 1_000)
VIEW: dict[str, JsonValue] = {
    "form": "lamp",
    "head": "",
    "light": {"original": 1.5, "device": -0.5},
}
KEPT = PackageAnswers("", {"original": "off", "device": "on"}, VIEW)


@pytest.fixture
def lamp(monkeypatch: pytest.MonkeyPatch) -> type[AnswerForm]:
    """Return the form of the package of night lights, which is installed for a test."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tasks"))
    offered = {
        "broken": EntryPoint("broken", "no_such_module:Form", "edgeflare.answers"),
        "lamp": EntryPoint("lamp", "night_light:LampView", "edgeflare.answers"),
    }
    monkeypatch.setitem(vars(PACKAGE_FORMS), "_entries", offered)
    return PACKAGE_FORMS.find("lamp")


def test_a_view_is_kept_with_its_decisions_and_opened_as_it_was(lamp: type[AnswerForm]) -> None:
    view = msgspec.convert(VIEW, lamp)
    kept = recorded(view, ("original", "device"))
    assert kept == KEPT
    assert msgspec.convert(plain_json(kept), PackageAnswers).opened() == view
    block = kept.opened().block(TRIGGER)
    assert isinstance(block, PageBlocks)
    assert block.blocks == (
        Facts("light beyond dusk", (("original", "+1.500"), ("device", "-0.500"))),
    )
    assert words_of("night-light").decision == "Lamp"


def test_without_the_package_there_are_the_decisions() -> None:
    shown = KEPT.opened()
    assert shown is KEPT
    assert [shown.decision(arm) for arm in ("original", "twin", "device")] == ["off", "–", "on"]
    block = KEPT.block(TRIGGER)
    (words,) = block.blocks
    assert isinstance(words, Sentences)
    assert "'lamp'" in words.sentences[0]
    assert not [*KEPT.wrong("answers[0]")]
    assert words_of("night-light") == words_of("no-such-task")


def test_what_the_form_does_not_have_is_wrong(lamp: type[AnswerForm]) -> None:
    damaged = PackageAnswers("", {}, {**VIEW, "light": "dark"})
    assert [*damaged.wrong("answers[0]")] == [
        "answers[0].view: Expected `object`, got `str` - at `$.light`"
    ]
    assert damaged.opened() is damaged
    assert lamp is PACKAGE_FORMS.find("lamp")


def test_a_form_that_no_package_offers_is_refused() -> None:
    class Shown(AnswerForm, frozen=True, tag_field="form", tag="shown"):
        """Answers in a form that stands in no entry point."""

    with pytest.raises(
        UserError, match=r"Shown, which is no form of answers that a package offers"
    ):
        recorded(Shown(""), ())
