"""The bounds of what a host may ask of an agent; both peers know them, and the agent enforces them.

Each is far above what a search needs and far below what hurts a device. They are no part of the
version: a host that asks for more is answered INVALID_ARGUMENT.
"""

from __future__ import annotations

CHUNK_BYTES = 64 * 1024
"""The most bytes of a model, or of captured outputs, in one message."""

PAYLOAD_LIMIT_BYTES = 3 * 1024 * 1024
"""The most bytes of inputs, or outputs, in one message: below gRPC's default limit of 4 MiB, with
room for what goes with the payload."""

FAILURE_TEXT_BYTES = 256 * 1024
"""The most bytes of what is known of failures in one message; of those beyond, their kind is said:
a runtime may say a line of each of 65,536 inputs, which with the
payload is more than gRPC takes."""

MOST_INPUTS = 65_536
"""The most inputs of one message. Inputs of a few bytes could be millions, each noted and looked
up one by one; an image of 48 bytes or more fills the payload first."""

MOST_THREADS = 128
"""The most threads of one interpreter: the cores of the largest ARM servers; more threads than
cores only wait for one another. A runtime starts all that it is told to: 32,000 were measured."""

MOST_WARMUP = 100
"""The most inputs of zeros that are run before a session is open: caches and clocks settle within
some tens."""

LEAST_INPUT_TIMEOUT_SECONDS = 0.01
"""A busy device may not run a process for that long: a shorter limit would call anything a hang."""

MOST_INPUT_TIMEOUT_SECONDS = 3600.0
"""Large models on reference kernels under QEMU take minutes for one input. With the warm-up it
stays below the 24 days that poll can wait."""

MOST_TOKEN_CHARACTERS = 128
"""The longest resume token, which is kept with its session; 22 characters hold 128 bits."""

LEAST_SECRET_CHARACTERS = 16
"""The shortest secret of a lease, at most MOST_TOKEN_CHARACTERS; 22 characters of base 64 hold 128
bits."""

MOST_HOLDER_CHARACTERS = 128
"""The longest word on who has a lease, such as a host or a user; they are shown in one line."""

LEAST_LEASE_SECONDS = 1
"""The shortest term of a lease that is not renewed; a host renews it thrice in a term, which
links can do."""

MOST_LEASE_SECONDS = 3600
"""The longest term of a lease that is not renewed: for so long a host that has lost the device
keeps it from others."""

MOST_DELEGATE_OPTIONS = 64
"""Delegates have a dozen options each."""

MOST_FRAMES = 65_536
"""The most frames of one clip: eleven minutes in steps of 10 ms."""

MOST_NAMED_TENSORS = 256
"""Shapes, and states, of one invocation, or shapes of one of its steps; the largest networks with
state have some dozens."""

MOST_STEPS = 16
"""Steps of one invocation: each shape or signature, and the way back to the first, takes a few."""

MOST_CAPTURE_BYTES = 1 << 30
"""The most bytes of the captured tensors of one model together, which the agent holds in memory: a
VGG-16 at 224 x 224 takes 60 MB in float32."""

MOST_STORE_MIB = 1 << 30
"""The largest model store: a pebibyte. As bytes it has to fit the wire's 64 bits."""
