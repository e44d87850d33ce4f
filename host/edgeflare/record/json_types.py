"""Values as documents have them, with their limits, for the annotations of their types."""

from __future__ import annotations

from typing import Annotated

import msgspec

Number = int | float
"""A number as JSON has it: of a file, one without a fraction is of type int."""

Count = Annotated[int, msgspec.Meta(ge=0)]
"""How many there are of something, or the place of one of them."""

CountFromOne = Annotated[int, msgspec.Meta(ge=1)]
"""How many there are of what there is at least one."""

Amount = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0)]
"""A number of seconds or bytes, or a distance."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A part of a whole, a probability, or an area below a curve of such."""

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""The SHA-256 digest of a file, in hexadecimal."""
