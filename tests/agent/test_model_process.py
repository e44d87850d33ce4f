from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare_agent.runtime import (
    Delegate,
    Invocation,
    IsolatedModel,
    ModelRejected,
    Options,
    WorkerLost,
    model_process,
    runtime_info,
)
from edgeflare_agent.runtime.worker_process import WorkerProcess
from edgeflare_protos.kernel_sets import Kernels
from graph_writer import GraphWriter

Inputs = Callable[..., NDArray[np.int8]]
Reference = Callable[[Path, Kernels, NDArray[np.generic]], bytes]

SEGFAULT, HANG, ERROR, EXIT, FIRST_TIME, OVERWRITE = 101, 102, 103, 104, 106, 108
OUTPUT = 4


def outputs_of(answers: bytes, but: set[int]) -> list[bytes]:
    rows = [answers[at : at + OUTPUT] for at in range(0, len(answers), OUTPUT)]
    return [row for index, row in enumerate(rows) if index not in but]


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_answers_are_the_interpreters_own(
    kernels: Kernels,
    int8_model: Path,
    float_model: Path,
    harmless_inputs: Inputs,
    reference: Reference,
) -> None:
    raw = harmless_inputs(50)
    for path, inputs in ((int8_model, raw), (float_model, (raw / 50).astype(np.float32))):
        with IsolatedModel.open(path, Options(kernels)) as model:
            batch = model.run(inputs.tobytes(), 50)
        assert batch.outputs == reference(path, kernels, inputs)
        assert batch.failures == ()
        assert batch.busy_seconds > 0


def test_says_what_it_loaded(int8_model: Path, float_model: Path) -> None:
    with IsolatedModel.open(int8_model, Options("builtin")) as model:
        (given,), (asked,) = model.inputs, model.outputs
        assert (given.name, given.shape, given.dtype) == ("x", (1, 8), "int8")
        assert given.scale == pytest.approx(0.02)
        assert given.zero_point == -3
        assert (asked.dtype, asked.scale, asked.zero_point) == ("int8", 1 / 256, -128)
        assert model.operators == ("FULLY_CONNECTED", "SOFTMAX")
        assert (model.delegated_nodes, model.total_nodes) == (0, 2)
        assert model.runtime == str(runtime_info())
    with IsolatedModel.open(float_model, Options("xnnpack")) as model:
        assert (model.delegated_nodes, model.total_nodes) == (2, 2)
        assert (model.inputs[0].scale, model.inputs[0].zero_point) == (0.0, 0)


def test_several_inputs_and_outputs_lie_one_behind_the_other(two_input_model: Path) -> None:
    a = np.arange(9, dtype=np.int32).reshape(3, 3)
    b = np.arange(6, dtype=np.float32).reshape(3, 2)
    payload = b"".join(a[n].tobytes() + b[n].tobytes() for n in range(3))
    with IsolatedModel.open(two_input_model, Options("builtin")) as model:
        assert [spec.name for spec in model.inputs] == ["a", "b"]
        outputs = model.run(payload, 3).outputs
    assert outputs == b"".join((2 * a[n]).tobytes() + (-b[n]).tobytes() for n in range(3))


def test_a_batch_may_grow_and_shrink(
    int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    with IsolatedModel.open(int8_model, Options("builtin")) as model:
        for count in (3, 1000, 1, 5000, 7):
            inputs = harmless_inputs(count, seed=count)
            assert model.run(inputs.tobytes(), count).outputs == reference(
                int8_model, "builtin", inputs
            )
        assert model.restarts == 0


def test_a_payload_that_does_not_fit_is_refused(int8_model: Path) -> None:
    with IsolatedModel.open(int8_model, Options("builtin")) as model:
        for payload, count in ((b"1234567", 1), (b"", 0), (bytes(16), 3)):
            with pytest.raises(ValueError, match=f"{count} inputs of 8 bytes"):
                model.run(payload, count)


def test_a_runtimes_error_is_an_answer(refusing_model: Path) -> None:
    with IsolatedModel.open(refusing_model, Options("builtin")) as model:
        batch = model.run(np.array([2, 7, 0], np.int32).tobytes(), 3)
        assert np.frombuffer(batch.outputs, np.float32).tolist() == [3.0, 0.0, 1.0]
        (failure,) = batch.failures
        assert (failure.index, failure.kind, failure.quarantined) == (1, "error", False)
        assert failure.detail
        assert "\n" not in failure.detail
        assert model.restarts == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("byte", "kind", "detail"),
    [
        (SEGFAULT, "crash", "SIGSEGV"),
        (EXIT, "crash", "exit code 7; it last said: kernel: arena overflow"),
        (HANG, "hang", "no answer within 0.3 s"),
    ],
)
def test_a_confirmed_culprit_is_quarantined_and_costs_nobody_else(
    byte: int,
    kind: str,
    detail: str,
    int8_model: Path,
    harmless_inputs: Inputs,
    reference: Reference,
    faulty_launcher: list[str],
) -> None:
    inputs = harmless_inputs(20)
    inputs[[5, 19], 0] = byte
    right = outputs_of(reference(int8_model, "builtin", inputs), but={5, 19})
    options = Options("builtin", input_timeout_seconds=0.3)
    with IsolatedModel.open(int8_model, options, faulty_launcher) as model:
        first = model.run(inputs.tobytes(), 20)
        assert [(f.index, f.kind, f.detail, f.quarantined) for f in first.failures] == [
            (5, kind, detail, False),
            (19, kind, detail, False),
        ]
        assert outputs_of(first.outputs, but={5, 19}) == right
        assert outputs_of(first.outputs, but=set(range(20)) - {5, 19}) == [bytes(OUTPUT)] * 2
        assert model.quarantined == 2
        again = model.run(inputs[::-1].tobytes(), 20)
        assert [(f.index, f.kind, f.quarantined) for f in again.failures] == [
            (0, kind, True),
            (14, kind, True),
        ]
        assert outputs_of(again.outputs, but={0, 14}) == right[::-1]
        restarts = model.restarts
        model.run(inputs.tobytes(), 20)
        assert model.restarts == restarts


@pytest.mark.slow
def test_a_culprit_that_comes_twice_in_a_batch_is_run_for_the_first_only(
    int8_model: Path, harmless_inputs: Inputs, faulty_launcher: list[str]
) -> None:
    inputs = harmless_inputs(6)
    inputs[[1, 4]] = inputs[1]
    inputs[[1, 4], 0] = SEGFAULT
    with IsolatedModel.open(int8_model, Options("builtin"), faulty_launcher) as model:
        batch = model.run(inputs.tobytes(), 6)
        assert [(f.index, f.quarantined) for f in batch.failures] == [(1, False), (4, True)]
        assert (model.restarts, model.quarantined) == (2, 1)


def test_a_culprit_that_overwrites_where_the_worker_is_costs_nobody_else(
    int8_model: Path,
    harmless_inputs: Inputs,
    reference: Reference,
    faulty_launcher: list[str],
) -> None:
    inputs = harmless_inputs(5)
    inputs[3, 0] = OVERWRITE
    with IsolatedModel.open(int8_model, Options("builtin"), faulty_launcher) as model:
        batch = model.run(inputs.tobytes(), 5)
    assert [(failure.index, failure.kind) for failure in batch.failures] == [(3, "crash")]
    right = outputs_of(reference(int8_model, "builtin", inputs), but={3})
    assert outputs_of(batch.outputs, but={3}) == right


def test_a_crash_that_does_not_repeat_is_no_finding(
    int8_model: Path,
    harmless_inputs: Inputs,
    reference: Reference,
    faulty_launcher: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAULTY_ONCE", str(tmp_path / "once"))
    inputs = harmless_inputs(10)
    inputs[4, 0] = FIRST_TIME
    with IsolatedModel.open(int8_model, Options("builtin"), faulty_launcher) as model:
        batch = model.run(inputs.tobytes(), 10)
        assert batch.failures == ()
        assert batch.outputs == reference(int8_model, "builtin", inputs)
        assert (model.restarts, model.quarantined) == (1, 0)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(st.lists(st.sampled_from([0, 0, 0, SEGFAULT, ERROR]), min_size=1, max_size=6))
def test_any_mixture_of_faults_leaves_the_others_right(
    int8_model: Path,
    harmless_inputs: Inputs,
    reference: Reference,
    faulty_launcher: list[str],
    faults: list[int],
) -> None:
    inputs = harmless_inputs(len(faults))
    for index, fault in enumerate(faults):
        if fault:
            # Distinct inputs, or the second of two equal ones were in quarantine already.
            inputs[index, :2] = fault, index
    bad = {index for index, fault in enumerate(faults) if fault}
    with IsolatedModel.open(int8_model, Options("builtin"), faulty_launcher) as model:
        batch = model.run(inputs.tobytes(), len(faults))
    assert {failure.index for failure in batch.failures} == bad
    expected = outputs_of(reference(int8_model, "builtin", inputs), but=bad)
    assert outputs_of(batch.outputs, but=bad) == expected


@pytest.mark.slow
def test_workers_killed_from_outside_change_no_answer(
    int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(4000)
    right = reference(int8_model, "reference", inputs)
    kills = 0
    pauses = random.Random(1)  # noqa: S311
    stop = threading.Event()
    began = time.monotonic()
    with IsolatedModel.open(int8_model, Options("reference")) as model:
        longest = 2 * (time.monotonic() - began)  # so that half of them get ready, at any load

        def kill_now_and_then() -> None:
            nonlocal kills
            victims: set[int] = set()
            while not stop.is_set():
                pid = model.worker_pid
                if pid is not None and pid not in victims:
                    # Also while it loads, and while it is idle.
                    time.sleep(pauses.uniform(0, longest))
                    victims.add(pid)
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                time.sleep(0.001)

        killer = threading.Thread(target=kill_now_and_then)
        killer.start()
        try:
            while kills < 6:
                batch = model.run(inputs.tobytes(), 4000)
                assert batch.failures == ()
                assert batch.outputs == right
        finally:
            stop.set()
            killer.join()
        assert model.restarts >= 5
        assert model.quarantined == 0


def test_warm_up_runs_before_the_model_counts_as_open(
    int8_model: Path, harmless_inputs: Inputs, reference: Reference
) -> None:
    inputs = harmless_inputs(2)
    with IsolatedModel.open(int8_model, Options("builtin", threads=2, warmup=3)) as model:
        assert model.run(inputs.tobytes(), 2).outputs == reference(int8_model, "builtin", inputs)


@pytest.mark.parametrize("asked", ["warm-up", "shapes"])
def test_a_model_that_refuses_zeros_alone_is_opened(asked: str, tmp_path: Path) -> None:
    graph = GraphWriter()
    above, below, ratio = (graph.tensor(name, (2,), "INT32") for name in ("above", "below", "y"))
    for tensor in graph.graph.tensors if asked == "shapes" else ():
        tensor.shapeSignature = [-1]
    graph.operator("DIV", [above, below], [ratio], schema.DivOptionsT())
    path = graph.save(tmp_path / "div.tflite", [above, below], [ratio])
    shapes = {"above": (2,), "below": (2,)} if asked == "shapes" else {}
    warmup = 1 if asked == "warm-up" else 0
    options = Options("builtin", warmup=warmup, invocation=Invocation(shapes=shapes))
    inputs = np.array([[6, 8, 3, 2], [6, 8, 0, 2]], np.int32)
    with IsolatedModel.open(path, options) as model:
        batch = model.run(inputs.tobytes(), 2)
    assert np.frombuffer(batch.outputs, np.int32).tolist() == [2, 4, 0, 0]
    assert [(failure.index, failure.kind) for failure in batch.failures] == [(1, "error")]


@pytest.mark.slow
def test_files_that_are_no_models_are_refused_in_one_line(
    int8_model: Path, future_model: Path, tmp_path: Path
) -> None:
    content = int8_model.read_bytes()
    wrong = {
        "empty": (b"", "the file is empty"),
        "text": (b"not a model at all", "not a TFLite model"),
        "half": (content[: len(content) // 2], str(runtime_info())),
        "head": (content[:8], str(runtime_info())),
        "future": (
            future_model.read_bytes(),
            f"{runtime_info()} has no operator FULLY_CONNECTED version 99",
        ),
    }
    for name, (damaged, why) in wrong.items():
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(ModelRejected) as caught:
            IsolatedModel.open(tmp_path / name, Options("builtin"))
        assert why in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(ModelRejected, match=r"cannot read .*absent.*No such file"):
        IsolatedModel.open(tmp_path / "absent", Options("builtin"))
    with pytest.raises(ModelRejected, match=r"cannot read .*Is a directory"):
        IsolatedModel.open(tmp_path, Options("builtin"))


def test_why_a_runtime_refuses_a_model_is_said_in_words_apart(tmp_path: Path) -> None:
    refusals = []
    for name in ("CUSTOM", "ADD"):
        graph = GraphWriter()
        given = [
            graph.tensor(letter, (1, size), "FLOAT32") for letter, size in (("a", 2), ("b", 3))
        ]
        made = graph.tensor("made", (1, 3), "FLOAT32")
        graph.operator(name, given, [made])
        graph.model.operatorCodes[0].customCode = b"Nowhere" if name == "CUSTOM" else None
        path = graph.save(tmp_path / f"{name}.tflite", given, [made])
        with pytest.raises(ModelRejected) as caught:
            IsolatedModel.open(path, Options("builtin"))
        refusals.append(str(caught.value))
    assert f"{runtime_info()} has no custom operator Nowhere with builtin kernels" in refusals[0]
    assert refusals[1].startswith(f"{runtime_info()} refuses it: ")
    assert " Node number 0 (ADD) failed to prepare" in refusals[1]
    assert "failed to delegate" not in refusals[1]


@pytest.mark.parametrize(
    ("library", "said"), [("libnowhere.so", "libnowhere"), ("libc.so.6", "delegate")]
)
def test_a_library_that_is_no_delegate_is_refused(
    int8_model: Path, library: str, said: str
) -> None:
    options = Options("builtin", delegate=Delegate(library, {"a": "1"}))
    with pytest.raises(ModelRejected, match=said):
        IsolatedModel.open(int8_model, options)


def test_the_launcher_comes_from_the_environment(
    int8_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEFLARE_AGENT_LAUNCHER", "'/no where/python' -X dev")
    with pytest.raises(WorkerLost, match="cannot start /no where/python"):
        IsolatedModel.open(int8_model, Options("builtin"))


def test_a_file_that_changes_under_an_open_model_gives_no_wrong_answers(
    int8_model: Path, float_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(int8_model.read_bytes())
    with IsolatedModel.open(path, Options("builtin")) as model:
        before = model.run(bytes(8), 1).outputs
        path.write_bytes(float_model.read_bytes())
        assert model.run(bytes(8), 1).outputs == before
        assert model.worker_pid is not None
        os.kill(model.worker_pid, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="changed while it was in use"):
            model.run(bytes(8), 1)


@pytest.mark.usefixtures("own_agents")
def test_a_worker_imports_nothing_from_the_working_directory(
    int8_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("numpy.py", "json.py", "edgeflare_agent.py"):
        (tmp_path / name).write_text("open('executed', 'w').close()")
    with IsolatedModel.open(int8_model, Options("builtin")) as model:
        model.run(bytes(8), 1)
    assert not (tmp_path / "executed").exists()


def test_closing_ends_the_worker_even_in_mid_batch(
    int8_model: Path, faulty_launcher: list[str], harmless_inputs: Inputs
) -> None:
    inputs = harmless_inputs(1)
    inputs[0, 0] = HANG
    model = IsolatedModel.open(int8_model, Options("builtin"), faulty_launcher)
    pid = model.worker_pid
    assert pid is not None
    lost: list[BaseException] = []

    def run() -> None:
        try:
            model.run(inputs.tobytes(), 1)
        except WorkerLost as error:
            lost.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    time.sleep(0.1)
    model.close()
    runner.join(200)
    assert [str(error) for error in lost] == ["the model was closed"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    model.close()
    with pytest.raises(WorkerLost, match="closed"):
        model.run(inputs.tobytes(), 1)


def test_a_worker_that_is_just_being_started_runs_nothing_once_the_model_is_closed(
    int8_model: Path,
    faulty_launcher: list[str],
    harmless_inputs: Inputs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAULTY_ONCE", str(tmp_path / "has run"))
    inputs = harmless_inputs(1)
    inputs[0, 0] = FIRST_TIME
    model = IsolatedModel.open(int8_model, Options("builtin"), faulty_launcher)
    closing = threading.Thread(target=model.close)

    class SlowlyStarted(WorkerProcess):
        def __init__(self, *given: Any) -> None:
            closing.start()
            while not model._closed:
                time.sleep(0.01)
            super().__init__(*given)

    monkeypatch.setattr(model_process, "WorkerProcess", SlowlyStarted)
    assert model.worker_pid is not None
    os.kill(model.worker_pid, signal.SIGKILL)
    with pytest.raises(WorkerLost, match="closed"):
        model.run(inputs.tobytes(), 1)
    closing.join()
    assert not (tmp_path / "has run").exists()


@pytest.mark.slow
def test_nothing_is_left_open(int8_model: Path) -> None:
    with IsolatedModel.open(int8_model, Options("builtin")) as model:
        model.run(bytes(8), 1)
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with IsolatedModel.open(int8_model, Options("builtin")) as model:
            model.run(bytes(8), 1)
    assert len(os.listdir("/dev/fd")) <= before
