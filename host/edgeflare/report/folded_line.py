"""What was folded in a compressed model before it ran, as a line for people."""

from __future__ import annotations

from edgeflare.models.run_pair import RunPair
from edgeflare.untrusted_text import printable


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
