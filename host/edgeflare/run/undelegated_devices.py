"""Devices whose runtime ran nodes of the model elsewhere than their profile asks."""

from __future__ import annotations

from collections.abc import Sequence

from edgeflare.run.run_document import RunDevice


def undelegated(devices: Sequence[RunDevice]) -> list[str]:
    """Return a line for each delegate that took no node, or accelerator that left some.

    That is no mistake: tflite-runtime 2.14 gives XNNPACK nothing of an 8-bit model. But then other
    kernels ran than the profile names, and what was found is of those.

    Args:
        devices: the run's.

    """
    lines = []
    for device in devices:
        name, what = device.name, device.provenance
        delegated, external = what.delegated_nodes, what.external_nodes
        if delegated is None or not what.total_nodes:
            continue  # it is not known
        gave = f"{what.runtime} {what.runtime_version} gave it none of the {what.total_nodes} nodes"
        # Of all that were delegated, where the agent is too old to tell XNNPACK's apart.
        if what.delegate and (delegated if external is None else external) == 0:
            lines.append(f"{name}: asked for the delegate {what.delegate}, but {gave}")
        if what.precision is not None and delegated < what.total_nodes:
            lines.append(
                f"{name}: asked for {what.kernels}, which took {delegated} of the"
                f" {what.total_nodes} nodes: the CPU runs the others"
            )
        if what.kernels == "xnnpack" and delegated == 0:
            lines.append(f"{name}: asked for xnnpack, but {gave}: optimized built-ins ran")
    return lines
