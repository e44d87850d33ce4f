"""Device profiles found by their names: shipped ones, the user's own, and those of addresses.

Any of these names with "/KERNELS" behind it is that device on another kernel set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgeflare.devices.profile import EMULATED_ALL, Profile, names_all, split_kernels, without_all
from edgeflare.devices.profile_folders import (
    ProfileFile,
    ProfileFiles,
    ProfileLocation,
    profile_files,
    trust_needed,
)
from edgeflare.devices.profile_keys import (
    COMMON_KEYS,
    EXTENDS,
    ProfileKey,
    one_of,
    unexpected_value,
)
from edgeflare.devices.transports.transport_plugin import TransportPlugin
from edgeflare.devices.transports.transport_registry import transport, transport_names, transports
from edgeflare.errors import UserError, suggestion
from edgeflare.outside_text import read_toml
from edgeflare.trust import KEPT_ONLY, Request, Trust
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS, is_tflite_kernel_set

_MEANT = ' Did you mean "{}"?'


def find_profile(name: str, trust: Trust = KEPT_ONLY) -> Profile:
    """Return the profile of that name, or one made on the spot for an address with a scheme.

    The name has to be one that the user gave, never one from a document: for those there is
    `find_run_profiles`.

    Args:
        name: the name.
        trust: the user's decision on profiles of the working directory.

    Raises:
        UserError: there is none, its file says something that it must not, or needs the user's
            trust and does not have it.

    """
    if names_all(name):
        one = "emulated-gpu" if name == EMULATED_ALL else f"{without_all(name)}/builtin"
        raise UserError(
            f'device "{name}" is every kernel set of a device, which search, replay and conform'
            f" take alone: name one of them, such as {one}"
        )
    base, kernels = split_kernels(name)
    if kernels is not None:
        return replace(find_profile(base, trust).with_kernels(kernels), name=name)
    scheme, separator, rest = name.partition("://")
    if separator:
        return _addressed(name, scheme, rest, trust)
    files = profile_files()
    if name not in files:
        raise UserError(
            f'unknown device "{name}".{suggestion(name, files, _MEANT)} `edgeflare devices list`'
            f" names them all; {_address_forms()} need no profile"
        )
    return _load(name, files).with_trust(trust)


def find_profiles(names: Sequence[str], trust: Trust = KEPT_ONLY) -> list[Profile]:
    """Return the profiles of devices that are used together, each under a name of its own.

    A profile whose transport starts a device of its own may be named several times, and is found
    again by the names that it then has: "emulated-builtin#2" is another "emulated-builtin".

    Raises:
        UserError: see `find_profile`; or a device that there is only once is named twice.

    """
    found: list[Profile] = []
    names = [_without_number(name) for name in names]
    for at, name in enumerate(names):
        profile = find_profile(name, trust)
        before = names[:at].count(name)
        if before and not transport(profile.transport).starts_device:
            raise UserError(f'device "{name}" is named twice: name each device once')
        found.append(replace(profile, name=f"{name}#{before + 1}") if before else profile)
    return found


def find_run_profiles(names: Sequence[str]) -> list[Profile]:
    """Return the profiles of devices that a run names: shipped ones that are emulated here.

    A run directory may be a stranger's, so that nothing else is started or reached because of it.

    Raises:
        UserError: one is another device, which the user has to name again.

    """
    files = profile_files()
    for name in names:
        base, _ = split_kernels(_without_number(name))
        loaded = _load(base, files) if base in files else None
        if (
            loaded is None
            or any(file.location is not ProfileLocation.SHIPPED for file in loaded.line)
            or not transport(loaded.profile.transport).starts_device
        ):
            again = " ".join(f"--device {profile}" for profile in names)
            raise UserError(
                f'the run names the device "{name}", and only shipped emulated devices are used'
                f" because a run names them: if you trust it, name it again with {again}"
            )
    return find_profiles(names)


def find_shipped_profile(name: str) -> Profile:
    """Return a profile that is shipped under that name, whatever else has the name."""
    shipped = {
        key: [file for file in some if file.location is ProfileLocation.SHIPPED]
        for key, some in profile_files().items()
    }
    return _load(name, shipped).profile


def _without_number(name: str) -> str:
    """Return the name of a profile without the number that `find_profiles` added."""
    base, _, number = name.rpartition("#")
    device, _ = split_kernels(base)
    files = profile_files()
    if name in files or device not in files or not number.isdecimal():
        return name
    return base if transport(_load(device, files).profile.transport).starts_device else name


@dataclass(frozen=True, slots=True)
class UnusableProfile:
    """A profile that cannot be used.

    Attributes:
        name: name of the profile.
        complaint: what its file, or one that it extends, says that it must not, or that it needs
            the user's trust.
        untrusted: whether it is that.

    """

    name: str
    complaint: str
    untrusted: bool = False


def list_profiles() -> tuple[list[Profile], list[UnusableProfile]]:
    """Return all profiles, by name, and in a list of their own those that cannot be used."""
    files = profile_files()
    profiles: list[Profile] = []
    broken: list[UnusableProfile] = []
    for name in sorted(files):
        try:
            loaded = _load(name, files)
        except UserError as error:
            broken.append(UnusableProfile(name, str(error)))
            continue
        if loaded.request is None or KEPT_ONLY.allows(loaded.request):
            profiles.append(loaded.profile)
        else:
            complaint = f"not trusted: {loaded.request.what}"
            broken.append(UnusableProfile(name, complaint, untrusted=True))
    return profiles, broken


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A profile that was read.

    Attributes:
        profile: the profile.
        line: file of the profile, and those that it extends.
        request: what of it takes the user's trust, if anything.

    """

    profile: Profile
    line: Sequence[ProfileFile]
    request: Request | None

    def with_trust(self, trust: Trust) -> Profile:
        """Return the profile; refuse it where it needs the user's trust and does not have it."""
        if self.request is not None:
            trust.require(self.request)
        return self.profile


def _load(name: str, files: ProfileFiles) -> _Loaded:
    """Read a profile and those that it extends; what the extending one says goes first."""
    line, tables = _with_bases(files[name][0], files)
    path = line[0].path
    values = _read_keys([(file.path, table) for file, table in zip(line, tables, strict=True)])
    values.pop(EXTENDS.name, None)
    profile = Profile(name=name, source=path, transport=values["transport"]).with_values(values)
    return _Loaded(profile, line, trust_needed(line, values, files))


def _with_bases(
    file: ProfileFile, files: ProfileFiles
) -> tuple[list[ProfileFile], list[dict[str, object]]]:
    """Return a profile's file and those that it extends, with what each says.

    What a shipped profile or one of the user's extends is never a file of the working directory.
    One that extends its own name means the one of a folder that comes after its own.
    """
    path = file.path
    line = [file]
    tables: list[dict[str, object]] = []
    while True:
        at = line[-1]
        try:
            table = read_toml(at.path)
        except OSError as error:
            raise UserError(f"{at.path}: cannot be read: {error.strerror}") from None
        tables.append(table)
        if EXTENDS.name not in table:
            return line, tables
        base = str(EXTENDS.read(at.path, table[EXTENDS.name]))
        found = [
            profile_file for profile_file in files.get(base, ()) if profile_file.may_be_base_of(at)
        ]
        if not found:
            raise UserError(
                f'{at.path}: extends = "{base}": there is no such profile.'
                f"{suggestion(base, files, _MEANT)} `edgeflare devices list` names them all"
            )
        if base == at.name:
            found = found[found.index(at) + 1 :]
        if not found or found[0] in line:
            circle = " extends ".join([*(step.name for step in line), base])
            raise UserError(f"{path}: extends: goes round in a circle, {circle}")
        line.append(found[0])


def _addressed(name: str, scheme_name: str, rest: str, trust: Trust) -> Profile:
    """Make the profile of a device that is named by its address alone."""
    for registered, plugin in transports().items():
        scheme = plugin.scheme
        if scheme is None or scheme.name != scheme_name:
            continue
        try:
            values = scheme.read(rest)
        except ValueError as error:
            raise UserError(f'device "{name}": {error}') from None
        if scheme.extends is None:
            return Profile(name=name, transport=registered).with_values(values)
        base = _load(scheme.extends, profile_files()).with_trust(trust)
        return replace(base, name=name, source=None).with_values(values)
    raise UserError(
        f'device "{name}": unknown scheme "{scheme_name}://"; expected {_address_forms()}'
    )


def _address_forms() -> str:
    """Return the forms of all addresses, as a list in a sentence."""
    *most, last = (plugin.scheme.syntax for plugin in transports().values() if plugin.scheme)
    return f"{', '.join(most)} and {last}"


def _read_keys(files: Sequence[tuple[Path, Mapping[str, object]]]) -> dict[str, Any]:
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
