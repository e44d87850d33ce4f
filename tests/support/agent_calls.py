"""Calls of an agent: the requests that tests send again and again, and how it refuses them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from edgeflare_protos import PROTOCOL_MAJOR, agent_pb2, crc32
from edgeflare_protos.kernel_sets import KERNEL_SETS

PATIENT_SECONDS = 200
DESCRIBE = agent_pb2.DescribeRequest(protocol=agent_pb2.ProtocolVersion(major=PROTOCOL_MAJOR))


def opening(model: Path, **fields: Any) -> agent_pb2.OpenSessionRequest:
    """Return the request to open a model on one thread of built-in kernels, or as `fields` say."""
    usual = {"kernels": KERNEL_SETS["builtin"].number, "threads": 1, "input_timeout_seconds": 10.0}
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    return agent_pb2.OpenSessionRequest(**{"model_sha256": sha256, **usual, **fields})


def batch(session_id: str, inputs: Any, number: int = 1) -> agent_pb2.InferRequest:
    """Return the request to run inputs: an array of them, or the bytes of one."""
    payload = inputs if isinstance(inputs, bytes) else inputs.tobytes()
    return agent_pb2.InferRequest(
        session_id=session_id,
        request_id=number,
        count=1 if isinstance(inputs, bytes) else len(inputs),
        payload=payload,
        payload_crc32=crc32(payload),
    )


def refused(call: Callable[..., Any], *request: Any, **options: Any) -> tuple[Any, str]:
    """Make a call that has to be refused; return the status and the words."""
    if request:
        options.setdefault("timeout", PATIENT_SECONDS)
    with pytest.raises(grpc.RpcError) as caught:
        call(*request, **options)
    return caught.value.code(), caught.value.details() or ""


def wait_until(condition: Callable[[], bool]) -> bool:
    """Return whether something holds before a patient user would give up."""
    deadline = time.monotonic() + PATIENT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
