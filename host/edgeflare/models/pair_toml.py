"""A pair as the text of a `pair.toml`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from math import isinf
from pathlib import Path
from typing import Final

from edgeflare.models.pair import Pair
from edgeflare.models.pair_file import is_callable_module
from edgeflare.models.pair_interface import PairInput, PairInterface
from edgeflare.models.run_pair import DEFAULT_DOMAIN
from edgeflare.untrusted_text import for_json

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""


def pair_toml(pair: Pair, folder: Path, name: str, compressed: Path, *, inputs: bool = True) -> str:
    """Return a `pair.toml` of a pair, which can be searched from any folder.

    Args:
        pair: the pair.
        folder: where the file is to lie; paths below it are relative to it, so that it can be moved
            with what it holds, and others absolute.
        name: name of the pair in the file.
        compressed: the path of its compressed model.
        inputs: whether it says what the inputs are.

    """
    original = pair.original
    if original is not None and not is_callable_module(original):
        original = _path(Path(os.path.expanduser(original)), folder)
    interface = pair.interface.described()
    called = pair.interface.invocation
    top = {
        "name": name,
        "original": original,
        "compressed": _path(compressed, folder),
        "seeds": _path(pair.seeds, folder),
        "classes": pair.classes,
        "outputs": interface.outputs,
        "signature": called.signature,
        "frames": called.frames,
        "fold_shapes": pair.fold_shapes,
    }
    lines = [f"{key} = {_toml(value)}" for key, value in top.items() if value]
    task = {"name": interface.task_name, **(interface.task_settings or {})}
    if interface.task is not None:
        lines += _table("task", task)
    if called.state:
        lines += _table("state", called.state)
    if called.shapes:
        lines += _table("shapes", called.shapes)
    if inputs and interface.inputs is None and interface.preprocess is not None:
        lines += _table("preprocess", interface.preprocess)
    elif inputs:
        for input_ in pair.interface.inputs:
            lines += _table(f"inputs.{_key(input_.name or 'input')}", _input(input_))
    for table, own in _own_of_the_device(pair.interface):
        lines += _table(f"device.{table}", own) if own else ()
    return "\n".join(lines) + "\n"


def _path(path: Path, folder: Path) -> str:
    path, folder = path.absolute(), folder.absolute()
    if not path.is_relative_to(folder):
        return str(path)
    below = path.relative_to(folder)
    # Up again it may leave the folder, and what begins with a tilde is read as somebody's home.
    return str(path if ".." in below.parts or str(below).startswith("~") else below)


def _own_of_the_device(interface: PairInterface) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield names and keys of the tables under `[device]`: what is otherwise there."""
    device = interface.device
    if device is None:
        return
    yield "task", _others(interface.task_settings, device.task_settings)
    for input_, there in zip(interface.inputs, device.inputs, strict=True):
        name = f"inputs.{_key(input_.name)}" if input_.name else "preprocess"
        yield name, _others(input_.settings, there.settings)


def _others(base: Mapping[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in settings.items() if base.get(key) != value}


def _input(input_: PairInput) -> dict[str, object]:
    """Return the table of an input."""
    said = {"domain": input_.domain if input_.domain != DEFAULT_DOMAIN else None}
    said |= {"tensor": input_.tensor or None, "array": input_.array or None}
    search = {} if input_.search else {"search": False}
    return {**{key: value for key, value in said.items() if value}, **search, **input_.settings}


def _table(name: str, table: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of a table, those of the tables in it last."""
    yield from ("", f"[{name}]")
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{_key(key)} = {_toml(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _table(f"{name}.{_key(key)}", value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml(key)


def _toml(value: object) -> str:
    """Return a text, a number, or a list of them as TOML, which is the same as JSON for these."""
    if isinstance(value, float) and isinf(value):
        return "inf" if value > 0 else "-inf"
    return for_json(json.dumps(value, ensure_ascii=False))
