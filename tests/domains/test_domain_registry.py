from __future__ import annotations

import pytest

from edgeflare.domains.domain_registry import domain_names, domain_of_file, find_domain
from edgeflare.errors import UserError


def test_domains_are_found_by_name_and_by_the_suffix_of_their_files() -> None:
    for name in domain_names():
        domain = find_domain(name)
        assert domain.name == name
        assert domain_of_file(f"findings/000001{domain.suffix}").name == name


def test_no_two_domains_share_a_suffix() -> None:
    suffixes = [find_domain(name).suffix for name in domain_names()]
    assert not [one for one in suffixes if sum(other.endswith(one) for other in suffixes) > 1]


def test_a_file_of_no_domain_is_refused() -> None:
    with pytest.raises(UserError, match=r"'seed\.doc' is no file of any domain; there are image"):
        domain_of_file("seed.doc")
