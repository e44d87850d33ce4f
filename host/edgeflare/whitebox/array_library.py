"""jax, which differentiates: on one thread of the CPU, and imported when a network is translated.

On one thread a sum is always added up in the same order, so that a run seed decides all results.
The settings have to be made before jax is first imported; those of the user are kept.
"""

from __future__ import annotations

import os

from edgeflare.errors import UserError

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError:
    raise UserError(
        "jax is not installed, which differentiates networks: pip install 'edgeflare[whitebox]'"
    ) from None

__all__ = ["jax", "jnp", "lax"]
