"""The domain of a run's stored inputs: what its pair says."""

from __future__ import annotations

from typing import Any

import pytest

from edgeflare.domains.audio.audio_domain import AudioDomain
from edgeflare.errors import UserError
from edgeflare.run.run_domain import run_domain


def test_settings_of_the_pair_are_those_of_the_domain() -> None:
    pair = {"domain": "array", "domain_settings": {"dtype": "int16", "lowest": -5, "highest": 9}}
    space = run_domain(pair).space
    assert (space.dtype, space.lowest, space.highest) == ("int16", -5, 9)
    audio = run_domain({"domain": "audio", "domain_settings": {"sample_rate": 8_000}})
    assert isinstance(audio, AudioDomain)
    assert audio.sample_rate == 8_000


@pytest.mark.parametrize("pair", [{}, {"domain": "image", "domain_settings": {}}])
def test_a_run_that_says_nothing_is_of_images(pair: dict[str, Any]) -> None:
    assert run_domain(pair).name == "image"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"colour": "red"}, "unknown key colour"),
        ({"sample_rate": "fast"}, "sample_rate is 'fast'"),
        (["sample_rate"], "or its settings"),
        ({"sample_rate": 0}, "sample_rate has to be a number of Hz"),
    ],
)
def test_settings_that_do_not_fit_are_refused_in_a_line(settings: Any, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        run_domain({"domain": "audio", "domain_settings": settings})
    assert "\n" not in str(caught.value)


def test_an_unknown_domain_is_refused() -> None:
    with pytest.raises(UserError, match="unknown domain 'smell'"):
        run_domain({"domain": "smell"})
