"""What is written to stderr is recorded, and what an accelerator's log tells there."""

from __future__ import annotations

import os
import tempfile

import pytest

from edgeflare_agent.runtime.compiled.accelerator_model import AcceleratorLog
from edgeflare_agent.runtime.stderr_record import recorded_stderr


def test_what_is_written_within_is_kept_and_stderr_is_as_before(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with recorded_stderr() as recorded:
        os.write(2, b"within\n")
        assert recorded.text == "within\n"
        os.write(2, b"no UTF-8: \xff\n")
    os.write(2, b"behind\n")
    assert recorded.text == "within\nno UTF-8: \ufffd\n"
    assert capfd.readouterr().err == "behind\n"


def test_no_folder_has_to_be_writable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere/at_all")
    before = os.listdir("/proc/self/fd")
    with recorded_stderr() as recorded:
        os.write(2, b"within\n")
    assert recorded.text == "within\n"
    assert os.listdir("/proc/self/fd") == before


def test_stderr_is_as_before_if_something_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), recorded_stderr():
        raise KeyError
    os.write(2, b"behind\n")
    assert capfd.readouterr().err == "behind\n"


IN_PART = """\
ERROR: Following operations are not supported by GPU delegate:
STRIDED_SLICE: Slice does not support shrink_axis_mask parameter.
37 operations will run on the GPU, and the remaining 6 operations will run on the CPU.
"""
NOTHING = """\
ERROR: Following operations are not supported by GPU delegate:
ABS: Tensor dimensions must be less than 5. t0
No operations will run on the GPU, and all 1 operations will run on the CPU.
"""
SHADER = (
    "E0000 environment.cc:105] Validation error: Error while parsing WGSL: :33:9 error: no match\n"
)
ADAPTER = "I0000 environment.cc:532] Selected adapter: Mali-G78, backend=Vulkan\n"


def log_of(text: str) -> AcceleratorLog:
    with recorded_stderr() as recorded:
        os.write(2, text.encode())
    return AcceleratorLog(recorded)


def test_adapter_and_nodes_are_read_while_it_is_recorded_and_afterwards() -> None:
    with recorded_stderr() as recorded:
        log = AcceleratorLog(recorded)
        os.write(2, (ADAPTER + IN_PART).encode())
        within = (log.adapter, log.accelerated)
    assert within == (log.adapter, log.accelerated) == ("Mali-G78, backend=Vulkan", 37)


def test_what_is_not_logged_is_not_known() -> None:
    log = log_of("")
    assert (log.adapter, log.accelerated, log.invalid) == ("", 0, "")


def test_a_shader_that_does_not_compile_is_told_without_its_place() -> None:
    assert log_of(ADAPTER + SHADER).invalid == "no match"


def test_an_npu_is_absent_where_nothing_compiles_for_it() -> None:
    assert log_of("Failed to apply compiler plugins: No compiler plugin found\n").absent
    assert not log_of(IN_PART).absent


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (IN_PART, "takes 37 of 43 nodes, and not STRIDED_SLICE: Slice does not support"),
        (NOTHING, "takes 0 of 1 nodes, and not ABS: Tensor dimensions must be less than 5. t0:"),
        ("INTERNAL: No adapters found\n", "finds no driver that it can use: install the Vulkan"),
        (
            "Warning: Vulkan shaderUniform*ArrayDynamicIndexing required.\nNo adapters found\n",
            "finds no driver that it can use (Vulkan shaderUniform*ArrayDynamicIndexing required)",
        ),
        (
            "a graph that has dynamic-sized tensors (tensor#-1)\n",
            "sized while it runs, as by SHAPE before RESHAPE: add --fold-shapes",
        ),
        ("Failed to apply compiler plugins: No compiler plugin found\n", "finds no NPU"),
        ("", "refuses it: Failed to modify graph with delegate"),
    ],
)
def test_a_refusal_is_one_line_with_its_reason(text: str, said: str) -> None:
    refusal = log_of(text).refusal("ERROR: [x.h:1]\n└ Failed to modify graph with delegate")
    assert said in refusal
    assert "\n" not in refusal
