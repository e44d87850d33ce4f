"""A limit of this process's address space, as `ulimit -v` sets, under which commands cannot work.

Libraries reserve far more addresses than they use memory. Where they get none, some of them end the
process by a signal before anything can be said, so it is said before they are imported.
"""

from __future__ import annotations

import os
import re
import resource
from typing import Final

from edgeflare.errors import InfrastructureError

_OF_MODELS: Final = frozenset(
    {"bench", "conform", "explain", "inspect", "rank", "repair", "replay", "search", "survey"}
)
"""Commands that run models, in processes and threads of their own."""

_LEAST_OF_MODELS: Final = 2 * 2**30
"""Bytes. `search` reserves 1.6 to 1.7 GB on two cores, `explain` and `inspect` 1.8 GB."""

_LEAST: Final = 768 * 2**20
"""Bytes. `report --html` reserves 0.4 to 0.6 GB, `devices` 0.8 GB, of which it needs half."""


def require_address_space(command: str) -> None:
    """Refuse to begin a command in too small an address space; see that libraries reserve less.

    Args:
        command: name of the command, such as "search"; "help" for what only shows help.

    Raises:
        InfrastructureError: the limit is below what the command was measured to need.

    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or command == "agent":  # which runs where memory is small
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else 100 MB and more for each core
    least = _LEAST_OF_MODELS if command in _OF_MODELS else _LEAST
    if limit < least:
        raise InfrastructureError(
            f"the address space is limited to {limit >> 20:,} MiB, and `edgeflare {command}` needs"
            f" {least >> 20:,} MiB: type ulimit -v unlimited, and bound memory with a container"
            " instead"
        )


def is_shortage(error: BaseException) -> bool:
    """Return whether an error says that there is no memory, or no room for a thread or library."""
    said = str(error)
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, RuntimeError) and "can't start new thread" in said)
        or (isinstance(error, ImportError) and _NOT_LOADED.search(said) is not None)
    )


_NOT_LOADED: Final = re.compile(r"failed to map segment|annot allocate memory(?! in static TLS)")
"""What the loader of the system says where a library finds no memory; room for the variables of
threads is another thing, which more memory does not give."""
