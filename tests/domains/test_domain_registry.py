from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import pytest

from edgeflare import installed_classes
from edgeflare.core.domain import Domain
from edgeflare.domains import domain_registry
from edgeflare.domains.domain_registry import DOMAINS, decoder_of_file, find_domain
from edgeflare.domains.image.image_domain import ImageDomain
from edgeflare.errors import UserError
from edgeflare.installed_classes import InstalledClasses

NEEDED = {"tokens": {"vocabulary": 9}}
"""Settings that a domain cannot do without."""


def test_domains_are_found_by_name_and_by_the_suffix_of_their_files() -> None:
    for name in DOMAINS.names():
        domain = find_domain(name, NEEDED.get(name, {}))
        assert domain.name == name
        assert decoder_of_file(f"findings/000001{domain.suffix}") == domain.decode_file


def test_no_two_domains_share_a_suffix() -> None:
    suffixes = [DOMAINS.find(name).suffix for name in DOMAINS.names()]
    assert not [one for one in suffixes if sum(other.endswith(one) for other in suffixes) > 1]


def test_a_broken_domain_of_another_package_harms_no_file_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = [
        EntryPoint("aardvark", "no_such_module:Domain", "edgeflare.domains"),
        *entry_points(group="edgeflare.domains"),
    ]
    monkeypatch.setattr(installed_classes, "entry_points", lambda **_group: entries)
    monkeypatch.setattr(
        domain_registry, "DOMAINS", InstalledClasses("edgeflare.domains", "domain", Domain)
    )
    assert decoder_of_file("findings/000001.png") == ImageDomain.decode_file
    with pytest.raises(UserError, match="'aardvark' of package unknown: it does not load"):
        decoder_of_file("findings/000001.doc")


def test_a_file_of_no_domain_is_refused() -> None:
    known = ", ".join(DOMAINS.names())
    assert known == "array, audio, frames, image, tokens"
    with pytest.raises(UserError, match=f"is no file of any domain; there are {known}"):
        decoder_of_file("seed.doc")
