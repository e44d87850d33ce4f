"""jax, which differentiates: on one thread of the CPU, and imported when a network is translated.

On one thread a sum is always added up in the same order, so that a run seed decides all results.
The flags have to be set before jax is first imported. Those of the user are kept, before ours.
"""

from __future__ import annotations

import os

from edgeflare.errors import UserError

_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_ONE_THREAD}".strip()

try:
    import jax
    import jax.numpy as jnp
    from jax import lax
    from jax.flatten_util import ravel_pytree
except ImportError:
    raise UserError(
        "jax is not installed, which differentiates networks: pip install 'edgeflare[whitebox]'"
    ) from None

jax.config.update("jax_platforms", "cpu")  # also where JAX_PLATFORMS names others

__all__ = ["jax", "jnp", "lax", "ravel_pytree"]
