"""Where profiles are kept, and which of them take the user's trust before they are used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from edgeflare.devices.profile_keys import COMMON_KEYS
from edgeflare.devices.transports.transport_registry import transport
from edgeflare.outside_text import MOST_TOML_BYTES
from edgeflare.regular_file import read_regular
from edgeflare.shipped_files import shipped_folders
from edgeflare.trust import Request


class ProfileLocation(IntEnum):
    """Where a profile is kept; of two of the same name the first one counts."""

    WORKING_DIRECTORY = 0
    CONFIGURATION = 1
    SHIPPED = 2


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """A profile file, and where it is kept."""

    path: Path
    location: ProfileLocation

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.path.stem

    def may_be_base_of(self, other: ProfileFile) -> bool:
        """Tell whether another may extend this one, by where the two are kept."""
        here = ProfileLocation.WORKING_DIRECTORY
        return self.location is not here or other.location is here


ProfileFiles = Mapping[str, Sequence[ProfileFile]]
"""The files of each name, the one that counts first."""


def profile_files() -> dict[str, list[ProfileFile]]:
    """Return the files of each name; a copy of a shipped profile counts as that one."""
    files: dict[str, list[ProfileFile]] = {}
    for location, folder in _folders():
        for path in sorted(folder.glob("*.toml")):
            if not path.is_fifo():  # which would be waited for
                files.setdefault(path.stem, []).append(ProfileFile(path, location))
    for name, some in files.items():
        shipped = [file for file in some if file.location is ProfileLocation.SHIPPED]
        files[name] = [
            file
            for file in some
            if not (
                file.location is ProfileLocation.WORKING_DIRECTORY
                and any(_same(file, profile_file) for profile_file in shipped)
            )
        ]
    return files


def trust_needed(
    line: Sequence[ProfileFile], values: Mapping[str, object], files: ProfileFiles
) -> Request | None:
    """Return what a profile asks for that takes the user's trust; None if nothing.

    That is what a file of the working directory does: such a folder may be a stranger's.

    Args:
        line: the profile's file, and those that it extends.
        values: what they say together.
        files: the files of each name.

    """
    if all(file.location is not ProfileLocation.WORKING_DIRECTORY for file in line):
        return None
    plugin = transport(str(values["transport"]))
    known = [*COMMON_KEYS.values(), *plugin.keys]
    keys = [key for key in known if key.needs_trust and key.name in values]
    shadows = any(_shadows_shipped(file, files) for file in line)
    does = [f'uses the transport "{values["transport"]}"'] if plugin.needs_trust else []
    does += [f"sets {', '.join(key.name for key in keys)}"] if keys else []
    does += ["takes the place of a shipped profile"] if shadows else []
    if not does:
        return None
    contents = {
        f"{at} {file.name}": read_regular(file.path, MOST_TOML_BYTES)
        for at, file in enumerate(line)
    }
    # Paths are relative to the file, so that the same text elsewhere means other programs.
    contents |= {
        key.name: str(values[key.name]).encode()
        for key in known
        if key.relative_path and key.name in values
    }
    return Request(f"the profile {line[0].path} {' and '.join(does)}", contents)


def _folders() -> Iterator[tuple[ProfileLocation, Path]]:
    yield ProfileLocation.WORKING_DIRECTORY, Path("device_profiles")
    yield ProfileLocation.CONFIGURATION, Path(os.path.expanduser("~/.config/edgeflare/devices"))
    for folder in shipped_folders("device_profiles", "device_profiles"):
        yield ProfileLocation.SHIPPED, folder


def _same(file: ProfileFile, shipped: ProfileFile) -> bool:
    try:
        return file.path.samefile(shipped.path) or (
            file.path.is_file()
            and file.path.stat().st_size == shipped.path.stat().st_size
            and file.path.read_bytes() == shipped.path.read_bytes()
        )
    except OSError:
        return False


def _shadows_shipped(file: ProfileFile, files: ProfileFiles) -> bool:
    return file.location is ProfileLocation.WORKING_DIRECTORY and any(
        other.location is ProfileLocation.SHIPPED for other in files.get(file.name, ())
    )
