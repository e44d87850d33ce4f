"""Commands where a folder can only be read, or its disk is full, as the kernel has it for root too.

They run in one process, in namespaces of its own: what is mounted there nobody else sees.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from called_commands import Said

_READ_ONLY = """set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
shift
exec "$@"
"""
_FULL = """set -e
cp -a "$1" "$1.kept"
mount -t tmpfs -o size="$2" tmpfs "$1"
cp -a "$1.kept/." "$1"
mkdir "$1/temporary"
export TMPDIR="$1/temporary"
dd if=/dev/zero of="$1/filling" bs=4096 2> "$1.kept/filled" || true
shift 2
exec "$@"
"""
_CALLS = """
import json, sys
from called_commands import call_here
told = [call_here(*command) for command in json.load(sys.stdin)]
print(json.dumps([(one.code, one.out, one.err) for one in told]))
"""


def where_it_is_read_only(folder: Path, *commands: Sequence[str | Path]) -> list[Said]:
    """Return what commands answer where a folder, with all in it, can only be read."""
    return _confined(commands, _READ_ONLY, folder)


def where_its_disk_is_full(folder: Path, *commands: Sequence[str | Path]) -> list[Said]:
    """Return what commands answer where a folder is a full disk, that of temporary files too.

    What they write on that disk is gone afterwards.
    """
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    return _confined(commands, _FULL, folder, str(2 * size + 2**20))


def _confined(
    commands: Sequence[Sequence[str | Path]], script: str, *arguments: str | Path
) -> list[Said]:
    confine = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    done = subprocess.run(
        [*confine, *arguments, sys.executable, "-c", _CALLS],
        input=json.dumps([[*map(str, command)] for command in commands]),
        env={"PYTHONPATH": str(Path(__file__).parent), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Said(*one) for one in json.loads(done.stdout)]
