"""One input of a pair's models, as it is searched and stored."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Input = NDArray[Any]
"""One input: an array whose shape and dtype the domain of the pair gives a meaning."""
