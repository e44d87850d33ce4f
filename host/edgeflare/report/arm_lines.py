"""What ran where: a line for each arm and device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from edgeflare.devices.provenance import Provenance
from edgeflare.models.run_host import RunHost
from edgeflare.models.run_pair import RunPair
from edgeflare.pages.facts import count_of
from edgeflare.run.run_document import RunDevice, RunDocument
from edgeflare.untrusted_text import printable


def arm_lines(document: RunDocument) -> list[tuple[str, str]]:
    """Return what ran where and how: the arms of the host, then each device."""
    pair, host = document.pair, document.host
    here = _machine("host", host)
    compressed = _file(pair.compressed, "the compressed model")
    if pair.folded_shapes is not None:
        compressed += ", its shapes folded"
    arms = []
    if any(name.startswith("original") for name in document.totals.host_evaluations):
        original = _file(pair.original, "the original model")
        arms.append(("original", [original, here, host.original_runtime or ""]))
    own, *members = document.ensemble
    also = f", also {', '.join(members)}" if members else ""
    kernels = f"{host.runtime} {host.runtime_version}, {own} kernels{also}"
    arms.append(("twin", [compressed, here, kernels]))
    numbers = device_numbers(document.devices)
    for device in document.devices:
        what = device.provenance
        ran = f"{what.runtime} {what.runtime_version}, {what.kernels} kernels"
        if what.total_nodes:
            ran += f", {taken_nodes(what)}"
        ran += f", {count_of(what.threads, 'thread')}"
        name = f"device {numbers[device.name]}" if numbers else "device"
        arms.append((name, [compressed, _machine(device.name, what), ran]))
    return [(arm, "; ".join(filter(None, parts))) for arm, parts in arms]


def device_numbers(devices: Sequence[RunDevice]) -> dict[str, str]:
    """Return by what number tables call a device, where there are several; names are too long."""
    numbers = {device.name: str(k) for k, device in enumerate(devices, 1)}
    return numbers if len(numbers) > 1 else {}


def _machine(name: str, what: Provenance | RunHost) -> str:
    return f"{name}: {', '.join(filter(None, (what.soc, what.machine, what.os)))}"


def _file(path: str | None, otherwise: str) -> str:
    return PurePath(path).name if path else otherwise


def taken_nodes(device: Provenance) -> str:
    """Return the words, with what the accelerator computes on; of TFLite Micro, its arena.

    Of a model that was compiled for the CPU no nodes are counted.

    Args:
        device: what is known of it.

    """
    if device.arena_bytes is not None:
        return f"an arena of {device.arena_bytes:,} bytes"
    if device.kernels == "compiled-cpu":
        return "compiled for the CPU"  # by XNNPACK, which is counted nowhere
    taken, known = device.delegated_nodes or 0, device.total_nodes
    nodes = count_of(known, "node") if known else "? nodes"
    if device.precision is None:
        return f"{taken} of {nodes} delegated"
    adapter = f" on {device.adapter}" if device.adapter else ""
    return f"{taken} of {nodes} accelerated{adapter}, {device.precision}"


def folded_line(pair: RunPair) -> str:
    """Return which operators constants replaced, and what was proven; empty where none did.

    Args:
        pair: the pair of a run, as its header and its document have it.

    """
    folded = pair.folded_shapes
    if folded is None:
        return ""
    inputs = folded.inputs
    operators, kernels = (", ".join(names) for names in (folded.operators, folded.equal_under))
    return printable(
        f"shapes folded: {operators} as constants; outputs equal to the file's own on"
        f" {inputs} seed{'s' * (inputs != 1)} under the host's {kernels} kernels"
    )
