"""Tests of edgeflare.survey.shown.survey_summary."""

from __future__ import annotations

from constructed_surveys import constructed_document, constructed_facts, gate_entry
from edgeflare.survey.rates.rate_words import interval
from edgeflare.survey.shown.survey_summary import survey_summary


def test_it_has_the_headline_the_gates_the_tables_and_the_sentence() -> None:
    document = constructed_document()
    said = survey_summary(document)
    assert said.startswith("## EdgeFlare survey: sneakers\n\nsneakers **deviates on ")
    assert "❌ Gate rate\\<0.01 is not held: the rate is above 1 %" in said
    assert "✅ Gate rate\\<0.9 under fog is held" in said
    assert "> [!WARNING]\n> the pair's seeds are surveyed" in said
    fog = next(one for one in document["by_condition"]["slices"] if one["name"] == "fog")
    assert f"| fog | {interval(fog['deviation'])} |" in said
    assert said.rstrip().endswith(document["sentence"])


def test_an_undecided_gate_and_a_survey_that_was_cut_off_are_marked() -> None:
    gates = [gate_entry("rate<0.1", "undecided", "too few were asked")]
    said = survey_summary(constructed_document(gates=gates, stopped_by="interrupt"))
    assert "⚠️ Gate rate\\<0.1 is undecided: too few were asked" in said
    assert "This is not the whole survey: it was stopped by Ctrl-C before its end." in said


def test_names_break_out_of_no_table() -> None:
    document = constructed_document(constructed_facts(conditions=("a|b\n<c>",)))
    assert "| a\\|b \\<c\\> |" in survey_summary(document)
