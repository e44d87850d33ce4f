"""The description of the device, from /proc and /sys; values that are absent are left out."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

_GETPROP = Path("/system/bin/getprop")


@dataclass(frozen=True)
class Machine:
    """What does not change while the agent runs; empty where the system does not tell.

    Attributes:
        machine: architecture as the kernel names it.
        soc: system on chip, or CPU model.
        cpu_features: as the kernel lists them, sorted.
        os: operating system and kernel, with versions.
        cores: logical cores that the agent may use.
        python_version: Python that runs the agent.

    """

    machine: str
    soc: str
    cpu_features: tuple[str, ...]
    os: str
    cores: int
    python_version: str


def describe(root: Path = Path("/")) -> Machine:
    """Return what the system under `root` says of itself."""
    # Of the first core where cores differ.
    cpuinfo: dict[str, str] = {}
    for line in _read(root / "proc/cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            cpuinfo.setdefault(key.strip(), value.strip())
    features = cpuinfo.get("flags") or cpuinfo.get("Features") or ""
    board = _read(root / "proc/device-tree/model").rstrip("\0")
    android = " ".join(filter(None, map(_property, ("ro.soc.manufacturer", "ro.soc.model"))))
    return Machine(
        machine=platform.machine(),
        soc=board or android or cpuinfo.get("model name") or cpuinfo.get("Hardware") or "",
        cpu_features=tuple(sorted(set(features.split()))),
        os=_operating_system(root),
        cores=_cores(),
        python_version=platform.python_version(),
    )


def governor(root: Path = Path("/")) -> str:
    """Return the CPU frequency governor, or nothing; several, if cores have different ones."""
    files = root.glob("sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
    return ", ".join(sorted({_read(file) for file in files} - {""}))


def temperatures(root: Path = Path("/")) -> dict[str, float]:
    """Return the temperature of each thermal zone in degrees Celsius."""
    readings: dict[str, float] = {}
    for zone in sorted(root.glob("sys/class/thermal/thermal_zone*"), key=_number):
        try:
            degrees = int(_read(zone / "temp")) / 1000
        except ValueError:
            continue
        name = _read(zone / "type") or zone.name
        readings[f"{name} ({zone.name})" if name in readings else name] = degrees
    return readings


def frequencies(root: Path = Path("/")) -> dict[str, float]:
    """Return the current frequency of each core in MHz."""
    readings = {}
    for core in sorted(root.glob("sys/devices/system/cpu/cpu[0-9]*"), key=_number):
        try:
            readings[core.name] = int(_read(core / "cpufreq/scaling_cur_freq")) / 1000
        except ValueError:
            continue
    return readings


def resident_bytes(pid: int, root: Path = Path("/")) -> int:
    """Return a process's resident memory, or 0 where it is gone or the system does not tell."""
    for line in _read(root / f"proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _operating_system(root: Path) -> str:
    kernel = f"{platform.system()} {platform.release()}"
    if release := _property("ro.build.version.release"):
        return f"Android {release}, {kernel}"
    for line in _read(root / "etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return f"{line.partition('=')[2].strip(chr(34))}, {kernel}"
    return kernel


def _property(name: str) -> str:
    """Return a property of Android, or nothing elsewhere."""
    if not _GETPROP.exists():
        return ""
    try:
        answer = subprocess.run([_GETPROP, name], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode(errors="replace").strip()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _number(path: Path) -> int:
    """Return the number at the end of a name, so that cpu10 comes after cpu9."""
    return int("".join(filter(str.isdigit, path.name)) or 0)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
