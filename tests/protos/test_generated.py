from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import edgeflare_protos
from edgeflare_protos import agent_pb2

PROTOS = Path(edgeflare_protos.__file__).parent


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    outputs = [f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")]
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(PROTOS.parent), *outputs]
    subprocess.run([*command, str(PROTOS / "agent.proto")], check=True)
    return folder / "edgeflare_protos"


@pytest.mark.parametrize("name", ["agent_pb2.py", "agent_pb2.pyi", "agent_pb2_grpc.py"])
def test_the_committed_files_are_what_the_proto_gives(generated: Path, name: str) -> None:
    committed = (PROTOS / name).read_text()
    assert committed == (generated / name).read_text(), "run `make protos`"


def test_every_rpc_and_field_has_a_comment_or_speaks_for_itself() -> None:
    service = agent_pb2.DESCRIPTOR.services_by_name["Agent"]
    assert service.full_name == "edgeflare.v1.Agent"
    lines = (PROTOS / "agent.proto").read_text().splitlines()
    rpcs = [number for number, line in enumerate(lines) if line.strip().startswith("rpc ")]
    assert len(rpcs) == len(service.methods)
    assert all(lines[number - 1].strip().startswith("//") for number in rpcs)


def test_the_checksum_is_crc_32() -> None:
    assert edgeflare_protos.crc32(b"123456789") == 0xCBF43926
    assert edgeflare_protos.crc32(memoryview(b"edge")) == zlib.crc32(b"edge")
