"""What is noted of a survey's conditions."""

from __future__ import annotations

from edgeflare.survey.gates.judged_gates import surveyed_sets
from edgeflare.survey.items.noted_conditions import NotedCondition, noted_conditions, noted_sets
from surveying import CHOSEN


def test_what_is_noted_is_read_again() -> None:
    noted = noted_conditions(CHOSEN)
    assert noted["grain"] == NotedCondition("grain", ("noise",))
    assert {name: NotedCondition.from_json(one.to_json()) for name, one in noted.items()} == noted


def test_the_noted_sets_are_those_of_the_chosen_conditions() -> None:
    assert noted_sets(noted_conditions(CHOSEN)) == surveyed_sets(CHOSEN)
    assert noted_sets(noted_conditions(CHOSEN)) == {"noise": frozenset({"grain"})}


def test_a_name_says_what_it_stands_for_where_that_is_something_else() -> None:
    assert NotedCondition("fog").words("fog") == "fog"
    assert NotedCondition("fog").words("mist") == "mist (fog)"
    assert NotedCondition("rain", (), "mine 1.0").words("rain") == "rain (of mine 1.0)"
    assert NotedCondition("rain", (), "mine 1.0").words("wet") == "wet (rain of mine 1.0)"
