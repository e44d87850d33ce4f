from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import grpc
import pytest

from edgeflare_agent.tracebacks import Tracebacks
from edgeflare_protos import PROTOCOL_MAJOR, agent_pb2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def raised(words: str) -> Exception:
    try:
        raise KeyError(words)
    except KeyError as error:
        return error


def test_they_are_kept_in_one_file_of_bounded_size(folder: Path) -> None:
    tracebacks = Tracebacks()
    places = {tracebacks.keep(raised("x" * 100_000)) for _ in range(30)}
    (file,) = folder.iterdir()
    assert places == {str(file)}
    assert file.stat().st_mode & 0o077 == 0
    assert "Traceback" in file.read_text()
    assert file.stat().st_size < 1.5 * 2**20


def test_a_link_in_place_of_the_file_is_not_followed(folder: Path) -> None:
    tracebacks = Tracebacks()
    place = Path(tracebacks.keep(raised("x")))
    victim = folder / "victim"
    victim.write_text("precious")
    place.unlink()
    place.symlink_to(victim)
    assert tracebacks.keep(raised("y")).startswith("no file, since none can be written")
    assert victim.read_text() == "precious"


def test_a_call_that_fails_in_an_unforeseen_way_is_answered_in_one_line(
    folder: Path, start_agent: Any, connect: Any, int8_model: Path, capfd: Any
) -> None:
    """A folder stands where the model should go: no status was foreseen for that."""
    agent = start_agent(env={**os.environ, "TMPDIR": str(folder)})
    client = connect(agent)
    content = int8_model.read_bytes()
    (folder / "store" / f"{hashlib.sha256(content).hexdigest()}.tflite").mkdir()
    with pytest.raises(grpc.RpcError) as caught:
        client.upload(content)
    assert caught.value.code() == grpc.StatusCode.INTERNAL
    words = caught.value.details() or ""
    assert words.startswith("unexpected IsADirectoryError: ")
    (file,) = folder.glob("edgeflare-agent-*.txt")
    assert str(file) in words
    assert "Traceback" in file.read_text()
    version = agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR)
    client.stub.Describe(agent_pb2.DescribeRequest(protocol=version), timeout=200)
    assert "Traceback" not in capfd.readouterr().err
