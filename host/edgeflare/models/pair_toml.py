"""A pair as the text of a `pair.toml`."""

from __future__ import annotations

import json
from pathlib import Path

from edgeflare.models.pair import Pair
from edgeflare.models.pair_file import is_callable_module
from edgeflare.untrusted_text import for_json


def pair_toml(pair: Pair, name: str, compressed: str) -> str:
    """Return a `pair.toml` of a pair of images, which can be searched from any folder.

    Args:
        pair: whose paths become absolute where they were relative.
        name: of the pair in the file.
        compressed: the path of its compressed model.

    """
    original = pair.original
    if original is not None and not is_callable_module(original):
        original = str(Path(original).expanduser().absolute())
    interface = pair.interface.described()
    outputs, preprocess = interface.outputs, interface.preprocess or {}
    lines = [
        f"name = {_toml(name)}",
        *([f"original = {_toml(original)}"] if original is not None else []),
        f"compressed = {_toml(compressed)}",
        f"seeds = {_toml(str(pair.seeds.absolute()))}",
        *([f"classes = {_toml(pair.classes)}"] if pair.classes else []),
        *([f"outputs = {_toml(outputs)}"] if outputs else []),
        "",
        "[preprocess]",
        *(f"{key} = {_toml(value)}" for key, value in preprocess.items()),
    ]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Return a text, a number, or a list of them as TOML, which is the same as JSON for these."""
    return for_json(json.dumps(value, ensure_ascii=False))
