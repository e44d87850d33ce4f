"""What all tests share: properties that are not timed, and capabilities that CI has to have."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from edgeflare.errors import UserError
from longest_files import LONGEST_FILES
from processor_times import ProcessorTimes

if TYPE_CHECKING:
    from collections.abc import Generator

    from browsing import Browser

CAPABILITY_MARKS = frozenset(
    {
        *("adb", "browser", "bundle", "fleet", "gcc", "gpu", "labgrid", "model_explorer"),
        *("old_board", "old_litert", "openssl", "qemu", "recipes", "shells", "site", "sshd"),
        "whitebox",
    }
)
ROOT = Path(__file__).parents[1]

SLOW_FIXTURES = frozenset({"crafted", "finished", "laboratory", "shared_agent", "start_agent"})
"""Fixtures that search or start an agent."""

# Every core has a worker already; and the hundreds of interpreters that tests start need not
# compile our modules each. What imports numpy is imported later.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False  # another 20 s in each worker and each command

# Each worker of pytest is a machine of its own to the agents that its tests start.
os.environ["EDGEFLARE_AGENT_DEVICE"] = f"tests of {os.getpid()}"

if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    # Workers, and commands that they start, compile the same few networks. Workers inherit it.
    compiled_networks = TemporaryDirectory(prefix="edgeflare-compiled-")
    os.environ["JAX_COMPILATION_CACHE_DIR"] = compiled_networks.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

if "EDGEFLARE_TESTS_HOME" not in os.environ:
    # What the user trusts is not what tests trust, or the other way round. Workers inherit it.
    home = TemporaryDirectory(prefix="edgeflare-home-")
    os.environ["EDGEFLARE_TESTS_HOME"] = home.name
    for folder, own in (
        (Path.home(), (".config", ".local")),
        (Path.home() / ".config", ("edgeflare",)),
    ):
        there = Path(home.name, folder.relative_to(Path.home()))
        there.mkdir(exist_ok=True)
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name not in own:
                (there / entry.name).symlink_to(entry)
    os.environ["HOME"] = home.name

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So begins what a shell starts in the background; some tests interrupt themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("untimed", settings(deadline=None, max_examples=25))
settings.register_profile("short", settings(deadline=None, max_examples=8))
settings.load_profile("untimed")  # a busy machine is no failure


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Add a worker to those of the cores: each waits a fifth of its time for other processes."""
    return (yield) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take a seed that decides another order, in which no test may fail either."""
    parser.addoption(
        "--random-order", metavar="SEED", help="shuffle the files, and the tests of each file"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let workers take files in the order of the items; xdist's begins with those of most tests."""
    config.option.loadscopereorder = False
    config.pluginmanager.register(ProcessorTimes())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures and capabilities, and put the longest files first."""
    for item in items:
        if CAPABILITY_MARKS.intersection(mark.name for mark in item.iter_markers()):
            item.add_marker(pytest.mark.system)
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    places = {ROOT / "tests" / name: place for place, name in enumerate(LONGEST_FILES)}
    if (seed := config.getoption("random_order")) is None:
        items.sort(key=lambda item: places.get(item.path, len(places)))
        return
    generator = random.Random(seed)  # noqa: S311 - an order, and no secret
    generator.shuffle(items)
    shuffled = dict.fromkeys(item.path for item in items)
    places = {path: place for place, path in enumerate(shuffled)}
    items.sort(key=lambda item: places[item.path])


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the devices that tests open in this process share their agents."""
    if not hasattr(session.config, "workerinput") and session.config.getoption("numprocesses", 0):
        return  # it runs no tests
    from shared_agents import SHARED_AGENTS  # noqa: PLC0415 - what imports numpy

    SHARED_AGENTS.share()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is imported: it stays, and a third of the time goes there."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def old_board_python() -> Path:
    """Return the Python of the environment with tflite-runtime 2.14, or skip."""
    python = ROOT / ".venv-old-board" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is absent: `make env` makes it where a Python 3.10 or 3.11 is found")
    return python


@pytest.fixture(scope="session")
def old_litert_python() -> Path:
    """Return the Python of the environment with ai-edge-litert 1.2.0, or skip."""
    python = ROOT / ".venv-old-litert" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is absent: .ci/run makes it from constraints-old-litert.txt")
    return python


@pytest.fixture
def own_agents() -> Iterator[None]:
    """Have devices start agents of their own, and workers have this folder, as users' do."""
    from shared_agents import SHARED_AGENTS  # noqa: PLC0415 - what imports numpy

    with SHARED_AGENTS.paused():
        yield


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Vulkan's loader take the driver in software, or skip."""
    from edgeflare.devices.transports.emulated import (  # noqa: PLC0415 - few tests need it
        check_driver,
        driver_variables,
    )

    if not (check := check_driver()).found:
        pytest.skip(f"needs a GPU in software: {check.mend}")
    for name, value in driver_variables(os.environ).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, one for all tests of a worker, or skip."""
    from browsing import started_browser  # noqa: PLC0415 - slow, and few tests need it

    with started_browser(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    """Have fixtures and tests share a fork server, which has the environment of its parent."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)  # another one in each phase of each test
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Likewise."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test that carries a capability mark into a failure where CI is set."""
    report = yield
    needed = sorted(CAPABILITY_MARKS & {mark.name for mark in item.iter_markers()})
    if report.skipped and not hasattr(report, "wasxfail") and needed and os.environ.get("CI"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"in CI a test marked {', '.join(needed)} must not skip. {reason}"
    return report


@pytest.fixture
def refusal() -> Callable[..., str]:
    """Call something that must be refused, and return the one line that it is refused with."""

    def call(function: Callable[..., object], *args: object, **kwargs: object) -> str:
        with pytest.raises(UserError) as caught:
            function(*args, **kwargs)
        message = str(caught.value)
        assert message
        assert "\n" not in message
        return message

    return call
