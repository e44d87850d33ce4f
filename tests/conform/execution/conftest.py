"""Arms over the host's real runtime, with or without operators that end badly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from deadly_operators import deadly_launcher
from edgeflare.conform.execution.host_opener import HostOpener
from edgeflare.conform.execution.packing_arm import PackingArm
from edgeflare_protos.kernel_sets import Kernels

ArmOf = Callable[..., PackingArm]


@pytest.fixture
def arm_of() -> Iterator[ArmOf]:
    """Return a function that makes an arm of the host, which the test's end closes."""
    with ExitStack() as stack:

        def made(kernels: Kernels = "builtin", **effects: str) -> PackingArm:
            launcher = deadly_launcher(effects) if effects else None
            return stack.enter_context(closing(PackingArm(HostOpener(kernels, launcher))))

        yield made
