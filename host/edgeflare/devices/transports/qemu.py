"""The transport "qemu": the agent as a local process on an ARM core that QEMU emulates.

The kernels are those of the device, instruction by instruction; the speed is not. The agent and
its workers are the programs of the aarch64 bundle, and nothing of this host's Python.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from edgeflare.devices.bundle.build_bundle import build_bundle, unpack_bundle
from edgeflare.devices.profile_keys import RUNTIME, START_TIMEOUT_SECONDS, ProfileKey, text
from edgeflare.devices.transports.child_agent import ChildAgent, ChildTransport
from edgeflare.devices.transports.transport import Endpoint, allow_delegate
from edgeflare.devices.transports.transport_plugin import Check, TransportPlugin, check_program
from edgeflare.errors import UserError, suggestion

_PROGRAMS = ("qemu-aarch64-static", "qemu-aarch64")

_EMULATOR_VARIABLE = "EDGEFLARE_AGENT_EMULATOR"
"""Read by the bundle's script."""

_PROBE_SECONDS = 30.0
"""Seconds for what QEMU answers at once."""

_A53 = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
_A76 = f"{_A53} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp ssbs"

_CORES = {
    "cortex-a35": ("0xd04", _A53),
    "cortex-a53": ("0xd03", _A53),
    "cortex-a57": ("0xd07", _A53),
    "cortex-a72": ("0xd08", _A53),
    "cortex-a76": ("0xd0b", _A76),
    "neoverse-n1": ("0xd0c", _A76),
}
"""Part number and features of the cores that QEMU 7.2 knows, as Linux shows them."""


class QemuTransport(ChildTransport):
    """Runs the bundle of linux-aarch64 under QEMU in user mode; the bundle stays in the cache."""

    def start_agent(self, agent: ChildAgent) -> Endpoint:
        """Start the agent of the bundle on the core that the profile names."""
        qemu = find_qemu()
        if qemu is None:
            raise UserError(
                f'device "{self.profile.name}": QEMU is not on this machine (neither'
                f" {' nor '.join(_PROGRAMS)}); on Debian and Ubuntu: apt-get install"
                " qemu-user-static"
            )
        cpu = self.profile.cpu or ""
        known = _ask(qemu, "-cpu", "help").split()
        if cpu not in known:
            raise UserError(
                f'{self.profile.source}: cpu = "{cpu}": QEMU {_version(qemu)} does not know that'
                f" core{suggestion(cpu, known)}; `{Path(qemu).name} -cpu help` lists those that"
                " it knows"
            )
        home = unpack_bundle(build_bundle("linux-aarch64", self.profile.runtime))
        sysroot = agent.folder / "sysroot"
        _tell_of_core(sysroot, cpu, _version(qemu))
        emulator = shlex.join([qemu, "-cpu", cpu, "-L", str(sysroot)])
        environment = {**os.environ, _EMULATOR_VARIABLE: emulator}
        return agent.start([str(home / "agent"), *allow_delegate(self.profile)], environment)


def find_qemu() -> str | None:
    """Return the program that emulates aarch64 for single processes, or None."""
    return next(filter(None, map(shutil.which, _PROGRAMS)), None)


def _version(qemu: str) -> str:
    """Return QEMU's version, "7.2.22"."""
    match = re.search(r"version (\S+)", _ask(qemu, "--version"))
    return match[1] if match else ""


def _ask(qemu: str, *arguments: str) -> str:
    done = subprocess.run(
        [qemu, *arguments], capture_output=True, timeout=_PROBE_SECONDS, check=False
    )
    return done.stdout.decode(errors="replace")


def _tell_of_core(sysroot: Path, cpu: str, version: str) -> None:
    """Write what the emulated programs read of their machine, where QEMU shows the host's.

    QEMU looks for the files that they open below the sysroot first. Before 8.1 it shows them the
    host's /proc/cpuinfo, at which LiteRT crashes; later it makes one up, and this one is not read.
    """
    processors = os.cpu_count() or 1
    board = sysroot / "proc" / "device-tree" / "model"
    board.parent.mkdir(parents=True)
    board.write_text(f"{cpu}, emulated by QEMU {version}", encoding="utf-8")
    if cpu in _CORES:
        part, features = _CORES[cpu]
        (sysroot / "proc" / "cpuinfo").write_text(
            "".join(
                f"processor\t: {number}\n"
                "BogoMIPS\t: 100.00\n"
                f"Features\t: {features}\n"
                "CPU implementer\t: 0x41\n"
                "CPU architecture: 8\n"
                "CPU variant\t: 0x0\n"
                f"CPU part\t: {part}\n"
                "CPU revision\t: 0\n\n"
                for number in range(processors)
            ),
            encoding="utf-8",
        )


def _check_qemu() -> Check:
    mend = "apt-get install qemu-user-static"
    program = find_qemu()
    if program is None:
        return Check("QEMU, for ARM cores", "", False, mend)
    return check_program("QEMU, for ARM cores", program, "--version", mend)


PLUGIN = TransportPlugin(
    create=QemuTransport,
    keys=(
        RUNTIME,
        START_TIMEOUT_SECONDS,
        ProfileKey(
            "cpu",
            text('a core that QEMU knows, for example "cortex-a72"'),
            example="cortex-a72",
            needs_trust=False,
        ),
    ),
    needs_trust=False,
    starts_device=True,
    status=lambda _profile: "here" if find_qemu() else "no QEMU on this machine",
    checks=lambda: [_check_qemu()],
)
