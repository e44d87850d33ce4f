"""Write `.tflite` files: new ones, or existing ones with operators added behind their last.

The contents of an existing file are kept: weights, metadata, signatures, operators and their order,
and the files that it carries behind its graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor
from edgeflare.models.associated_files import with_associated_files
from edgeflare.models.model_structure import options_class
from edgeflare.models.tflite_file import read_model

_IDENTIFIER = b"TFL3"
_SCHEMA_VERSION = 3
_ALIGNMENT = 16
"""Alignment of constants in bytes, as the schema demands; the object API alone would align them to
4."""

_PLACEHOLDER = 127
"""What the old 8-bit field of an operator code holds where the code has no place in it."""

_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int8": schema.TensorType.INT8,
    "uint8": schema.TensorType.UINT8,
    "int32": schema.TensorType.INT32,
}


class Writer:
    """The main graph of a `.tflite` file, to which tensors and operators are added.

    Tensors are named by their index, as in `Graph`.

    Attributes:
        graph: the main graph, as flatbuffers unpacked it.

    """

    def __init__(self, content: bytes | None = None) -> None:
        """Begin with a file, or with an empty graph."""
        self._source = content
        if content is None:
            model = schema.ModelT()
            model.version = _SCHEMA_VERSION
            graph = schema.SubGraphT()
            graph.tensors, graph.operators = [], []
            # By convention the first buffer is empty: that of tensors without values.
            model.subgraphs, model.operatorCodes, model.buffers = [graph], [], [schema.BufferT()]
            self._model = model
        else:
            self._model = read_model(content)
        self.graph = self._model.subgraphs[0]

    def tensor(self, tensor: Tensor) -> int:
        """Add a tensor that an operator or the user writes."""
        new = schema.TensorT()
        new.name, new.shape = tensor.name, np.asarray(tensor.shape, np.int32)
        new.type = _TYPES[tensor.dtype]
        if tensor.scale:
            new.quantization = schema.QuantizationParametersT()
            new.quantization.scale = np.asarray([tensor.scale], np.float32)
            new.quantization.zeroPoint = np.asarray([tensor.zero_point], np.int64)
        self.graph.tensors.append(new)
        return len(self.graph.tensors) - 1

    def constant(self, name: str, values: NDArray[np.generic]) -> int:
        """Add a constant, in its own shape and dtype."""
        index = self.tensor(Tensor(name, values.shape, values.dtype.name))
        self.graph.tensors[index].buffer = self.buffer(values.tobytes())
        return index

    def operator(
        self, name: str, inputs: Sequence[int], output: int, *, version: int = 1, **options: object
    ) -> int:
        """Add an operator behind the others, and return its output.

        Args:
            name: name in the schema, of an operator that has options; nothing is fused into it
                unless these say so.
            inputs: tensors that it reads.
            output: the tensor that it writes.
            version: the oldest version that does it, so that old runtimes know it.
            options: options of the operator that are not as by default, by their names in the
                schema's Python code.

        """
        new = schema.OperatorT()
        new.opcodeIndex = self._code(getattr(schema.BuiltinOperator, name), version)
        new.inputs = np.asarray(inputs, np.int32)
        new.outputs = np.asarray([output], np.int32)
        kind = options_class(name)
        new.builtinOptionsType = getattr(schema.BuiltinOptions, str(kind))
        new.builtinOptions = getattr(schema, f"{kind}T")()
        for key, value in options.items():
            setattr(new.builtinOptions, key, value)
        self.graph.operators.append(new)
        return output

    def replace_output(self, old: int, new: int) -> None:
        """Replace an output of the model by another tensor, under the same name."""
        tensors = self.graph.tensors
        tensors[new].name = tensors[old].name
        tensors[new].shapeSignature = tensors[old].shapeSignature
        tensors[old].name = (tensors[old].name or b"") + b"/inner"
        self.graph.outputs = [
            new if int(output) == old else int(output) for output in self.graph.outputs
        ]
        for signature in self._model.signatureDefs or []:
            for entry in signature.outputs if signature.subgraphIndex == 0 else []:
                entry.tensorIndex = new if entry.tensorIndex == old else entry.tensorIndex

    def begin_and_end(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Set the inputs and outputs of the model."""
        self.graph.inputs, self.graph.outputs = list(inputs), list(outputs)

    def note(self, name: str, content: bytes) -> None:
        """Add an entry to the file's metadata."""
        entry = schema.MetadataT()
        entry.name, entry.buffer = name, self.buffer(content)
        self._model.metadata = [*(self._model.metadata or []), entry]

    def content(self) -> bytes:
        """Return the file."""
        made = written(self._model)
        return made if self._source is None else with_associated_files(made, self._source)

    def buffer(self, content: bytes) -> int:
        """Add a buffer, and return its index."""
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8)
        self._model.buffers.append(buffer)
        return len(self._model.buffers) - 1

    def _code(self, builtin: int, version: int) -> int:
        codes = self._model.operatorCodes
        for index, code in enumerate(codes):
            known = max(code.builtinCode, code.deprecatedBuiltinCode)
            if (known, code.version, code.customCode) == (builtin, version, None):
                return index
        code = schema.OperatorCodeT()
        code.builtinCode, code.version = builtin, version
        code.deprecatedBuiltinCode = min(builtin, _PLACEHOLDER)
        codes.append(code)
        return len(codes) - 1


def written(model: Any) -> bytes:
    """Return the file of a model that flatbuffers unpacked, with its constants aligned."""
    builder = _AligningBuilder(1024)
    builder.Finish(model.Pack(builder), file_identifier=_IDENTIFIER)
    return bytes(builder.Output())


class _AligningBuilder(flatbuffers.Builder):  # type: ignore[misc]
    """A builder that puts byte vectors where SIMD kernels want them."""

    def CreateNumpyVector(self, x: NDArray[np.generic]) -> int:  # noqa: N802
        if x.dtype == np.uint8:
            self.Prep(_ALIGNMENT, x.nbytes)
        return int(super().CreateNumpyVector(x))


def notes(content: bytes) -> dict[str, bytes]:
    """Return the entries of a file's metadata, by name; of those with one name the last."""
    model = read_model(content)
    found = {}
    for entry in model.metadata or []:
        data = model.buffers[entry.buffer].data
        name = entry.name.decode(errors="replace") if entry.name else ""
        found[name] = b"" if data is None else np.asarray(data, np.uint8).tobytes()
    return found
