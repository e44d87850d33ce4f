"""`edgeflare doctor`: what is missing, and how to install it."""

from __future__ import annotations

import json
import platform
import shlex
import shutil
import sys
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from edgeflare.cli import run_options
from edgeflare.cli.console import Console
from edgeflare.cli.option_values import complete_device
from edgeflare.devices.device import connect
from edgeflare.devices.profile import EMULATED_ALL
from edgeflare.devices.profile_lookup import find_shipped_profile, list_profiles
from edgeflare.devices.transports.transport_plugin import Check, is_installed
from edgeflare.devices.transports.transport_registry import transports
from edgeflare.errors import EdgeFlareError, UserError, kind_at_named_path
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_blocks
from edgeflare.shipped_files import shipped_folders
from edgeflare.trust import Trust, decided_by_user
from edgeflare_protos import __version__
from edgeflare_protos.kernel_sets import RUNTIME_PACKAGES, VENDOR_SDKS, equipped_vendors

AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print everything as JSON, for a report of a bug."),
]

Example = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write the example, a LeNet-4 and its int8 version with 200 inputs, into a new folder"
        " instead.",
    ),
]
KnownIssues = Annotated[
    bool,
    typer.Option("--known-issues", help="List what the world knows of faults in kernels instead."),
]
Probe = Annotated[
    bool,
    typer.Option("--probe", help="With --known-issues: try each on a device, in two minutes."),
]
Versions = Annotated[
    str | None,
    typer.Option(
        metavar="VERSIONS",
        help="With --probe: try them on these released versions of the runtime, which pip installs"
        " once: 2.1.6,2.2.0, or all.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_device,
        help="With --probe: the device, as `edgeflare conform` takes one; by default this host with"
        " all its kernel sets.",
    ),
]

_EXAMPLE: Final = "examples/fashion_lenet4"

_REINSTALL: Final = "pip install --force-reinstall edgeflare"

_INSTALL_SDK: Final = (
    "Intel: pip install ai-edge-litert-sdk-intel, and Intel's NPU driver;"
    " Qualcomm, MediaTek, Google Tensor: ai-edge-litert-sdk-qualcomm, -mediatek, -google-tensor,"
    " and the vendor's libLiteRtDispatch_*.so"
)


def doctor(
    *,
    example: Example = None,
    known_issues: KnownIssues = False,
    probe: Probe = False,
    device: Device = None,
    versions: Versions = None,
    trust: run_options.Trust = False,
    as_json: AsJson = False,
) -> None:
    """Say what this machine has, what it lacks, and the command that installs it.

    With --example it writes a pair of models to try EdgeFlare on:

        edgeflare doctor --example fashion
        edgeflare check fashion

    With --known-issues it lists what the world knows of faults in kernels, with their threads and
    work-arounds, and --probe says which of them show on a device:

        edgeflare doctor --known-issues
        edgeflare doctor --known-issues --probe --device emulated-builtin

    Exit codes: 0 said; 2 the command has to be corrected; 3 a device failed, or each of its
    kernel sets.
    """
    if probe and not known_issues:
        raise UserError("--probe tries known issues: add --known-issues")
    for name, given in (("--device", device), ("--versions", versions)):
        if given is not None and not probe:
            raise UserError(f"{name} says where known issues are tried: add --known-issues --probe")
    if device is not None and versions is not None:
        raise UserError("--versions are of this host: leave --device out")
    if example is not None:
        if known_issues or as_json:
            raise UserError("--example writes a pair and says nothing else: leave the others out")
        _write_example(example)
        return
    if known_issues:
        place = (device or EMULATED_ALL) if probe else None
        _list_issues(place, versions, decided_by_user(trust), as_json=as_json)
        return
    checks = check_installation()
    if as_json:
        known = {  # what a report of a bug needs; no name of the machine or its user
            "edgeflare": __version__,
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()),
            "checks": [asdict(check) for check in checks],
        }
        typer.echo(json.dumps(known, indent=1))
        return
    rows = [
        (
            "ok" if check.found else "MISSING" if check.needed else "-",
            check.name,
            check.found or check.mend,
        )
        for check in checks
    ]
    print_blocks(Console(), Table.of_words(("", "what", "found, or to get it"), rows))


def _write_example(folder: Path) -> None:
    """Write the example pair into a new folder, and say what to try."""
    shipped = next(
        (there for there in shipped_folders("example", _EXAMPLE) if there.is_dir()), None
    )
    if shipped is None:
        raise UserError(f"the example is absent from this installation: {_REINSTALL}")
    try:
        shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("__pycache__"))
    except FileExistsError:
        raise UserError(f"{folder} is there already: name a new folder") from None
    except OSError as error:
        said = error.strerror or "a part of the example could not be copied"
        raise kind_at_named_path(error)(f"cannot write {folder}: {said}") from None
    typer.echo(f"{folder} has a pair of models and their inputs; try:\n")
    typer.echo(f"    edgeflare check {shlex.quote(str(folder))} --device emulated-builtin")


def _list_issues(device: str | None, versions: str | None, trust: Trust, *, as_json: bool) -> None:
    """Print known issues, tried on a device where one is named, or on versions of the runtime."""
    from edgeflare.cli.known_issue_listing import (  # noqa: PLC0415 - loads a room
        described_issues,
        print_issues,
        probed_devices,
        probed_versions,
    )
    from edgeflare.conform.findings.known_issues import known_issues  # noqa: PLC0415 - likewise

    issues = known_issues()
    probed = None
    if versions is not None:
        probed = probed_versions(issues, versions)
    elif device is not None:
        probed = probed_devices(issues, device, trust)
    if as_json:
        typer.echo(json.dumps(described_issues(issues, probed), indent=1, ensure_ascii=False))
    else:
        print_issues(issues, probed)


def check_installation() -> list[Check]:
    """Look at everything that EdgeFlare can use."""
    interpreted = is_installed("tflite-runtime")
    return [
        Check("Python", ".".join(map(str, sys.version_info[:3])), True, "install Python 3.10+"),
        _package(
            "ai-edge-litert",
            "pip install ai-edge-litert",
            needed=not interpreted,
        ),
        _package("tflite-runtime", "pip install 'edgeflare[tflite-runtime]' (Python 3.11 or less)"),
        *(
            _package(
                runtime_package.distribution,
                f"{runtime_package.mend} {runtime_package.remark}".strip(),
            )
            for runtime_package in RUNTIME_PACKAGES.values()
        ),
        check_npu(),
        _package("onnxruntime", "pip install 'edgeflare[onnx]'"),
        _package("jax", "pip install 'edgeflare[whitebox]' (gradients)"),
        _package("scikit-learn", "pip install 'edgeflare[whitebox]' (inspect), or [repair]"),
        *(check for plugin in transports().values() for check in plugin.checks()),
        _bundles(),
        _profiles(),
        _agent(),
    ]


def _package(name: str, mend: str, *, needed: bool = False) -> Check:
    return Check(name, version(name) if is_installed(name) else "", needed, mend)


def _bundles() -> Check:
    """Look for what makes bundles, the agents that are sent to devices."""
    parts = {name: shutil.which(name) is not None for name in ("apt-get", "dpkg-deb")}
    parts["pip"] = find_spec("pip") is not None
    absent = [name for name, there in parts.items() if not there]
    mend = f"no {', '.join(absent)}: work in a container of Debian 12 or newer"
    return Check("bundles, for devices", "" if absent else ", ".join(parts), False, mend)


def _profiles() -> Check:
    """Look for profiles, without a look at their devices."""
    usable, others = list_profiles()
    untrusted = [other.name for other in others if other.untrusted]
    broken = [other.name for other in others if not other.untrusted]
    found = str(len(usable))
    found += f"; not trusted: {', '.join(untrusted)}" if untrusted else ""
    found += f"; broken: {', '.join(broken)}" if broken else ""
    return Check("profiles", found, True, _REINSTALL)


def _agent() -> Check:
    """Start an agent on this machine."""
    name = "agent, emulated"
    try:
        with connect(find_shipped_profile("emulated-builtin")) as device:
            told = device.provenance
    except EdgeFlareError as error:
        return Check(name, "", True, f"{error}; {_REINSTALL}")
    found = f"{told.runtime} {told.runtime_version} on {told.machine}, {told.cores} cores"
    return Check(name, found, True, _REINSTALL)


def check_npu() -> Check:
    """Look for a vendor's libraries; whether there is an NPU shows when a model is opened."""
    found = find_spec("ai_edge_litert")
    vendors: tuple[str, ...] = ()
    if found is not None and found.origin is not None:
        installed = {package for package in VENDOR_SDKS.values() if is_installed(package)}
        vendors = equipped_vendors(Path(found.origin).parent, installed)
    return Check('NPU libraries, for kernels = "npu"', ", ".join(vendors), False, _INSTALL_SDK)
