"""How a model is called on one input: by which signature, in which shapes, with which state."""

from __future__ import annotations

from typing import TypeAlias

from edgeflare_agent.runtime import Invocation as AgentInvocation

Invocation: TypeAlias = AgentInvocation
"""One class for the device and the host's own runner, so that both arms are called alike."""

ONCE = Invocation()
"""The first graph, once, in its own shapes: how a model is called of which nothing is said."""
