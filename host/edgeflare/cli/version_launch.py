"""Findings of a conformance run on released versions of the runtime: tried, written and printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from edgeflare.cli.console import Console
from edgeflare.conform.execution.model_opener import HOST_KERNELS
from edgeflare.conform.record.finding_files import StoredModel
from edgeflare.conform.runtime_arms import (
    COMPILED_KERNELS,
    RuntimeVersion,
    installed_versions,
    runtime_arms,
)
from edgeflare.conform.version_table import (
    VERSIONS_DOCUMENT,
    VERSIONS_TABLE,
    VersionDocument,
    version_document,
    version_section,
)
from edgeflare.models.runtime_versions import read_versions
from edgeflare.pages.markdown import markdown_section
from edgeflare.pages.terminal import print_section
from edgeflare.progress import observe, say
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_file import json_bytes


def installed(versions: str) -> list[RuntimeVersion]:
    """Return the versions that an option names, installed.

    Raises:
        UserError: one is none, or none can be installed here.
        InfrastructureError: pip fails.

    """
    console = Console(stderr=True)
    return installed_versions(read_versions(versions), lambda line: say(console, line))


def tried_on(
    models: Sequence[StoredModel], runtimes: Sequence[RuntimeVersion], kernels: str
) -> VersionDocument:
    """Try findings on each kernel set of some versions, with its progress shown.

    Args:
        models: the findings' least models.
        runtimes: the versions.
        kernels: the kernel set of the device that they were found on; a compiled model's is tried
            in each version, too.

    """
    console = Console(stderr=True)
    kernel_sets = (*HOST_KERNELS, *(own for own in COMPILED_KERNELS if own == kernels))
    with (
        runtime_arms(runtimes, kernel_sets, lambda line: say(console, line)) as arms,
        observe(console) as display,
    ):
        return version_document(
            models, arms, lambda name, done: display.worked(name, done, len(models))
        )


def write_versions(document: VersionDocument, folder: Path, *, shown: bool = True) -> None:
    """Write the table into a folder as `versions.json` and `versions.md`, and print it.

    Args:
        document: the table.
        folder: the folder.
        shown: whether it is printed.

    """
    section = version_section(document)
    write_atomically(folder / VERSIONS_DOCUMENT, json_bytes(msgspec.to_builtins(document)))
    write_atomically(folder / VERSIONS_TABLE, markdown_section(section).encode())
    if shown:
        print_section(Console(), section)
