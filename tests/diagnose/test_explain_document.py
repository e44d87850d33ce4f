"""The file of the explanations while they are made: valid at any time, and what is left over."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import jsonschema
import pytest

from edgeflare.diagnose import explain_document
from edgeflare.diagnose.explain_document import Explanations, left_over, load_explanations
from edgeflare.diagnose.verdict import Which
from edgeflare.errors import UserError
from edgeflare.run.run_directory import RunDirectory
from edgeflare_protos.kernel_sets import KERNEL_SETS

ABOUT: Any = SimpleNamespace(pair={"name": "pair", "fingerprint": "f" * 64})


def schema() -> Any:
    return json.loads(Path(explain_document.__file__).with_name("explain.schema.json").read_bytes())


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def loaded(directory: RunDirectory) -> dict[str, Any]:
    written = load_explanations(directory, ABOUT.pair["fingerprint"])
    assert written is not None
    jsonschema.validate(written, schema())
    return written


def test_there_is_none_before_and_a_valid_one_from_the_beginning(directory: RunDirectory) -> None:
    assert load_explanations(directory, "f" * 64) is None
    Explanations(directory, ABOUT, None, [3, 1], None)
    assert loaded(directory)["findings"] == {}
    assert left_over(loaded(directory), None) == [3, 1]


def test_what_is_left_over_is_of_the_device_that_was_named(directory: RunDirectory) -> None:
    Explanations(directory, ABOUT, None, [3], "a phone")
    assert left_over(loaded(directory), None) == []
    assert left_over(loaded(directory), "a phone") == [3]
    assert left_over(None, None) == []


def test_a_file_of_before_there_was_such_a_key_has_nothing_left_over(
    directory: RunDirectory,
) -> None:
    Explanations(directory, ABOUT, None, [3], None)
    old = loaded(directory)
    del old["pending"]
    (directory.path / "explain.json").write_text(json.dumps(old))
    assert left_over(loaded(directory), None) == []


def test_explanations_of_another_pair_are_none_of_ours(directory: RunDirectory) -> None:
    Explanations(directory, ABOUT, None, [3], None)
    assert load_explanations(directory, "0" * 64) is None


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b'{"schema": 1}'])
def test_a_damaged_one_says_what_makes_it_again(directory: RunDirectory, content: bytes) -> None:
    (directory.path / "explain.json").write_bytes(content)
    with pytest.raises(UserError) as refused:
        load_explanations(directory, "f" * 64)
    assert str(refused.value).startswith(f"{directory.path / 'explain.json'} is ")
    assert str(refused.value).endswith(f"; make it again with `edgeflare explain {directory.path}`")


def test_one_that_cannot_be_read_says_so(directory: RunDirectory) -> None:
    (directory.path / "explain.json").mkdir()
    with pytest.raises(UserError, match=r"explain\.json is not a regular file"):
        load_explanations(directory, "f" * 64)


def test_the_schema_knows_all_kernels_and_all_that_a_verdict_names() -> None:
    known = schema()["$defs"]
    assert known["vote"]["properties"]["kernels"]["enum"] == [*KERNEL_SETS, None]
    assert known["verdict"]["properties"]["which"]["enum"] == [*get_args(Which), None]
