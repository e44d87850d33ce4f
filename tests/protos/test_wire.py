"""The wire: generated from the proto, in agreement with its tables, and open to older peers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import edgeflare_protos
from edgeflare_protos import agent_pb2, seal_holds, set_seal
from edgeflare_protos.kernel_sets import (
    KERNEL_SETS,
    TFLITE_KERNEL_SETS,
    Kernels,
    accelerated,
    equipped_vendors,
    is_kernel_set,
    is_tflite_kernel_set,
)

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


def test_every_rpc_has_a_comment_and_the_checksum_is_crc_32() -> None:
    service = agent_pb2.DESCRIPTOR.services_by_name["Agent"]
    assert service.full_name == "edgeflare.v1.Agent"
    lines = (PROTOS / "agent.proto").read_text().splitlines()
    rpcs = [number for number, line in enumerate(lines) if line.strip().startswith("rpc ")]
    assert len(rpcs) == len(service.methods)
    assert all(lines[number - 1].strip().startswith("//") for number in rpcs)
    assert edgeflare_protos.crc32(b"123456789") == 0xCBF43926


def test_each_kernel_set_has_a_number_of_its_own() -> None:
    numbers = [known.number for known in KERNEL_SETS.values()]
    assert len({0, *numbers}) == 1 + len(KERNEL_SETS)


def test_there_are_those_of_the_type_and_no_others() -> None:
    assert tuple(KERNEL_SETS) == get_args(Kernels)
    assert not is_kernel_set("xnn")
    assert set(TFLITE_KERNEL_SETS) == set(filter(is_tflite_kernel_set, (*KERNEL_SETS, "xnn")))
    assert [name for name in KERNEL_SETS if accelerated(name)] == ["gpu", "npu"]
    assert len({known.title for known in KERNEL_SETS.values()}) == len(KERNEL_SETS)
    own_names = {(known.runtime, known.own_name) for known in KERNEL_SETS.values()}
    assert len(own_names) == len(KERNEL_SETS)


SEALED = [
    name
    for name, message in agent_pb2.DESCRIPTOR.message_types_by_name.items()
    if "seal" in message.fields_by_name
]


def newer_class(name: str) -> Any:
    """Return a message as a peer of a later minor version knows it, with one field more in each."""
    file = descriptor_pb2.FileDescriptorProto()
    agent_pb2.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        number = 1 + max((field.number for field in message.field), default=0)
        message.field.add(name="added", number=number, type="TYPE_STRING", label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}"))


@pytest.mark.parametrize("name", SEALED)
def test_a_seal_holds_for_a_peer_that_does_not_know_the_newest_field(name: str) -> None:
    message = newer_class(name)()
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_STRING and not field.is_repeated:
            setattr(message, field.name, "text")
        elif field.type == field.TYPE_UINT64 and not field.is_repeated:
            setattr(message, field.name, 7)
    if name == "OpenSessionReply":
        message.runtime.name = message.runtime.added = "tflite-micro"
    set_seal(message)
    received = getattr(agent_pb2, name).FromString(message.SerializeToString())
    assert received.seal == message.seal
    assert seal_holds(received)


def numbers_of(message: Any) -> Iterator[tuple[str, list[int]]]:
    yield message.full_name, [field.number for field in message.fields]
    for inner in message.nested_types:
        yield from numbers_of(inner)


def test_the_fields_of_each_message_are_numbered_in_their_order() -> None:
    """A gap would be a field that was taken away, and the first release has none of these."""
    for message in agent_pb2.DESCRIPTOR.message_types_by_name.values():
        for name, numbers in numbers_of(message):
            assert numbers == list(range(1, 1 + len(numbers))), name


QUALCOMM = "ai-edge-litert-sdk-qualcomm"


def installed_files(package: Path, *names: str) -> None:
    for name in names:
        path = package / "vendors" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_a_vendor_needs_its_package_and_what_compiles_and_what_dispatches(tmp_path: Path) -> None:
    assert equipped_vendors(tmp_path, {QUALCOMM}) == ()
    installed_files(tmp_path, "qualcomm/compiler/libLiteRtCompilerPlugin_Qualcomm.so")
    assert equipped_vendors(tmp_path, {QUALCOMM}) == ()
    installed_files(tmp_path, "qualcomm/dispatch/libLiteRtDispatch_Qualcomm.so")
    assert equipped_vendors(tmp_path, {QUALCOMM}) == ("qualcomm",)
    # What is installed for one vendor is of no use for another.
    assert equipped_vendors(tmp_path, {"ai-edge-litert-sdk-intel"}) == ()
