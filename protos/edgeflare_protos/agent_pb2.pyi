from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProtocolVersion(_message.Message):
    __slots__ = ("major", "minor")
    MAJOR_FIELD_NUMBER: _ClassVar[int]
    MINOR_FIELD_NUMBER: _ClassVar[int]
    major: int
    minor: int
    def __init__(self, major: _Optional[int] = ..., minor: _Optional[int] = ...) -> None: ...

class Runtime(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("protocol",)
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    protocol: ProtocolVersion
    def __init__(self, protocol: _Optional[_Union[ProtocolVersion, _Mapping]] = ...) -> None: ...

class DescribeReply(_message.Message):
    __slots__ = ("protocol", "agent_version", "runtime", "machine", "soc", "cpu_features", "os", "cores", "governor", "kernel_sets", "store_limit_bytes", "payload_limit_bytes", "python_version", "seal")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    SOC_FIELD_NUMBER: _ClassVar[int]
    CPU_FEATURES_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    CORES_FIELD_NUMBER: _ClassVar[int]
    GOVERNOR_FIELD_NUMBER: _ClassVar[int]
    KERNEL_SETS_FIELD_NUMBER: _ClassVar[int]
    STORE_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    PYTHON_VERSION_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    protocol: ProtocolVersion
    agent_version: str
    runtime: Runtime
    machine: str
    soc: str
    cpu_features: _containers.RepeatedScalarFieldContainer[str]
    os: str
    cores: int
    governor: str
    kernel_sets: _containers.RepeatedScalarFieldContainer[str]
    store_limit_bytes: int
    payload_limit_bytes: int
    python_version: str
    seal: int
    def __init__(self, protocol: _Optional[_Union[ProtocolVersion, _Mapping]] = ..., agent_version: _Optional[str] = ..., runtime: _Optional[_Union[Runtime, _Mapping]] = ..., machine: _Optional[str] = ..., soc: _Optional[str] = ..., cpu_features: _Optional[_Iterable[str]] = ..., os: _Optional[str] = ..., cores: _Optional[int] = ..., governor: _Optional[str] = ..., kernel_sets: _Optional[_Iterable[str]] = ..., store_limit_bytes: _Optional[int] = ..., payload_limit_bytes: _Optional[int] = ..., python_version: _Optional[str] = ..., seal: _Optional[int] = ...) -> None: ...

class FindModelRequest(_message.Message):
    __slots__ = ("sha256",)
    SHA256_FIELD_NUMBER: _ClassVar[int]
    sha256: str
    def __init__(self, sha256: _Optional[str] = ...) -> None: ...

class FindModelReply(_message.Message):
    __slots__ = ("present",)
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    present: bool
    def __init__(self, present: bool = ...) -> None: ...

class UploadModelRequest(_message.Message):
    __slots__ = ("header", "chunk")
    class Header(_message.Message):
        __slots__ = ("sha256", "size_bytes")
        SHA256_FIELD_NUMBER: _ClassVar[int]
        SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
        sha256: str
        size_bytes: int
        def __init__(self, sha256: _Optional[str] = ..., size_bytes: _Optional[int] = ...) -> None: ...
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: UploadModelRequest.Header
    chunk: bytes
    def __init__(self, header: _Optional[_Union[UploadModelRequest.Header, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class UploadModelReply(_message.Message):
    __slots__ = ("evicted_sha256s",)
    EVICTED_SHA256S_FIELD_NUMBER: _ClassVar[int]
    evicted_sha256s: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, evicted_sha256s: _Optional[_Iterable[str]] = ...) -> None: ...

class ExternalDelegate(_message.Message):
    __slots__ = ("library", "options")
    class OptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    LIBRARY_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    library: str
    options: _containers.ScalarMap[str, str]
    def __init__(self, library: _Optional[str] = ..., options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Invocation(_message.Message):
    __slots__ = ("signature", "input_shapes", "state", "frames", "steps")
    class InputShape(_message.Message):
        __slots__ = ("input", "shape")
        INPUT_FIELD_NUMBER: _ClassVar[int]
        SHAPE_FIELD_NUMBER: _ClassVar[int]
        input: str
        shape: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, input: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...
    class StateLink(_message.Message):
        __slots__ = ("input", "output")
        INPUT_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        input: str
        output: str
        def __init__(self, input: _Optional[str] = ..., output: _Optional[str] = ...) -> None: ...
    class OutputShape(_message.Message):
        __slots__ = ("output", "shape")
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        SHAPE_FIELD_NUMBER: _ClassVar[int]
        output: str
        shape: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, output: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...
    class Step(_message.Message):
        __slots__ = ("signature", "input_shapes", "output_shapes")
        SIGNATURE_FIELD_NUMBER: _ClassVar[int]
        INPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
        signature: str
        input_shapes: _containers.RepeatedCompositeFieldContainer[Invocation.InputShape]
        output_shapes: _containers.RepeatedCompositeFieldContainer[Invocation.OutputShape]
        def __init__(self, signature: _Optional[str] = ..., input_shapes: _Optional[_Iterable[_Union[Invocation.InputShape, _Mapping]]] = ..., output_shapes: _Optional[_Iterable[_Union[Invocation.OutputShape, _Mapping]]] = ...) -> None: ...
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    INPUT_SHAPES_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    signature: str
    input_shapes: _containers.RepeatedCompositeFieldContainer[Invocation.InputShape]
    state: _containers.RepeatedCompositeFieldContainer[Invocation.StateLink]
    frames: int
    steps: _containers.RepeatedCompositeFieldContainer[Invocation.Step]
    def __init__(self, signature: _Optional[str] = ..., input_shapes: _Optional[_Iterable[_Union[Invocation.InputShape, _Mapping]]] = ..., state: _Optional[_Iterable[_Union[Invocation.StateLink, _Mapping]]] = ..., frames: _Optional[int] = ..., steps: _Optional[_Iterable[_Union[Invocation.Step, _Mapping]]] = ...) -> None: ...

class Acceleration(_message.Message):
    __slots__ = ("float32", "fallback")
    FLOAT32_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    float32: bool
    fallback: bool
    def __init__(self, float32: bool = ..., fallback: bool = ...) -> None: ...

class OpenSessionRequest(_message.Message):
    __slots__ = ("model_sha256", "kernels", "threads", "delegate", "warmup", "input_timeout_seconds", "capture", "resume_token", "invocation", "acceleration", "arena_bytes")
    MODEL_SHA256_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    DELEGATE_FIELD_NUMBER: _ClassVar[int]
    WARMUP_FIELD_NUMBER: _ClassVar[int]
    INPUT_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INVOCATION_FIELD_NUMBER: _ClassVar[int]
    ACCELERATION_FIELD_NUMBER: _ClassVar[int]
    ARENA_BYTES_FIELD_NUMBER: _ClassVar[int]
    model_sha256: str
    kernels: int
    threads: int
    delegate: ExternalDelegate
    warmup: int
    input_timeout_seconds: float
    capture: bool
    resume_token: str
    invocation: Invocation
    acceleration: Acceleration
    arena_bytes: int
    def __init__(self, model_sha256: _Optional[str] = ..., kernels: _Optional[int] = ..., threads: _Optional[int] = ..., delegate: _Optional[_Union[ExternalDelegate, _Mapping]] = ..., warmup: _Optional[int] = ..., input_timeout_seconds: _Optional[float] = ..., capture: bool = ..., resume_token: _Optional[str] = ..., invocation: _Optional[_Union[Invocation, _Mapping]] = ..., acceleration: _Optional[_Union[Acceleration, _Mapping]] = ..., arena_bytes: _Optional[int] = ...) -> None: ...

class TensorSpec(_message.Message):
    __slots__ = ("name", "shape", "dtype", "scale", "zero_point", "index")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    ZERO_POINT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    name: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    dtype: str
    scale: float
    zero_point: int
    index: int
    def __init__(self, name: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., dtype: _Optional[str] = ..., scale: _Optional[float] = ..., zero_point: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class OpenSessionReply(_message.Message):
    __slots__ = ("session_id", "inputs", "outputs", "delegated_nodes", "total_nodes", "operators", "external_nodes", "request_crc32", "adapter", "runtime", "arena_bytes", "seal")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    DELEGATED_NODES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NODES_FIELD_NUMBER: _ClassVar[int]
    OPERATORS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_NODES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_CRC32_FIELD_NUMBER: _ClassVar[int]
    ADAPTER_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    ARENA_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    inputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    outputs: _containers.RepeatedCompositeFieldContainer[TensorSpec]
    delegated_nodes: int
    total_nodes: int
    operators: _containers.RepeatedScalarFieldContainer[str]
    external_nodes: int
    request_crc32: int
    adapter: str
    runtime: Runtime
    arena_bytes: int
    seal: int
    def __init__(self, session_id: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., outputs: _Optional[_Iterable[_Union[TensorSpec, _Mapping]]] = ..., delegated_nodes: _Optional[int] = ..., total_nodes: _Optional[int] = ..., operators: _Optional[_Iterable[str]] = ..., external_nodes: _Optional[int] = ..., request_crc32: _Optional[int] = ..., adapter: _Optional[str] = ..., runtime: _Optional[_Union[Runtime, _Mapping]] = ..., arena_bytes: _Optional[int] = ..., seal: _Optional[int] = ...) -> None: ...

class InferRequest(_message.Message):
    __slots__ = ("session_id", "request_id", "count", "payload", "payload_crc32")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_CRC32_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    request_id: int
    count: int
    payload: bytes
    payload_crc32: int
    def __init__(self, session_id: _Optional[str] = ..., request_id: _Optional[int] = ..., count: _Optional[int] = ..., payload: _Optional[bytes] = ..., payload_crc32: _Optional[int] = ...) -> None: ...

class InputFailure(_message.Message):
    __slots__ = ("index", "kind", "detail", "quarantined")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[InputFailure.Kind]
        KIND_CRASH: _ClassVar[InputFailure.Kind]
        KIND_HANG: _ClassVar[InputFailure.Kind]
        KIND_ERROR: _ClassVar[InputFailure.Kind]
    KIND_UNSPECIFIED: InputFailure.Kind
    KIND_CRASH: InputFailure.Kind
    KIND_HANG: InputFailure.Kind
    KIND_ERROR: InputFailure.Kind
    INDEX_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    index: int
    kind: InputFailure.Kind
    detail: str
    quarantined: bool
    def __init__(self, index: _Optional[int] = ..., kind: _Optional[_Union[InputFailure.Kind, str]] = ..., detail: _Optional[str] = ..., quarantined: bool = ...) -> None: ...

class InferReply(_message.Message):
    __slots__ = ("request_id", "payload_crc32", "outputs", "outputs_crc32", "failures", "busy_seconds", "lease_number", "seal")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_CRC32_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_CRC32_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    BUSY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LEASE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    payload_crc32: int
    outputs: bytes
    outputs_crc32: int
    failures: _containers.RepeatedCompositeFieldContainer[InputFailure]
    busy_seconds: float
    lease_number: int
    seal: int
    def __init__(self, request_id: _Optional[int] = ..., payload_crc32: _Optional[int] = ..., outputs: _Optional[bytes] = ..., outputs_crc32: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[InputFailure, _Mapping]]] = ..., busy_seconds: _Optional[float] = ..., lease_number: _Optional[int] = ..., seal: _Optional[int] = ...) -> None: ...

class CaptureRequest(_message.Message):
    __slots__ = ("session_id", "payload", "payload_crc32")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_CRC32_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    payload: bytes
    payload_crc32: int
    def __init__(self, session_id: _Optional[str] = ..., payload: _Optional[bytes] = ..., payload_crc32: _Optional[int] = ...) -> None: ...

class CaptureReply(_message.Message):
    __slots__ = ("payload_crc32", "outputs_crc32", "size_bytes", "failures", "busy_seconds", "chunk", "lease_number", "seal")
    PAYLOAD_CRC32_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_CRC32_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    BUSY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    LEASE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    payload_crc32: int
    outputs_crc32: int
    size_bytes: int
    failures: _containers.RepeatedCompositeFieldContainer[InputFailure]
    busy_seconds: float
    chunk: bytes
    lease_number: int
    seal: int
    def __init__(self, payload_crc32: _Optional[int] = ..., outputs_crc32: _Optional[int] = ..., size_bytes: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[InputFailure, _Mapping]]] = ..., busy_seconds: _Optional[float] = ..., chunk: _Optional[bytes] = ..., lease_number: _Optional[int] = ..., seal: _Optional[int] = ...) -> None: ...

class TelemetryRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class TelemetryReply(_message.Message):
    __slots__ = ("temperatures_celsius", "frequencies_mhz", "agent_rss_bytes", "worker_rss_bytes", "worker_restarts", "quarantined_inputs", "store_bytes", "uptime_seconds", "idle_seconds", "seal")
    class Reading(_message.Message):
        __slots__ = ("name", "value")
        NAME_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        name: str
        value: float
        def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    TEMPERATURES_CELSIUS_FIELD_NUMBER: _ClassVar[int]
    FREQUENCIES_MHZ_FIELD_NUMBER: _ClassVar[int]
    AGENT_RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKER_RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKER_RESTARTS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_INPUTS_FIELD_NUMBER: _ClassVar[int]
    STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    IDLE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    temperatures_celsius: _containers.RepeatedCompositeFieldContainer[TelemetryReply.Reading]
    frequencies_mhz: _containers.RepeatedCompositeFieldContainer[TelemetryReply.Reading]
    agent_rss_bytes: int
    worker_rss_bytes: _containers.RepeatedScalarFieldContainer[int]
    worker_restarts: int
    quarantined_inputs: int
    store_bytes: int
    uptime_seconds: float
    idle_seconds: float
    seal: int
    def __init__(self, temperatures_celsius: _Optional[_Iterable[_Union[TelemetryReply.Reading, _Mapping]]] = ..., frequencies_mhz: _Optional[_Iterable[_Union[TelemetryReply.Reading, _Mapping]]] = ..., agent_rss_bytes: _Optional[int] = ..., worker_rss_bytes: _Optional[_Iterable[int]] = ..., worker_restarts: _Optional[int] = ..., quarantined_inputs: _Optional[int] = ..., store_bytes: _Optional[int] = ..., uptime_seconds: _Optional[float] = ..., idle_seconds: _Optional[float] = ..., seal: _Optional[int] = ...) -> None: ...

class CloseSessionRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class CloseSessionReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LeaseHolder(_message.Message):
    __slots__ = ("user", "pid", "command")
    USER_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    user: str
    pid: int
    command: str
    def __init__(self, user: _Optional[str] = ..., pid: _Optional[int] = ..., command: _Optional[str] = ...) -> None: ...

class DeviceProcess(_message.Message):
    __slots__ = ("uid", "pid")
    UID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    uid: int
    pid: int
    def __init__(self, uid: _Optional[int] = ..., pid: _Optional[int] = ...) -> None: ...

class AcquireLeaseRequest(_message.Message):
    __slots__ = ("holder", "secret", "former_secret", "seal")
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    FORMER_SECRET_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    holder: LeaseHolder
    secret: str
    former_secret: str
    seal: int
    def __init__(self, holder: _Optional[_Union[LeaseHolder, _Mapping]] = ..., secret: _Optional[str] = ..., former_secret: _Optional[str] = ..., seal: _Optional[int] = ...) -> None: ...

class AcquireLeaseReply(_message.Message):
    __slots__ = ("lease_number", "remaining_seconds", "in_use_by", "told_by", "seal")
    LEASE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    REMAINING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    IN_USE_BY_FIELD_NUMBER: _ClassVar[int]
    TOLD_BY_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    lease_number: int
    remaining_seconds: float
    in_use_by: LeaseHolder
    told_by: DeviceProcess
    seal: int
    def __init__(self, lease_number: _Optional[int] = ..., remaining_seconds: _Optional[float] = ..., in_use_by: _Optional[_Union[LeaseHolder, _Mapping]] = ..., told_by: _Optional[_Union[DeviceProcess, _Mapping]] = ..., seal: _Optional[int] = ...) -> None: ...

class RenewLeaseRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RenewLeaseReply(_message.Message):
    __slots__ = ("remaining_seconds", "seal")
    REMAINING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SEAL_FIELD_NUMBER: _ClassVar[int]
    remaining_seconds: float
    seal: int
    def __init__(self, remaining_seconds: _Optional[float] = ..., seal: _Optional[int] = ...) -> None: ...

class ReleaseLeaseRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseLeaseReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
