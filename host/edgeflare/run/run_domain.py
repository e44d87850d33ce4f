"""The domain of a run's stored inputs, with the settings that the run was made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeflare.core.domain import Domain
from edgeflare.domains.domain_registry import DOMAINS, domain_of_file
from edgeflare.errors import UserError


def domain_of_input(pair: Mapping[str, Any], name: str) -> Domain:
    """Return the domain of a stored input.

    A file alone does not say all of it: the bounds of an array are no part of its values. The pair
    of the run says them, in `domain` and `domain_settings`. Where it does not, as in runs of
    images, the file's suffix says the domain, without settings.

    Args:
        pair: that of the run's document or header.
        name: of the stored file.

    Raises:
        UserError: there is no such domain, or it does not take these settings.

    """
    named, settings = pair.get("domain"), pair.get("domain_settings", {})
    if named is None or not name.endswith(DOMAINS.find(named).suffix):
        return domain_of_file(name)
    try:
        return DOMAINS.find(named)(**settings)
    except (TypeError, ValueError, ArithmeticError):
        raise UserError(
            f"the run's domain {named!r} does not take the settings {settings!r} that run.json has:"
            " make the run again, or report it with the version that made it"
        ) from None
