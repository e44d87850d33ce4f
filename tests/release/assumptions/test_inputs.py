"""What is assumed of inputs, by the shapes of a model and by what is given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.domains.audio.wav_file import encode_wav
from edgeflare.errors import UserError
from edgeflare.models.pair_file import Settings
from edgeflare.models.tflite_graph import Graph
from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.input_source import GivenInputs
from edgeflare.release.assumptions.inputs import assumed_inputs
from edgeflare.release.assumptions.picture_inputs import assumed_pictures
from graph_writer import GraphWriter

ONE = {"x": (1, 6)}


def graph_of(inputs: Mapping[str, tuple[int, ...]]) -> Graph:
    writer = GraphWriter()
    given = [writer.tensor(name, shape, "FLOAT32") for name, shape in inputs.items()]
    made = writer.tensor("y", (1, 4), "FLOAT32")
    writer.operator("NEG", given[:1], [made])
    return Graph(writer.content(given, [made]))


def of_arrays(folder: Path, graph: Graph, **arrays: Any) -> Assumption:
    np.savez(folder / "inputs.npz", **arrays)
    return assumed_inputs(graph, GivenInputs.at(folder / "inputs.npz"), Settings())


def floats(*shape: int) -> Any:
    return np.linspace(-1.234, 2.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def test_the_only_array_of_a_shape_is_the_input(tmp_path: Path) -> None:
    more = {"labels": np.zeros(5, np.int64), "raw": floats(5, 9), "mean": floats(6)}
    found = of_arrays(tmp_path, graph_of(ONE), a=floats(5, 6), **more)
    table = {"domain": "array", "array": "a", "lowest": -1.24, "highest": 2.0}
    assert found.settings.inputs == {"x": table}
    assert 'is given the array "a"' in found.notes[0]


def test_bounds_are_numbers_of_the_type_of_the_values(tmp_path: Path) -> None:
    for ends, type_, bounds in (
        ((-32768, 32767), np.int16, (-32768, 32767)),
        ((12, 65535), np.uint16, (0, 65535)),
        ((5, 5), np.int32, (5, 6)),
        ((127, 127), np.int8, (126, 127)),
        ((np.finfo(np.float32).min, 1), np.float32, (np.finfo(np.float32).min, 1e36)),
    ):
        values = np.resize(np.array(ends, type_), (4, 6))
        table = (of_arrays(tmp_path, graph_of(ONE), x=values).settings.inputs or {})["x"]
        assert (table["lowest"], table["highest"]) == bounds


def test_of_several_arrays_of_a_shape_the_name_tells(tmp_path: Path) -> None:
    arrays = {"a": floats(5, 6), "b": floats(5, 6)}
    refused = of_arrays(tmp_path, graph_of(ONE), **arrays)
    assert "a and b may be the input 'x' (1, 6)" in refused.refused
    assert 'array = "…"  # a or b' in refused.lines
    found = of_arrays(tmp_path, graph_of(ONE), x=floats(5, 6), **arrays)
    assert found.settings.inputs is not None
    assert "array" not in found.settings.inputs["x"]


def test_an_array_without_inputs_is_none_of_the_model(tmp_path: Path) -> None:
    refused = of_arrays(tmp_path, graph_of(ONE), x=floats(0, 6)).refused
    assert "none of the arrays is the input 'x' (1, 6); the arrays are x float32 (0, 6)" in refused


def test_several_inputs_are_told_apart_by_shape(tmp_path: Path) -> None:
    names = {"serving:0": (1, 6), "ids": (1, 3)}
    found = of_arrays(tmp_path, graph_of(names), a=floats(5, 6), b=np.ones((5, 3), np.int64))
    tables = found.settings.inputs
    assert tables is not None
    assert tables["input_0"]["tensor"] == "serving:0"
    assert tables["ids"] == {"domain": "array", "array": "b", "dtype": "int32", "search": False}


def test_pictures_beside_other_inputs_are_pictures(tmp_path: Path) -> None:
    graph = graph_of({"x": (1, 6), "seen": (1, 8, 8, 3)})
    found = of_arrays(tmp_path, graph, x=floats(5, 6), seen=np.zeros((5, 8, 8, 3), np.uint8))
    assert found.settings.inputs == {
        "x": {"domain": "array", "search": False},
        "seen": {"domain": "image", "preset": "unit"},
    }
    assert "nothing tells" in found.guessed


def test_what_an_output_has_the_shape_of_is_a_state(tmp_path: Path) -> None:
    graph = graph_of({"x": (1, 6), "state": (1, 4)})
    found = of_arrays(tmp_path, graph, x=floats(5, 7, 6)).settings
    assert (found.state, found.frames) == ({"state": "y"}, 7)
    given = of_arrays(tmp_path, graph, x=floats(5, 6), state=floats(5, 4)).settings
    assert given.state is None


def test_an_array_of_pixels_holds_pictures_whatever_its_name(tmp_path: Path) -> None:
    graph = graph_of({"x": (1, 8, 8, 1)})
    found = of_arrays(tmp_path, graph, faces=np.zeros((5, 8, 8), np.uint8))
    table = {"domain": "image", "array": "faces", "preset": "unit", "resize": "stretch"}
    assert found.settings.inputs == {"x": table}
    features = of_arrays(tmp_path, graph, features=floats(5, 8, 8)).settings.inputs
    assert features is not None
    assert features["x"]["domain"] == "array"


def test_samples_of_a_sound_are_told_from_features(tmp_path: Path) -> None:
    wave = np.zeros(8000, np.int16)
    (tmp_path / "a.wav").write_bytes(encode_wav(wave, 8000))
    given = GivenInputs.at(tmp_path)
    found = assumed_inputs(graph_of({"x": (1, 4000)}), given, Settings())
    table = {"domain": "audio", "sample_rate": 8000, "fit": "pad-and-cut"}
    assert found.settings.inputs == {"x": table}
    features = assumed_inputs(graph_of({"x": (1, 49, 10, 1)}), given, Settings())
    assert "takes features of a sound, and nothing tells which" in features.refused
    for line in ("samples = 8000", "frame_length = 240", "frame_step = 160", "coefficients = 10"):
        assert line in features.lines
        assert line in features.refused


def test_what_is_no_sample_rate_is_refused(tmp_path: Path) -> None:
    graph, waves = graph_of({"x": (1, 49, 10, 1)}), np.zeros((2, 16000), np.int16)
    for rate in (0, np.nan, np.inf, "16k", [16000, 8000]):
        with pytest.raises(UserError, match="expected one number of Hz"):
            of_arrays(tmp_path, graph, waves=waves, sample_rate=np.array(rate))
    slow = of_arrays(tmp_path, graph, waves=waves, sample_rate=np.array(1))
    assert "frame_step = 1" in slow.lines


def test_waves_that_are_no_sounds_are_none_of_the_model(tmp_path: Path) -> None:
    refused = of_arrays(tmp_path, graph_of({"x": (1, 49, 10, 1)}), waves=np.int16(3)).refused
    assert "none of the arrays is the input 'x'" in refused


@pytest.mark.parametrize(
    ("dtype", "quantization", "preset", "guessed"),
    [
        ("INT8", (1 / 255, -128), "unit", ""),
        ("INT8", (2 / 255, 0), "signed", ""),
        ("INT16", (0.95 / 32767, 0), "unit", 'in 16 bits, by which it may as well be "signed"'),
        ("INT16", (255 / 32767, 0), "raw", ""),
        ("INT16", (9 / 32767, 0), "unit", "which is that of no preset"),
    ],
)
def test_a_range_in_16_bits_does_not_tell_whether_pixels_are_below_0(
    dtype: str, quantization: tuple[float, int], preset: str, guessed: str
) -> None:
    graph = GraphWriter()
    x = graph.tensor("x", (1, 8, 8, 3), dtype, quantization)
    y = graph.tensor("y", (1, 8, 8, 3), dtype, quantization)
    graph.operator("RELU", [x], [y])
    read = Graph(graph.content([x], [y]))
    found = assumed_pictures(read, read.tensors[x], Settings())
    assert found.settings.preset == preset
    assert guessed in found.guessed
    assert bool(found.guessed) == bool(guessed)


@pytest.mark.parametrize(
    ("dtype", "preset", "guessed"),
    [
        ("UINT8", "raw", ""),
        ("INT32", "raw", ""),
        ("INT8", "raw", "int8 without a scale, too small"),
        ("BOOL", "unit", "takes bool, so nothing tells"),
    ],
)
def test_whole_numbers_without_a_scale_are_pixels_as_they_are(
    dtype: str, preset: str, guessed: str
) -> None:
    graph = GraphWriter()
    x, y = graph.tensor("x", (1, 8, 8, 3), dtype), graph.tensor("y", (1, 8, 8, 3), "FLOAT32")
    graph.operator("CAST", [x], [y])
    read = Graph(graph.content([x], [y]))
    found = assumed_pictures(read, read.tensors[x], Settings())
    assert found.settings.preset == preset
    assert "takes floats" not in " ".join(found.notes)
    assert guessed in found.guessed
    assert bool(found.guessed) == bool(guessed)
