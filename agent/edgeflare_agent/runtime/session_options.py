"""The options of a session: kernels, threads, delegate, time limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kernels = Literal["xnnpack", "builtin", "reference"]
"""The kernels that run the operators.

xnnpack: the XNNPACK delegate, where it takes the operator; optimized built-ins elsewhere.
builtin: optimized built-in kernels, no delegate. reference: reference kernels, no delegate.
"""


@dataclass(frozen=True)
class Delegate:
    """A vendor's delegate.

    Attributes:
        library: file name or path of its shared library.
        options: handed to the delegate as they are.

    """

    library: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """The options with which a model is run.

    Attributes:
        kernels: the kernel set.
        threads: interpreter threads, at least 1.
        delegate: a vendor's delegate, which comes before the kernel set, or None.
        warmup: inputs of zeros to run before the model counts as open.
        input_timeout_seconds: time that one input may take before it counts as a hang.
        capture: answer with every tensor that an operator of the graph puts out, in place of the
            model's outputs. Keeping them all can itself change results.

    """

    kernels: Kernels
    threads: int = 1
    delegate: Delegate | None = None
    warmup: int = 0
    input_timeout_seconds: float = 10.0
    capture: bool = False
