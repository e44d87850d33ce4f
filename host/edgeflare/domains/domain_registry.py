"""The domains that are installed, by name and by the suffix of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from edgeflare.class_registry import InstalledClasses
from edgeflare.core.domain import Domain
from edgeflare.core.input_space import Input
from edgeflare.errors import UserError
from edgeflare.keyword_settings import constructed
from edgeflare.record.json_types import JsonValue

DOMAINS = InstalledClasses[Domain]("edgeflare.domains", "domain", Domain)


_NOTHING: Mapping[str, JsonValue] = MappingProxyType({})


def find_domain(
    name: str, settings: Mapping[str, JsonValue] = _NOTHING, where: str = "[inputs]"
) -> Domain:
    """Return the domain of that name.

    Args:
        name: name of the domain.
        settings: what `pair.toml` says of it, by the names of its constructor's arguments.
        where: they stand, for messages.

    Raises:
        UserError: there is none, or an installed package's domain cannot be used, or the settings
            are not what it takes.

    """
    return constructed(DOMAINS.find(name), settings, where)


def decoder_of_file(name: str) -> Callable[[bytes], Input | None]:
    """Return the `Domain.decode_file` that reads files of a name.

    Ours are asked first, so that what else is installed changes nothing about their files.

    Raises:
        UserError: there is none, or an installed package's domain cannot be used.

    """
    for known in DOMAINS.names():
        if name.endswith(DOMAINS.find(known).suffix):
            return DOMAINS.find(known).decode_file
    raise UserError(f"{name!r} is no file of any domain; there are {', '.join(DOMAINS.names())}")
