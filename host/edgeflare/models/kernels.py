"""The kernel sets of the host."""

from __future__ import annotations

from typing import TypeAlias

from edgeflare_agent.runtime import Kernels as AgentKernels

Kernels: TypeAlias = AgentKernels
"""A kernel set of the host: "xnnpack", "builtin" or "reference"."""
