"""Operators on arrays of numbers: (time, channels) or (values,), floats or integers.

Changes are in proportion to the spread of the array, since it does not say its unit. Bounds are the
domain's, so the caller enforces them; integers stay what their type holds.
"""

from edgeflare_operators.array.amplitude import drift, jitter, scaling
from edgeflare_operators.array.swapped_channels import swapped_channels
from edgeflare_operators.array.timing import dropped_samples, time_warp

__all__ = ["drift", "dropped_samples", "jitter", "scaling", "swapped_channels", "time_warp"]
