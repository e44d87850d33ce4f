"""The simplest models, opened on a device before any others: whether it runs them, and by what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from edgeflare.campaign.opened_pair import RefusedByDevice
from edgeflare.conform.execution.device_opener import DeviceOpener
from edgeflare.conform.execution.model_opener import LoadRefused
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.graphs.operator_graph import GraphValue, OperatorGraph
from edgeflare.devices.provenance import Provenance

_VALUES: Final = GraphValue("float32", (1, 2, 2, 4))

_SIMPLEST: Final = {"RELU": 1, "ADD": 2, "LOGISTIC": 1}
"""Operators that runtimes have, and how many operands each has. A device may lack one of them."""


def tried_device(opener: DeviceOpener) -> Provenance:
    """Return what a device is, once it has opened one of the simplest models.

    A device names the runtime and the accelerator of a model alone; one that refuses each of these
    lacks a driver or the runtime itself, and would refuse hundreds of others one by one.

    Raises:
        RefusedByDevice: it refuses each of them.
        InfrastructureError: it is lost.

    """
    refusal = ""
    with TemporaryDirectory(prefix="edgeflare-conform-") as folder:
        path = Path(folder, "models.tflite")
        for operator, operands in _SIMPLEST.items():
            graph = OperatorGraph.of_operator(operator, [_VALUES] * operands, [_VALUES])
            path.write_bytes(graph_file(graph))
            try:
                session = opener.open(path)
            except LoadRefused as refused:
                refusal = str(refused)
                continue
            session.close()
            known = opener.device.provenance
            runtime, version = session.runtime or (known.runtime, known.runtime_version)
            return replace(
                known, runtime=runtime, runtime_version=version, adapter=session.adapter or None
            )
    raise RefusedByDevice(f"no operator can be tried on {opener.device.profile.name}: {refusal}")
