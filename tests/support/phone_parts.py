"""The tree of a stand-in phone, from Debian's packages, fetched once and without root.

Real: `adbd`, from the newest Debian that this machine's apt sources lead to, which for Debian 12 is
its backports; and the shell and the commands of Android, mksh and toybox. Stood in for: two scripts
answer `getprop` and `uname` as a phone with an ARM core does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PACKAGES = ("adbd", "mksh", "toybox", "busybox-static")

BY_BUSYBOX = ("awk", "dd", "diff", "expr", "getopt", "gzip", "tr")
"""Commands that Android has and Debian's build of toybox leaves out."""

PROPERTIES = {
    "ro.build.version.release": "14",
    "ro.build.version.sdk": "34",
    "ro.hardware": "standin",
    "ro.product.cpu.abi": "arm64-v8a",
    "ro.product.cpu.abilist": "arm64-v8a",
    "ro.product.manufacturer": "EdgeFlare",
    "ro.product.model": "Stand-in",
    "ro.serialno": "STANDIN",
    "ro.soc.manufacturer": "QEMU",
    "ro.soc.model": "Cortex-A76",
}
"""What `getprop` knows."""

_GETPROP = """#!/bin/sh
while IFS='=' read -r name value; do
    if [ $# = 0 ]; then echo "[$name]: [$value]"; elif [ "$name" = "$1" ]; then echo "$value"; fi
done </system/build.prop
"""

_UNAME = """#!/bin/sh
# toybox is of the host's architecture, and would say so.
toybox uname "$@" | toybox sed s/x86_64/aarch64/g
"""

_MOUNTED = ("proc", "sys", "dev", "data/local/tmp", "sdcard")
_FETCH_SECONDS = 100


class PhoneUnavailable(Exception):  # noqa: N818 - says what a machine lacks
    """This machine cannot make a stand-in phone; the message says why."""


def phone_root() -> Path:
    """Return the tree; made on first use, and kept in the user's cache folder.

    Raises:
        PhoneUnavailable: no apt, or it knows no adbd.

    """
    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeflare"
    root = base / f"stand-in-phone-{made_by}"
    if not root.exists():
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base, prefix="stand-in-phone-") as folder:
            tree = Path(folder) / "root"
            _unpack(_fetch(Path(folder) / "apt"), tree)
            _furnish(tree)
            for old in base.glob("stand-in-phone-????????????????"):
                shutil.rmtree(old, ignore_errors=True)
            tree.rename(root)
    return root


def _fetch(folder: Path) -> list[Path]:
    """Download the packages and what they depend on, with an apt of our own."""
    sources = _sources()
    for path in ("state/lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    (folder / "sources.list").write_text("".join(f"deb {source} main\n" for source in sources))
    (folder / "status").touch()
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Default-Release": sources[-1].split()[-1],
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
    }
    (folder / "apt.conf").write_text("".join(f'{k} "{v}";\n' for k, v in settings.items()))
    environment = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
    _run("apt-get", "update", "--quiet", environment=environment)
    _run(
        *("apt-get", "install", "--yes", "--quiet", "--download-only", *PACKAGES),
        environment=environment,
    )
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _sources() -> list[str]:
    """Return this machine's own Debian source, and where it is Debian 12 its backports too."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise PhoneUnavailable("no stand-in phone: apt-get is absent; use Debian 12 or newer")
    targets = _run("apt-get", "indextargets", "--format", "$(CREATED_BY) $(REPO_URI) $(CODENAME)")
    for line in targets.splitlines():
        kind, *source = line.split()
        if kind == "Packages" and len(source) == 2 and "-" not in source[1]:
            mirror, codename = source
            newer = [f"{mirror} {codename}-backports"] if codename == "bookworm" else []
            return [f"{mirror} {codename}", *newer]
    raise PhoneUnavailable("no stand-in phone: apt has no lists; run `apt-get update` as root")


def _unpack(packages: list[Path], tree: Path) -> None:
    tree.mkdir()
    for package in packages:
        _run("dpkg", "-x", str(package), str(tree))
    for unneeded in ("usr/share", "etc"):
        shutil.rmtree(tree / unneeded)


def _furnish(tree: Path) -> None:
    """Add what adbd and its guests expect of Android."""
    commands = tree / "system" / "bin"
    commands.mkdir(parents=True)
    for name, shell in {"toybox": "toybox", "sh": "mksh-static"}.items():
        shutil.move(tree / "bin" / shell, commands / name)
    for name in _run(str(commands / "toybox")).split():
        (commands / name).symlink_to("toybox")
    (commands / "uname").unlink()
    shutil.move(tree / "bin" / "busybox", commands)
    for name in BY_BUSYBOX:
        (commands / name).symlink_to("busybox")
    shutil.rmtree(tree / "bin")
    (tree / "bin").symlink_to("system/bin")  # as Android has it
    for name, text in {"getprop": _GETPROP, "uname": _UNAME}.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    properties = "".join(f"{name}={value}\n" for name, value in PROPERTIES.items())
    (tree / "system" / "build.prop").write_text(properties)
    (tree / "etc").mkdir()
    (tree / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nshell:x:2000:2000::/:/bin/sh\n")
    (tree / "etc" / "group").write_text("root:x:0:\nshell:x:2000:\n")
    for name in _MOUNTED:
        (tree / name).mkdir(parents=True)


def _run(*command: str, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_FETCH_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PhoneUnavailable(f"no stand-in phone: {error}") from None
    if done.returncode:
        raise PhoneUnavailable(
            f"no stand-in phone: {' '.join(command[:2])}: {done.stderr.strip()[-300:]}"
        )
    return done.stdout
