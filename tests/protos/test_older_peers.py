"""A peer that does not know the newest fields takes the seals of messages that have them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from edgeflare_protos import agent_pb2, seal_holds, set_seal

SEAL = 1000
SEALED = [
    name
    for name, message in agent_pb2.DESCRIPTOR.message_types_by_name.items()
    if "seal" in message.fields_by_name
]
BEFORE_1_3 = {
    *("session_id", "inputs", "outputs", "delegated_nodes", "total_nodes", "operators"),
    *("captures", "external_nodes", "request_crc32", "seal"),
}
"""The fields of the reply to an opened session that agents of 1.2 sent."""


def older_class(name: str) -> Any:
    """Return a message as it is known by a peer from before the fields behind the seal."""
    file = descriptor_pb2.FileDescriptorProto()
    agent_pb2.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        known = [field for field in message.field if field.number <= SEAL]
        del message.field[:]
        message.field.extend(known)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{name}"))


@pytest.mark.parametrize("name", SEALED)
def test_a_seal_holds_for_a_peer_that_knows_no_field_behind_it(name: str) -> None:
    message = getattr(agent_pb2, name)()
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_STRING and not field.is_repeated:
            setattr(message, field.name, "text")
        elif field.type == field.TYPE_UINT64 and not field.is_repeated:
            setattr(message, field.name, 7)
    if name == "OpenSessionReply":
        message.runtime.name = "tflite-micro"
    set_seal(message)
    older = older_class(name).FromString(message.SerializeToString())
    assert older.seal == message.seal
    assert seal_holds(older)


def test_what_was_added_to_an_opened_session_lies_behind_its_seal() -> None:
    fields = agent_pb2.OpenSessionReply.DESCRIPTOR.fields_by_name
    assert {name for name, field in fields.items() if field.number <= SEAL} == BEFORE_1_3
