from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

FLAGGED = """\
import os
from edgeflare.whitebox.array_library import jnp
print(jnp.zeros(1).device.platform, os.environ["XLA_FLAGS"])
"""

BLOCKED = """\
import sys
sys.modules["jax"] = None
try:
    import edgeflare.whitebox.pair_translation
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.whitebox
def test_jax_is_installed() -> None:
    """The other files are skipped as a whole without it; here that is seen in CI."""
    if find_spec("jax") is None:
        pytest.skip("pip install 'edgeflare[whitebox]' brings jax")


def test_without_the_extra_one_line_says_what_to_install() -> None:
    told = output_of(BLOCKED)
    assert told.startswith("UserError")
    assert "pip install 'edgeflare[whitebox]'" in told
    assert told.count("\n") == 1


def test_nothing_imports_jax_unless_asked() -> None:
    code = "import edgeflare.cli.app, sys; print('jax' in sys.modules)"
    assert output_of(code) == "False\n"


@pytest.mark.whitebox
def test_it_is_one_thread_of_the_cpu_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("jax", reason="needs the extra whitebox")
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    platform, *flags = output_of(FLAGGED).split()
    assert platform == "cpu"
    assert flags == [
        "--xla_cpu_enable_fast_math=false",
        "--xla_cpu_multi_thread_eigen=false",
        "intra_op_parallelism_threads=1",
    ]


def output_of(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
