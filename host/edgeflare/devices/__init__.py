"""Devices: profile, transport, session. Everything that can disconnect lives here.

A `Profile` says how a device is reached and how models run on it; a `Transport` brings its agent
up and tells where it listens; a `Device` speaks with that agent; a `DeviceSession` is one model on
it, an `Evaluator` like those of the host.

The rooms within: `transports` bring agents up, `remote` puts them on devices that have a shell,
`bundle` makes the agent a file with a Python of its own, `reservations` book a device in a lab's
own system.

Whatever speaks with a device raises InfrastructureError where the device or its agent does not come
up, or fails, and UserError where the profile asks for something that is not there, or the device's
runtime refuses the model or its options; the docstrings within leave that out, unless there is more
to say.
"""

from __future__ import annotations

import os

# gRPC's core writes to the terminal about failures that we report in one line; it looks at this
# when it is imported, which every file of this room does after this one.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
