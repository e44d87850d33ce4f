from __future__ import annotations

import os
from pathlib import Path

from edgeflare_agent import machine


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_a_system_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    device = machine.describe(tmp_path)
    assert device.soc == ""
    assert device.cpu_features == ()
    assert device.machine
    assert device.cores >= 1
    assert machine.governor(tmp_path) == ""
    assert machine.temperatures(tmp_path) == {}
    assert machine.frequencies(tmp_path) == {}
    assert machine.resident_bytes(1, tmp_path) == 0


def test_a_board_is_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        "proc/cpuinfo",
        "processor\t: 0\nFeatures\t: fp asimd aes\n\nprocessor\t: 1\nFeatures\t: fp\n\n"
        "Hardware\t: BCM2835\n",
    )
    write(tmp_path, "etc/os-release", 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12"\n')
    device = machine.describe(tmp_path)
    assert device.soc == "BCM2835"
    assert device.cpu_features == ("aes", "asimd", "fp")
    assert device.os.startswith("Debian GNU/Linux 12, Linux ")
    write(tmp_path, "proc/device-tree/model", "Raspberry Pi 4 Model B\0")
    assert machine.describe(tmp_path).soc == "Raspberry Pi 4 Model B"


def test_readings_come_in_units_and_in_order(tmp_path: Path) -> None:
    for number, milli in ((10, "61500"), (2, "40000"), (3, "broken"), (4, "-5000")):
        write(tmp_path, f"sys/class/thermal/thermal_zone{number}/temp", f"{milli}\n")
    write(tmp_path, "sys/class/thermal/thermal_zone2/type", "cpu-thermal\n")
    write(tmp_path, "sys/class/thermal/thermal_zone10/type", "cpu-thermal\n")
    assert list(machine.temperatures(tmp_path).items()) == [
        ("cpu-thermal", 40.0),
        ("thermal_zone4", -5.0),
        ("cpu-thermal (thermal_zone10)", 61.5),
    ]
    for core, kilohertz in ((0, "1500000"), (1, "600000")):
        folder = f"sys/devices/system/cpu/cpu{core}/cpufreq"
        write(tmp_path, f"{folder}/scaling_cur_freq", kilohertz)
        write(tmp_path, f"{folder}/scaling_governor", "ondemand\n")
    assert machine.frequencies(tmp_path) == {"cpu0": 1500.0, "cpu1": 600.0}
    assert machine.governor(tmp_path) == "ondemand"


def test_our_own_memory_is_plausible() -> None:
    assert 5e6 < machine.resident_bytes(os.getpid()) < 5e9
