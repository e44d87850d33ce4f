"""Real bundles: made from Debian's packages and real wheels, and run."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bundles import bundle_of
from edgeflare.devices.bundle.build_bundle import Bundle, build_bundle, cache_folder, unpack_bundle
from edgeflare.devices.bundle.tree import unpack_tree
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.errors import InfrastructureError

Images = NDArray[np.float32]

pytestmark = [pytest.mark.bundle, pytest.mark.slow, pytest.mark.timeout(1800)]

NOBODY = 65534


@pytest.fixture(scope="module")
def native() -> Bundle:
    """A bundle for this machine, with the runtime that old boards have."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("there is a bundle for this machine on x86_64 only")
    return bundle_of("linux-x86_64", "tflite-runtime")


@pytest.fixture(scope="module")
def unpacked(native: Bundle) -> Path:
    return unpack_bundle(native)


@contextmanager
def running(command: list[str], environment: dict[str, str] | None = None) -> Iterator[Profile]:
    """An agent that runs as long as this context, and the profile that reaches it."""
    agent = subprocess.Popen(
        [*command, "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={} if environment is None else environment,
    )
    assert agent.stdout is not None
    try:
        port = json.loads(agent.stdout.readline())["port"]
        yield Profile(
            name="bundle", transport="address", address=f"127.0.0.1:{port}", kernels="builtin"
        )
    finally:
        agent.communicate(timeout=300)
    assert agent.returncode == 0


def answers(profile: Profile, model: Path, images: Images) -> NDArray[np.generic]:
    with connect(profile) as device:
        return device.open(model).submit(images).result(200).outputs


def test_the_same_inputs_make_the_same_bundle(native: Bundle, tmp_path: Path) -> None:
    (tmp_path / "apt").symlink_to(cache_folder() / "apt")
    steps: list[str] = []
    mask = os.umask(0o077)
    try:
        again = build_bundle("linux-x86_64", "tflite-runtime", tmp_path, steps.append)
    finally:
        os.umask(mask)

    assert again.path != native.path
    assert again.sha256 == native.sha256
    assert steps  # it was truly made again


def test_what_is_in_the_cache_is_not_made_again(native: Bundle) -> None:
    steps: list[str] = []
    again = build_bundle("linux-x86_64", "tflite-runtime==2.14.0", observer=steps.append)

    assert again == native
    assert not steps


def test_everything_in_it_has_its_licence(unpacked: Path) -> None:
    versions = json.loads((unpacked / "bundle.json").read_text())
    licences = unpacked / "licenses"

    assert {"libc6", "libstdc++6"} < set(versions["debian"])
    for package in versions["debian"]:
        assert (licences / "debian" / package / "copyright").stat().st_size > 100
    assert (licences / "debian" / "common-licenses" / "LGPL-2.1").stat().st_size > 10_000
    for wheel in versions["wheels"]:
        assert any(text.stat().st_size > 100 for text in (licences / wheel).iterdir())


def test_it_is_small_and_holds_neither_sources_nor_links_nor_tests(
    native: Bundle, unpacked: Path
) -> None:
    for bundle in (native, bundle_of("linux-aarch64")):
        assert bundle.path.stat().st_size < 45e6
    files = [path for path in unpacked.rglob("*") if not path.is_dir()]

    assert len(files) > 500
    assert not [path for path in files if path.is_symlink() or path.suffix == ".py"]
    assert not [path for path in files if "tests" in path.parts]


def test_it_runs_with_an_empty_environment_from_any_folder(
    native: Bundle, tmp_path: Path, model: Path, images: Images
) -> None:
    """With a space and a quote in its path, through a link, and with another numpy in the way."""
    home = tmp_path / "it's in here"
    unpack_tree(native.path, home)
    (tmp_path / "agent").symlink_to(home / "agent")
    (tmp_path / "numpy.py").write_text("raise ImportError('not mine')")
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere"}
    store = ["--store", str(tmp_path / "store")]
    with running([str(tmp_path / "agent"), *store], environment) as profile:
        outputs = answers(profile, model, images)
        with connect(profile) as device:
            told = device.provenance

    assert np.isfinite(outputs.astype(np.float64)).all()
    assert outputs.shape == (len(images), 3)
    assert (told.runtime, told.runtime_version) == ("tflite-runtime", "2.14.0")
    assert told.machine == "x86_64"


def test_the_old_runtime_answers_as_the_new_one_but_not_to_the_bit(
    unpacked: Path, tmp_path: Path
) -> None:
    """On an int8 model, whose nodes the old one never gives to XNNPACK."""
    pair = Path(__file__).parents[3] / "examples" / "fashion_lenet4"
    with np.load(pair / "seeds.npz") as seeds:
        pixels = seeds["images"].reshape(-1, 28, 28, 1)
    inputs = (pixels.astype(np.int16) - 128).astype(np.int8)
    xnnpack = Profile(name="host", transport="emulated", kernels="xnnpack")
    with running([str(unpacked / "agent"), "--store", str(tmp_path)]) as profile:
        old = answers(profile, pair / "compressed.tflite", inputs)
    new = answers(xnnpack, pair / "compressed.tflite", inputs)

    differ = (old != new).any(axis=1).mean()
    assert 0 < differ < 0.2
    assert (old.argmax(axis=1) == new.argmax(axis=1)).mean() > 0.95


def test_todays_runtime_answers_as_on_the_host_to_the_bit(
    native: Bundle, tmp_path: Path, model: Path, images: Images
) -> None:
    """Its wheel for x86_64 also has plugins that are linked to libraries of NPUs' makers."""
    bundle = bundle_of(native.target, "litert")
    home = tmp_path / "bundle"
    unpack_tree(bundle.path, home)
    with running([str(home / "agent"), "--store", str(tmp_path / "store")]) as profile:
        outputs = answers(profile, model, images)
        with connect(profile) as device:
            told = device.provenance
    host = answers(Profile(name="host", transport="emulated", kernels="builtin"), model, images)

    assert bundle.path.stat().st_size < 45e6
    assert bundle.runtime == f"{told.runtime}=={told.runtime_version}"
    assert told.runtime == "ai-edge-litert"
    assert not list(home.glob("packages/ai_edge_litert/vendors"))
    np.testing.assert_array_equal(outputs, host)


def test_it_runs_as_a_stranger_from_a_read_only_folder_where_nothing_else_is(
    native: Bundle, tmp_path: Path, model: Path, images: Images
) -> None:
    """As on a phone: a shell, a folder for temporary files, and a device or two."""
    busybox = shutil.which("busybox")
    if os.geteuid() != 0:
        pytest.skip("only root can enter another root directory")
    if busybox is None:
        pytest.skip("no busybox for a shell: apt-get install busybox-static")
    root = tmp_path / "root"
    unpack_tree(native.path, root / "bundle")
    (root / "bin").mkdir()
    shutil.copy(busybox, root / "bin" / "sh")
    for applet in ("readlink", "dirname"):
        (root / "bin" / applet).symlink_to("sh")
    (root / "dev").mkdir()
    for device, minor in (("null", 3), ("urandom", 9)):
        os.mknod(root / "dev" / device, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        (root / "dev" / device).chmod(0o666)
    (root / "data" / "local" / "tmp").mkdir(parents=True)
    (root / "data" / "local" / "tmp").chmod(0o1777)
    root.chmod(0o755)
    chroot = ["chroot", f"--userspec={NOBODY}:{NOBODY}", str(root)]
    with running([*chroot, "/bundle/agent"], {"PATH": os.environ["PATH"]}) as profile:
        (agent,) = running_in(root)
        assert agent.stat().st_uid == NOBODY
        outputs = answers(profile, model, images)

    assert outputs.shape == (len(images), 3)
    store = root / "data" / "local" / "tmp" / f"edgeflare-{NOBODY}" / "models"
    assert {path.stat().st_uid for path in store.iterdir()} == {NOBODY}


def running_in(root: Path) -> list[Path]:
    """The processes, as folders of /proc, that have this root directory."""
    return [path.parent for path in Path("/proc").glob("[0-9]*/root") if link(path) == root]


def link(path: Path) -> Path | None:
    try:
        return path.readlink()
    except OSError:
        return None


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bundles").write_text("in the way")
    with pytest.raises(InfrastructureError, match="bundles") as failure:
        build_bundle("linux-x86_64", "litert", tmp_path)

    assert "\n" not in str(failure.value)
