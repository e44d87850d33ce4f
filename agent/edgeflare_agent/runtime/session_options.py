"""The options of a session: kernels, threads, delegate, time limits, and how a model is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeflare_protos.kernel_sets import Kernels


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
class Invocation:
    """How a model is called on one input; by default its first graph, once, in its own shapes.

    Attributes:
        signature: name of the signature that is run, whose names its tensors then have; empty for
            the model's first graph.
        shapes: a fixed shape for each input with dynamic dimensions, by the input's name. A
            dimension that is left open has the size 1.
        state: the outputs that are handed to an input of the next frame, as pairs of the input's
            and the output's name.
        frames: steps of one clip, which is one input then. Its tensors have the shapes
            (frames, *shape), without the inputs that are fed by a state. 0 where an input is no
            clip: the model is run once on it.

    """

    signature: str = ""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    frames: int = 0


@dataclass(frozen=True)
class Acceleration:
    """How an accelerator computes, and what becomes of nodes that it does not take.

    Attributes:
        float32: compute in float32 throughout; else it may take float16, as it does by itself.
        fallback: run nodes that it does not take on the CPU; else a model that has some is refused.

    """

    float32: bool = False
    fallback: bool = False


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
        invocation: how the model is called on one input.
        acceleration: for the kernel sets of accelerators.
        arena_bytes: for a runtime with an arena, the most that it may take; 0 for any size.

    """

    kernels: Kernels
    threads: int = 1
    delegate: Delegate | None = None
    warmup: int = 0
    input_timeout_seconds: float = 10.0
    capture: bool = False
    invocation: Invocation = field(default_factory=Invocation)
    acceleration: Acceleration = field(default_factory=Acceleration)
    arena_bytes: int = 0
