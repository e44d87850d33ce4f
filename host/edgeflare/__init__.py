"""EdgeFlare: find the inputs on which a compressed network on its device decides differently.

    import edgeflare

    result = edgeflare.check("examples/fashion_lenet4")
    result.may_ship, result.document.sentence

What is called is imported when it is first asked for, so that `import edgeflare` costs nothing. No
room has the name of a call, since a module that is imported takes the place of a function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from edgeflare_protos import __version__ as __version__

if TYPE_CHECKING:
    from edgeflare.api.check import CheckResult as CheckResult
    from edgeflare.api.check import check as check
    from edgeflare.api.device import open_device as open_device
    from edgeflare.api.layers import LayersResult as LayersResult
    from edgeflare.api.layers import layers as layers
    from edgeflare.api.search import SearchResult as SearchResult
    from edgeflare.api.search import search as search

_PLACES: Final = {
    "CheckResult": "check",
    "LayersResult": "layers",
    "SearchResult": "search",
    "check": "check",
    "layers": "layers",
    "open_device": "device",
    "search": "search",
}
"""The module in `api` of each name."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"edgeflare.api.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return ["__version__", *_PLACES]
