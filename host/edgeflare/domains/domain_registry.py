"""The domains that are installed, by name and by the suffix of their files."""

from __future__ import annotations

from edgeflare.core.domain import Domain
from edgeflare.errors import UserError
from edgeflare.installed_classes import InstalledClasses

DOMAINS = InstalledClasses[Domain]("edgeflare.domains", "domain", Domain)


def find_domain(name: str) -> Domain:
    """Return the domain of that name.

    Raises:
        UserError: there is none, or an installed package's domain cannot be used.

    """
    return DOMAINS.find(name)()


def domain_of_file(name: str) -> Domain:
    """Return the domain that stores inputs in files of a name.

    Ours are asked first, so that what else is installed changes nothing about their files.

    Raises:
        UserError: there is none, or an installed package's domain cannot be used.

    """
    for known in DOMAINS.names():
        if name.endswith(DOMAINS.find(known).suffix):
            return find_domain(known)
    raise UserError(f"{name!r} is no file of any domain; there are {', '.join(DOMAINS.names())}")
