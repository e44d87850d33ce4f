"""The commands that look further into what a check has seen."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import join
from typing import Final

from edgeflare.check.sections import Named

_INPUTS: Final = {
    "check --mend": "--inputs",
    "layers": "--inputs",
    "repair": "--seeds",
    "search": "--seeds",
    "survey": "--inputs",
}
"""The option by which a command takes other inputs than the pair's."""


def command_about(pair: str | None, compressed: str, inputs: Path | None, device: str) -> Named:
    """Return what makes commands about what is checked.

    Args:
        pair: the folder of its `pair.toml`; None where there is a compressed model alone.
        compressed: the path of the compressed model.
        inputs: other inputs than the pair's; None without.
        device: the name of the first device.

    """
    return partial(_command, pair, compressed, inputs, device)


def _command(pair: str | None, compressed: str, inputs: Path | None, device: str, name: str) -> str:
    if name == "conform":
        return join(["edgeflare", name, "--from", pair or compressed, "--device", device])
    if pair is None:
        return ""
    given = [] if inputs is None else [_INPUTS[name], str(inputs)]
    out = ["--out", f"runs/{Path(pair).resolve().name}-repaired"] if name == "repair" else []
    words, options = name.split()[:1], name.split()[1:]
    return join(["edgeflare", *words, pair, *given, "--device", device, *options, *out])
