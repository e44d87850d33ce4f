"""Devices by their names: profiles and where they lie, addresses, kernel sets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgeflare import shipped_files
from edgeflare.devices.device_check import kernel_set_devices
from edgeflare.devices.profile import Profile, names_all, split_kernels
from edgeflare.devices.profile_folders import (
    ProfileFile,
    ProfileLocation,
    profile_files,
    trust_needed,
)
from edgeflare.devices.profile_lookup import (
    find_profile,
    find_profiles,
    find_run_profiles,
    list_profiles,
)
from edgeflare.errors import UserError
from edgeflare.trust import granted
from edgeflare_protos.kernel_sets import KERNEL_SETS

TRUSTED = granted(True)
USER = "~/.config/edgeflare/devices"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project folder as the current one, and an empty home."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def write(text: str, name: str = "mine", folder: str = "device_profiles") -> Path:
    path = Path(folder).expanduser() / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refusal(name: str = "mine") -> str:
    with pytest.raises(UserError) as caught:
        find_profile(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_shipped_profiles() -> None:
    shipped = {profile.name: profile for profile in list_profiles()[0]}
    slow = shipped["emulated-builtin-slow"]
    emulated = {name for name in shipped if name.startswith("emulated")} - {slow.name}
    kernels = KERNEL_SETS.keys() - {"npu"}
    assert emulated == {f"emulated-{name}" for name in kernels}
    assert all(shipped[f"emulated-{name}"].kernels == name for name in kernels)
    cores = ("cortex-a53", "cortex-a72", "cortex-a76")
    assert {(shipped[f"qemu-{name}"].transport, shipped[f"qemu-{name}"].cpu) for name in cores} == {
        ("qemu", name) for name in cores
    }
    assert (slow.kernels, slow.link_delay_seconds) == ("builtin", 0.02)
    assert all(profile.description for profile in shipped.values())


def test_all_keys_are_read_and_paths_are_relative_to_the_file(project: Path) -> None:
    write(
        'description = "a board"\ntransport = "address"\naddress = "[::1]:5000"\n'
        'kernels = "reference"\nthreads = 4\nwarmup = 2\ninput_timeout_seconds = 3\n'
        'tls_ca = "ca.pem"\ntoken_file = "~/token"\n'
    )

    assert find_profile("mine", TRUSTED) == Profile(
        name="mine",
        description="a board",
        source=Path("device_profiles/mine.toml"),
        transport="address",
        address="[::1]:5000",
        kernels="reference",
        threads=4,
        warmup=2,
        input_timeout_seconds=3.0,
        tls_ca=project / "device_profiles" / "ca.pem",
        token_file=project.parent / "home" / "token",
    )


def test_a_python_is_a_command_or_a_path(project: Path) -> None:
    write('transport = "emulated"\npython = "python3.10"', "command")
    write('transport = "emulated"\npython = "../old/bin/python"', "path")

    assert find_profile("command", TRUSTED).python == "python3.10"
    expected = project / "device_profiles" / "../old/bin/python"
    assert find_profile("path", TRUSTED).python == str(expected)


def test_the_project_goes_before_the_user_and_the_user_before_the_shipped() -> None:
    write('transport = "emulated"\nthreads = 2', "emulated-builtin", USER)
    assert find_profile("emulated-builtin").threads == 2
    assert find_profile("emulated-builtin-slow").threads == 2  # which extends it

    write('transport = "emulated"\nthreads = 3', "emulated-builtin")
    assert find_profile("emulated-builtin", TRUSTED).threads == 3
    assert find_profile("emulated-builtin-slow").threads == 2  # never one of the project's


def test_the_extending_profile_goes_first_over_several_steps() -> None:
    write('extends = "middle"\nthreads = 7', "mine")
    write('extends = "emulated-reference"\nthreads = 5\nwarmup = 5', "middle")

    mine = find_profile("mine")

    assert (mine.name, mine.threads, mine.warmup, mine.kernels) == ("mine", 7, 5, "reference")


@pytest.mark.parametrize("names", ["a", "abc"])
def test_extending_in_a_circle(names: str) -> None:
    for name, extended in zip(names, names[1:] + "a", strict=True):
        write(f'extends = "{extended}"', name)
    circle = " extends ".join(names + "a")
    assert refusal("a") == f"device_profiles/a.toml: extends: goes round in a circle, {circle}"


def test_a_profile_may_extend_the_one_that_it_stands_before() -> None:
    write('extends = "android-arm64"\nthreads = 2\nwarmup = 2', "android-arm64", USER)
    write('extends = "android-arm64"\nserial = "0123"\nthreads = 3', "android-arm64")
    write('extends = "android-arm64"\nserial = "4567"', "mine")

    both = find_profile("android-arm64", TRUSTED)
    assert (both.transport, both.serial, both.threads, both.warmup) == ("adb", "0123", 3, 2)
    mine = find_profile("mine", TRUSTED)
    assert (mine.serial, mine.threads) == ("4567", 3)
    assert find_profile("adb://89", TRUSTED).threads == 3


def test_extending_what_is_not_there() -> None:
    write('extends = "emulated-bultin"')

    assert refusal() == (
        'device_profiles/mine.toml: extends = "emulated-bultin": there is no such profile.'
        ' Did you mean "emulated-builtin"? `edgeflare devices list` names them all'
    )


def test_an_unknown_device_is_answered_with_the_nearest() -> None:
    assert refusal("emulated-xnpack").startswith(
        'unknown device "emulated-xnpack". Did you mean "emulated-xnnpack"?'
        " `edgeflare devices list` names them all"
    )
    assert "Did you mean" not in refusal("zzz")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kernels = builtin", "is not valid TOML: Invalid value (at line 1, column 11)"),
        (
            'kernel = "builtin"',
            'unknown key "kernel"; did you mean "kernels"? known keys: description, extends,'
            " transport, kernels, threads, delegate, delegate_options, precision, fallback,"
            " arena_bytes, warmup, input_timeout_seconds, connect_timeout_seconds,"
            " upload_timeout_seconds, canary_every, pause_above_celsius, thermal_zones,"
            " reservation, python, start_timeout_seconds, link_delay_seconds, runtime, cpu, serial,"
            " cache, cache_limit_mib, agent_device, host, address, tls_ca, token_file",
        ),
        (
            'kernels = "neon"',
            'kernels = "neon": expected one of ' + ", ".join(f'"{name}"' for name in KERNEL_SETS),
        ),
        ("threads = 0", "threads = 0: expected a whole number from 1 to 128"),
        ("threads = true", "threads = true: expected a whole number from 1 to 128"),
        (
            "input_timeout_seconds = 0",
            "input_timeout_seconds = 0: expected a number from 0.01 to 3600",
        ),
        ("input_timeout_seconds = inf", "input_timeout_seconds is inf: write a finite number"),
        (
            'thermal_zones = "cpu"',
            'thermal_zones = "cpu": expected a list of names, for example ["cpu-thermal", "cpu*"]',
        ),
        (
            'reservation = "labgrid:--kick"',
            'reservation = "labgrid:--kick": expected SYSTEM:PLACE, for example "labgrid:board-3"',
        ),
        ("threads = 129", "threads = 129: expected a whole number from 1 to 128"),
        ("link_delay_seconds = -1", "link_delay_seconds = -1: expected a number from 0 to 60"),
        ('address = "board"', 'address = "board": expected an address, "HOST:PORT"'),
        ("extends = 3", "extends = 3: expected the name of another profile"),
        ('description = ""', 'description = "": expected a text'),
        (
            "python = []",
            "python = []: expected a command on PATH or the path of a Python interpreter",
        ),
        (
            'transport = "usb"',
            'transport = "usb": expected one of "emulated", "qemu", "adb", "ssh", "address"',
        ),
        (
            "threads = 1",
            'transport is missing; expected "emulated", "qemu", "adb", "ssh" or "address", or a'
            " profile that it extends",
        ),
        ('transport = "qemu"', 'cpu is missing; expected cpu = "cortex-a72"'),
        (
            'runtime = "litert=="',
            'runtime = "litert==": expected a runtime, "litert" or "tflite-runtime", perhaps with'
            ' "==VERSION"',
        ),
        ('cache = "/"', 'cache = "/": expected the absolute path of a folder on the device'),
        (
            'host = "-oProxyCommand=x"',
            'host = "-oProxyCommand=x": expected what `ssh` is to connect to, "[USER@]HOST[:PORT]"',
        ),
        (
            'host = "[-oProxyCommand=x]:22"',
            'host = "[-oProxyCommand=x]:22": expected what `ssh` is to connect to,'
            ' "[USER@]HOST[:PORT]"',
        ),
        ("delegate_options = { a = 1 }", "delegate_options = {'a': 1}: expected a table of texts"),
        (
            'transport = "emulated"\nkernels = "gpu"\ndelegate = "libvendor.so"',
            'delegate: belongs to kernels = "xnnpack", "builtin" or "reference", but this'
            ' profile\'s are "gpu"',
        ),
        ('transport = "address"', 'address is missing; expected address = "HOST:PORT"'),
        (
            'transport = "emulated"\naddress = "a:1"',
            'address: belongs to transport = "address", but this profile\'s is "emulated"',
        ),
        (
            'transport = "address"\naddress = "a:1"\nlink_delay_seconds = 1',
            'link_delay_seconds: belongs to transport = "emulated", but this profile\'s is'
            ' "address"',
        ),
    ],
)
def test_a_complaint_names_file_key_and_what_was_expected(text: str, complaint: str) -> None:
    path = write(text)

    assert refusal() == f"{path}: {complaint}"


def test_a_profile_that_cannot_be_read_is_a_device_or_too_large_is_refused() -> None:
    path = write("# " + "x" * 2**20)
    assert refusal().startswith(f"{path} is larger than 1 MiB")
    path.unlink()
    path.symlink_to("/dev/zero")
    assert refusal().startswith(f"{path} is not a regular file")
    path.unlink()
    path.mkdir()
    assert refusal() == f"{path}: cannot be read: Is a directory"


def test_a_broken_profile_does_not_stand_in_the_way_of_others() -> None:
    path = write("nonsense", "broken")

    assert find_profile("emulated-builtin").name == "emulated-builtin"
    profiles, (broken,) = list_profiles()
    assert "emulated-builtin" in {profile.name for profile in profiles}
    assert (broken.name, broken.complaint.partition(":")[0]) == ("broken", str(path))


def test_an_address_is_a_profile_made_on_the_spot() -> None:
    profile = find_profile("grpc://10.0.0.7:50051")

    assert (profile.name, profile.transport) == ("grpc://10.0.0.7:50051", "address")
    assert (profile.address, profile.kernels) == ("10.0.0.7:50051", "xnnpack")


@pytest.mark.parametrize(
    "address",
    [
        *("", "board", "board:", ":1", "board:0", "board:x", "a/b:1", "board:" + "1" * 5000),
        *("a..b:1", "a\udcff:1", f"{'a' * 64}:1", f"{'a.' * 127}a:1", "[board]:1", "[]:1"),
    ],
)
def test_an_address_without_host_or_port(address: str) -> None:
    assert refusal(f"grpc://{address}") == (
        f'device "grpc://{address}": expected HOST:PORT, for example grpc://127.0.0.1:50051'
    )


def test_devices_named_several_times_are_found_again_by_the_names_that_they_got() -> None:
    once = find_profiles(["emulated-builtin", "emulated-xnnpack", "emulated-builtin"])
    names = [profile.name for profile in once]
    assert names == ["emulated-builtin", "emulated-xnnpack", "emulated-builtin#2"]
    assert find_profiles(names) == once
    assert [profile.name for profile in find_profiles(["emulated-builtin#2"])] == [
        "emulated-builtin"
    ]
    write('transport = "address"\naddress = "127.0.0.1:5000"', "board")
    for name in ("board#2", "nowhere#2", "emulated-builtin#two"):
        with pytest.raises(UserError, match=f'unknown device "{name}"'):
            find_profiles([name])


@pytest.mark.parametrize(
    ("name", "base", "kernels"),
    [
        ("pixel/gpu", "pixel", "gpu"),
        ("ssh://pi@board:22/reference", "ssh://pi@board:22", "reference"),
        ("pixel", "pixel", None),
        ("pixel/neon", "pixel/neon", None),
        ("adb://gpu", "adb://gpu", None),
        ("/gpu", "/gpu", None),
    ],
)
def test_a_kernel_set_is_split_off(name: str, base: str, kernels: str | None) -> None:
    assert split_kernels(name) == (base, kernels)


def test_a_device_with_another_kernel_set_differs_in_that_alone() -> None:
    slow, other = find_profile("emulated-builtin-slow"), find_profile("emulated-builtin-slow/gpu")
    assert (other.name, other.kernels) == ("emulated-builtin-slow/gpu", "gpu")
    assert other.options == slow.options
    assert (slow.kernels, other.transport) == ("builtin", slow.transport)


def test_a_delegate_stays_with_the_kernel_sets_that_load_one() -> None:
    write('transport = "emulated"\ndelegate = "libvendor.so"\ndelegate_options = { cores = "2" }')
    for kernels, kept in (("reference", True), ("gpu", False), ("micro", False)):
        other = find_profile(f"mine/{kernels}", TRUSTED)
        assert (other.delegate is not None, bool(other.delegate_options)) == (kept, kept)


def test_a_run_finds_it_again_and_twice() -> None:
    twice = find_profiles(["emulated-builtin/gpu", "emulated-builtin/gpu"])
    again = find_run_profiles([profile.name for profile in twice])
    assert [one.name for one in again] == ["emulated-builtin/gpu", "emulated-builtin/gpu#2"]
    assert {one.kernels for one in again} == {"gpu"}


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x", "[-oProxyCommand=x]:22", "a host"])
def test_an_address_of_ssh_is_a_host_and_no_option(host: str) -> None:
    with pytest.raises(UserError, match=r"expected ssh://\[USER@\]HOST\[:PORT\]$"):
        find_profile(f"ssh://{host}")


@pytest.mark.parametrize("name", ["ssh://all", "adb://all", "all", "emulated-all/gpu"])
def test_a_device_may_be_called_all(name: str) -> None:
    assert not names_all(name)


@pytest.mark.parametrize("name", ["emulated-all", "pixel/all"])
def test_where_one_device_is_wanted_all_of_them_are_refused(name: str) -> None:
    assert names_all(name)
    with pytest.raises(UserError, match="which search, replay and conform take alone"):
        find_profile(name)


@pytest.mark.slow
def test_emulated_all_is_what_is_installed_here() -> None:
    found = kernel_set_devices("emulated-all")
    assert [one.kernels for one in found][:3] == ["xnnpack", "builtin", "reference"]
    assert [one.name for one in found] == [f"emulated-{one.kernels}" for one in found]
    assert {"compiled-cpu", "gpu"} <= {one.kernels for one in found}


@pytest.mark.slow
def test_all_of_a_device_is_what_its_agent_offers() -> None:
    write(f'transport = "emulated"\npython = "{sys.executable}"\nthreads = 2')
    found = kernel_set_devices("mine/all", TRUSTED)
    assert [one.name for one in found][:2] == ["mine/xnnpack", "mine/builtin"]
    assert {one.threads for one in found} == {2}


@pytest.mark.parametrize("layout", ["host", "site-packages"])
@pytest.mark.parametrize("project", [True, False])
def test_only_a_checkout_ships_the_profiles_two_folders_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, project: bool
) -> None:
    code = tmp_path / layout / "edgeflare" / "shipped_files.py"
    (tmp_path / "device_profiles").mkdir()
    (tmp_path / "device_profiles" / "planted.toml").touch()
    if project:
        (tmp_path / "pyproject.toml").touch()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shipped_files, "__file__", str(code))
    assert ("planted" in profile_files()) == (project and layout == "host")


def test_a_cache_folder_on_a_device_takes_trust(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.touch()
    file = ProfileFile(path, ProfileLocation.WORKING_DIRECTORY)
    needed = trust_needed([file], {"transport": "ssh", "cache": "/data"}, {"mine": [file]})
    assert needed is not None
    assert "sets cache" in str(needed)
