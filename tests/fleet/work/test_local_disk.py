"""Folders on network file systems are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.fleet.work.local_disk import file_system, require_local_disk

MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
tmpfs /tmp tmpfs rw 0 0
server:/home /lab nfs4 rw 0 0
/dev/sdb1 /lab/scratch xfs rw 0 0
share /with\\040space cifs rw 0 0
sshfs /far fuse.sshfs rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mounts"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/lab/runs/r1", "nfs4"),
        ("/lab", "nfs4"),
        ("/with space/r", "cifs"),
        ("/far/off", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_refused_by_its_kind(
    mounts: Path, refusal: Callable[..., str], path: str, kind: str
) -> None:
    message = refusal(require_local_disk, Path(path), mounts)
    assert path in message
    assert kind in message


@pytest.mark.parametrize("path", ["/lab/scratch/r1", "/laboratory", "/home/r1", "/"])
def test_a_disk_of_the_host_is_not(mounts: Path, path: str) -> None:
    require_local_disk(Path(path), mounts)


def test_a_link_is_followed_and_no_list_refuses_nothing(
    mounts: Path, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to("/lab/runs")
    assert "nfs4" in refusal(require_local_disk, link / "r1", mounts)
    assert file_system(Path("/lab"), tmp_path / "absent") == ""
    require_local_disk(tmp_path)
