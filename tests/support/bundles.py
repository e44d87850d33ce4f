"""Real bundles for tests, from the cache of the user who runs them."""

from __future__ import annotations

import pytest

from edgeflare.devices.bundle.build_bundle import Bundle, build_bundle
from edgeflare.errors import EdgeFlareError


def bundle_of(target: str, runtime: str = "litert") -> Bundle:
    """Return a bundle; skip where this machine cannot make one, for want of apt or a network."""
    try:
        return build_bundle(target, runtime)
    except EdgeFlareError as error:
        pytest.skip(str(error))
