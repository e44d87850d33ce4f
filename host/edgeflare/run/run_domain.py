"""The domain of a run's inputs, with the settings that the run was made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeflare.core.domain import Domain
from edgeflare.domains.domain_registry import find_domain
from edgeflare.errors import UserError


def run_domain(pair: Mapping[str, Any]) -> Domain:
    """Return the domain of a run's inputs; of a run that says none it is that of images.

    Files alone do not say all of it: the bounds of an array are no part of its values.

    Args:
        pair: that of the run's document or header.

    Raises:
        UserError: there is no such domain, or it does not take the settings that the run has.

    """
    named, settings = pair.get("domain", "image"), pair.get("domain_settings", {})
    if not isinstance(named, str) or not isinstance(settings, Mapping):
        raise UserError(
            f"the run's domain {named!r} or its settings {settings!r} are none: make the run again"
        )
    return find_domain(named, settings, "the run's domain")
