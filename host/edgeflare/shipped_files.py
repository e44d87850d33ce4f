"""Files that come with EdgeFlare: device profiles, known issues, the example pair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def shipped_folders(in_wheel: str, in_checkout: str) -> Iterator[Path]:
    """Yield where shipped files may be: inside the installed package, or in the checkout.

    Args:
        in_wheel: The folder inside the package `edgeflare`, where a wheel puts them.
        in_checkout: The same folder from the root of a checkout.

    """
    package = Path(__file__).resolve().parent
    yield package / in_wheel
    checkout = package.parents[1]  # where a package is installed, this may be anybody's folder
    if package.parent.name == "host" and (checkout / "pyproject.toml").is_file():
        yield checkout / in_checkout
