"""A task of another package: one file, found by its entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from plugin_package import install_plugin

SOURCE = Path(__file__).parent / "night_light.py"
ENTRY_POINTS = {"edgeflare.tasks": {"night-light": "night_light:NightLight"}}

USE = """
import numpy as np
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Goal
from edgeflare.core.outcome import Outcome
from edgeflare.core.task import ModelOutputs
from edgeflare.core.tensor import RawBatch, Tensor
from edgeflare.tasks.task_registry import TASKS, find_task

print(*TASKS.names())
task = find_task("night-light", {"dusk": 0.25})
lux = Tensor("lux", (1, 1), "int8", 0.125, 0)
other = Tensor("heat", (1, 3), "float32")
model = ModelOutputs("lamp.tflite", (lux,), frozenset(), 0, (), lambda seeds: RawBatch(lux))
decoder = task.decoder(model)
decoder = TASKS.find("night-light").decoder_from_json(decoder.to_json())
answers = list(decoder.read(RawBatch(np.array([[0], [2], [16]], np.int8), {})))
print(*(decoder.describe(one.decision) for one in answers))
print(*(one.tied for one in answers))
dark, _, light = answers
outcome = Outcome({Arm.ORIGINAL: dark, Arm.DEVICE: light})
print(Goal().met(outcome), Goal().strength(outcome))
try:
    task.decoder(ModelOutputs("m", (other,), frozenset(), 0, (), lambda seeds: None))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_plugin(
        tmp_path_factory.mktemp("task_package"), "night_light", SOURCE.read_text(), ENTRY_POINTS
    )


def test_it_is_one_file_of_at_most_80_lines() -> None:
    assert len(SOURCE.read_text().splitlines()) <= 80


@pytest.mark.slow
def test_it_is_found_decides_and_is_named_where_another_does_not_fit(installed: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", USE],
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    ).stdout.splitlines()
    ours = "classification detection regression segmentation threshold transcript"
    assert told[0] == f"{ours} night-light"
    assert told[1] == "on off off"
    assert told[2] == "False True False"
    assert told[3] == "deviation 0.25"
    assert told[4] == (
        "UserError m: the task night-light reads the brightness, (1, 1), which fits none of the "
        "outputs: 'heat' (1, 3) (fits classification or regression); name another task under "
        "[task], or convert the model so"
    )
