from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest

from edgeflare.conditions import condition_registry
from edgeflare.conditions.condition_registry import (
    all_conditions,
    condition_complaints,
    conditions_of,
    name_fault,
    own_conditions,
    package_of,
)
from edgeflare.domains.domain_registry import DOMAINS
from edgeflare.errors import UserError

RAIN = """
from edgeflare.conditions.audio_conditions import quiet
from edgeflare.conditions.condition import condition

@condition("{name}", domain="{domain}", sets=("{sets}",), summary="drops on the case")
def rain(one, severity, rng):
    return one.copy()
"""


def rain(name: str = "rain", domain: str = "audio", sets: str = "weather") -> str:
    return RAIN.format(name=name, domain=domain, sets=sets)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("domain", ["array", "audio", "frames"])
def test_a_domain_with_conditions_has_a_common_set(domain: str) -> None:
    ours = own_conditions(domain)
    assert [one for one in ours if "common" in one.sets]
    assert {one.domain for one in ours} == {domain}


def test_every_condition_is_of_a_domain_and_says_in_a_line_what_it_is() -> None:
    for one in all_conditions():
        assert one.domain in DOMAINS.names()
        assert one.summary.strip()
        assert "\n" not in one.summary


def test_conditions_of_others_come_behind_ours(install: Callable[..., None]) -> None:
    install(my_rain=rain())
    names = [one.name for one in conditions_of("audio")]
    assert names == [*(one.name for one in own_conditions("audio")), "rain"]


def test_a_condition_of_others_says_which_package_brings_it(install: Callable[..., None]) -> None:
    install(my_rain=rain())
    *ours, theirs = conditions_of("audio")
    assert {package_of(one) for one in ours} == {""}
    assert package_of(theirs) == "my_rain"


def test_ours_are_found_without_importing_any_other(install: Callable[..., None]) -> None:
    install(my_broken="raise RuntimeError('no')", my_rain=rain())
    assert own_conditions("audio")
    assert not {"my_broken", "my_rain"} & set(sys.modules)


def test_a_domain_of_another_package_can_have_conditions(install: Callable[..., None]) -> None:
    install(my_rain=rain(domain="radar"))
    assert [one.name for one in conditions_of("radar")] == ["rain"]
    assert own_conditions("radar") == ()


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("raise RuntimeError('two\\nlines')", "they do not load (RuntimeError: two lines)"),
        ("nothing = 1", "my_module is no module that holds conditions"),
        (rain("quiet"), "there is another condition of audio named 'quiet'"),
        (rain("Rain"), "'Rain' is no name"),
        (rain("none"), "the name 'none' has another meaning"),
        (rain(sets="two words"), "'two words' is no name"),
    ],
)
def test_a_module_that_cannot_be_used_is_named_in_one_line(
    install: Callable[..., None], source: str, complaint: str
) -> None:
    install(my_module=source)
    (said,) = condition_complaints()
    assert "\n" not in said
    assert said.startswith("conditions 'a-my_module' of package unknown: ")
    assert complaint in said
    assert said.endswith("; correct or uninstall the package")


def test_two_packages_cannot_have_one_name(install: Callable[..., None]) -> None:
    install(my_rain=rain(), your_rain=rain(), their_hail=rain("hail"))
    (said,) = condition_complaints()
    assert "there is another condition of audio named 'rain'" in said
    theirs = [one.name for one in conditions_of("audio") if package_of(one)]
    assert theirs == ["hail"]


def test_what_cannot_be_used_takes_nothing_else_away(install: Callable[..., None]) -> None:
    install(my_broken="raise RuntimeError('no')", my_quiet=rain("quiet"), your_rain=rain())
    assert len(condition_complaints()) == 2
    assert [one.name for one in conditions_of("audio")] == [
        *(one.name for one in own_conditions("audio")),
        "rain",
    ]


def test_one_name_in_two_domains_is_no_clash(install: Callable[..., None]) -> None:
    install(my_rain=rain(), your_rain=rain(domain="radar"))
    assert sum(one.name == "rain" for one in all_conditions()) == 2


def test_an_entry_point_names_a_module(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(my_rain=rain())
    entries = [
        *condition_registry._entries(),
        EntryPoint("one", "my_rain:rain", condition_registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(condition_registry, "entry_points", lambda **_group: entries)
    (said,) = condition_complaints()
    assert "my_rain:rain is no module that holds conditions" in said


def test_a_checkout_that_is_not_installed_says_so(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install()
    monkeypatch.setattr(condition_registry, "entry_points", lambda **_group: ())
    assert "run `pip install -e .` in its checkout" in refused(lambda: own_conditions("audio"))


@pytest.mark.parametrize("name", ["fog", "jpeg-50", "a-b-c", "4"])
def test_names_are_lower_case_with_hyphens(name: str) -> None:
    assert name_fault(name) == ""


@pytest.mark.parametrize(
    "name", ["", "Fog", "a b", "a_b", "-a", "a-", "a,b", "x.toml", "unchanged"]
)
def test_other_names_are_refused(name: str) -> None:
    assert repr(name) in name_fault(name)
