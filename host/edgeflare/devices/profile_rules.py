"""What the keys of a profile mean for one another: which a transport needs, and which it knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgeflare.devices.profile_keys import (
    COMMON_KEYS,
    ProfileKey,
    one_of,
    unexpected_value,
)
from edgeflare.devices.transports.transport_plugin import TransportPlugin
from edgeflare.devices.transports.transport_registry import (
    transport,
    transport_names,
    transports,
)
from edgeflare.errors import UserError
from edgeflare.suggestion import suggestion
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, is_tflite_kernel_set


def read_keys(files: Sequence[tuple[Path, Mapping[str, object]]]) -> dict[str, Any]:
    """Return the values of a profile, each checked, `transport` among them.

    Args:
        files: the path of the profile's file and of each that it extends, in that order, with what
            they say; what an earlier one says counts.

    Raises:
        UserError: a key is unknown or of another transport, or one that the transport needs is
            missing, or a value is not what its key accepts; names the file and the key.

    """
    plugin = _transport_of(files)
    own = {key.name: key for key in plugin.keys} if plugin else {}
    values: dict[str, Any] = {}
    misplaced: dict[str, list[str]] = {}
    for path, table in files:
        said = {}
        for name, value in table.items():
            key = COMMON_KEYS.get(name) or own.get(name)
            if key is None:
                owners = _transports_with(path, name)
                misplaced.setdefault(name, list(owners))
                key = next(iter(owners.values()))
            said[name] = key.read(path, value)
        if plugin is not None and plugin.check_extension is not None:
            plugin.check_extension(path, said, values)
        values = {**said, **values}
    _check_complete(files[0][0], values, misplaced, own.values())
    return values


def _transport_of(
    files: Sequence[tuple[Path, Mapping[str, object]]],
) -> TransportPlugin | None:
    said = [(path, table["transport"]) for path, table in files if "transport" in table]
    for path, value in said:
        if value not in transport_names():
            expected = one_of(*transport_names()).expected
            raise unexpected_value(path, "transport", value, expected)
    return transport(str(said[0][1])) if said else None


def _transports_with(path: Path, name: str) -> dict[str, ProfileKey]:
    """Return the key of that name, by the names of the transports that know it; at least one."""
    found = {
        owner: key
        for owner, plugin in transports().items()
        for key in plugin.keys
        if key.name == name
    }
    if not found:
        own = dict.fromkeys(key.name for plugin in transports().values() for key in plugin.keys)
        known = [*COMMON_KEYS, *own]
        hint = suggestion(name, known, 'did you mean "{}"? ')
        raise UserError(f'{path}: unknown key "{name}"; {hint}known keys: {", ".join(known)}')
    return found


def _check_complete(
    path: Path,
    values: Mapping[str, object],
    misplaced: Mapping[str, Sequence[str]],
    keys: Iterable[ProfileKey],
) -> None:
    """Refuse a profile whose keys do not go together.

    It lacks a key that its transport needs, has one of another's, or a delegate with the kernels of
    a runtime that loads none.
    """
    if "transport" not in values:
        raise UserError(
            f"{path}: transport is missing; expected {_alternatives(transport_names())}, or a"
            " profile that it extends"
        )
    for name, owners in misplaced.items():
        raise UserError(
            f"{path}: {name}: belongs to transport = {_alternatives(owners)}, but this profile's is"
            f' "{values["transport"]}"'
        )
    for key in keys:
        if key.example is not None and key.name not in values:
            raise UserError(f'{path}: {key.name} is missing; expected {key.name} = "{key.example}"')
    kernels = str(values.get("kernels", TFLITE_KERNEL_SETS[0]))
    if "delegate" in values and not is_tflite_kernel_set(kernels):
        raise UserError(
            f"{path}: delegate: belongs to kernels = {_alternatives(TFLITE_KERNEL_SETS)}, but this"
            f' profile\'s are "{kernels}"'
        )


def _alternatives(names: Iterable[str]) -> str:
    *most, last = (f'"{name}"' for name in names)
    return f"{', '.join(most)} or {last}" if most else last
