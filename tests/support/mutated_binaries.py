"""Images, arrays, sounds and models changed at random, with their outer format left valid."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema

Mutation = Callable[[bytes, Random], bytes]

BOMB_BYTES = 300_000_000
"""Of an array of zeros that is packed to nearly nothing."""

_ODD_SIZES: Final = (
    0,
    1,
    2,
    7,
    255,
    65535,
    65536,
    60_000,
    2**20,
    2**24,
    2**31 - 1,
    2**31,
    2**32 - 1,
)
_ODD_SHAPES: Final = (
    *("()", "(0,)", "(-1,)", "(5, 0)", "(1, 2, 3)", "(4, 28, 28, 1)", "(1048576, 1048576)"),
    *("(1099511627776, 784)", "(1000000000000, 0)", f"({'1, ' * 40})", f"({'(' * 60}1{')' * 60},)"),
    *("(2.5,)", "(True,)", "('a',)", "None", f"({'9' * 400},)", "(10, 9223372036854775807)"),
)
_ODD_TYPES: Final = (
    *("|O", "<f8", ">i2", "<i4", "|b1", "<c16", "|S0", "<U0", "<U7", "|V3", "<M8[s]", "<m8", "<f2"),
    *("|u1", "|i1", "<u8", "<f16", "", "<q99", "O,O", "|S2147483647", "(3,)<f4"),
)


def png_header(data: bytes, random: Random) -> bytes:
    """Return a PNG file that claims another size, depth or kind of colours, with its checksum."""
    header = bytearray(data[16:29])
    at = random.choice((0, 4, 0, 4, 8, 9, 10, 11, 12))
    if at < 8:
        struct.pack_into(">I", header, at, random.choice(_ODD_SIZES))
    else:
        header[at] = random.choice((0, 1, 2, 3, 4, 5, 6, 8, 16, 255))
    checksum = struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return data[:16] + bytes(header) + checksum + data[33:]


def jpeg_header(data: bytes, random: Random) -> bytes:
    """Return a JPEG file that claims another size or other parts, or goes over it more often."""
    at = data.index(b"\xff\xc0")
    height, width = (random.choice((1, 28, 60_000, 65535, 0)) for _ in range(2))
    changed = data[: at + 5] + struct.pack(">HH", height, width) + data[at + 9 :]
    scan = changed[changed.index(b"\xff\xda") : -2]
    return changed[:-2] + scan * random.choice((0, 0, 1, 50)) + changed[-2:]


def bmp_header(data: bytes, random: Random) -> bytes:
    """Return a BMP file with another size, depth or offset."""
    at = random.choice((10, 14, 18, 22, 28, 30, 34, 46))
    value = struct.pack("<I", random.choice((*_ODD_SIZES, 40, 12, 2**32 - 28)))
    return data[:at] + value + data[at + 4 :]


def webp_header(data: bytes, random: Random) -> bytes:
    """Return a WebP file with another size, or with a canvas that claims one."""
    low, most = random.choices((0, 27, 255, 65535), k=2), random.choices((0, 255), k=2)
    size = struct.pack("<HBHB", low[0], most[0], low[1], most[1])
    if random.randrange(2):
        flags = bytes([random.choice((0, 2, 16, 18, 255)), 0, 0, 0])
        canvas = b"VP8X" + struct.pack("<I", 10) + flags + size[:6]
        return data[:4] + struct.pack("<I", len(data) + 10) + data[8:12] + canvas + data[12:]
    at = 21 if data[12:16] == b"VP8L" else 26
    return data[:at] + size[:4] + data[at + 4 :]


def tiff_header(data: bytes, random: Random) -> bytes:
    """Return a TIFF file with another value in its directory."""
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    entry = at + 2 + 12 * random.randrange(count)
    changed = bytearray(data)
    struct.pack_into("<HI", changed, entry + 2, 4, 1)
    struct.pack_into("<I", changed, entry + 8, random.choice(_ODD_SIZES))
    if not random.randrange(4):
        struct.pack_into("<H", changed, entry, random.choice((256, 257, 277, 322, 323, 324, 258)))
    return bytes(changed)


def pnm_header(data: bytes, random: Random) -> bytes:
    """Return a PNM file with another header."""
    width, height = random.choices((*_ODD_SIZES, "#\n5", "-1", "9" * 400), k=2)
    most = random.choice((255, 0, 65535, 1, 70000))
    return f"P{random.randrange(1, 8)}\n{width} {height}\n{most}\n".encode() + data[-784:]


def npy_header(data: bytes, random: Random) -> bytes:
    """Return an `.npy` file with another shape, type, order or version."""
    (length,) = struct.unpack_from("<H", data, 8)
    header, values = data[10 : 10 + length].decode("latin1"), data[10 + length :]
    known = eval(header)  # noqa: S307 - what numpy wrote
    shape, kind = str(known["shape"]), repr(known["descr"])
    how = random.randrange(6)
    if how in (0, 5):
        shape = random.choice(_ODD_SHAPES)
    if how in (1, 5):
        kind = repr(random.choice(_ODD_TYPES))
    if how == 2:
        kind = random.choice(
            ("[('a', '<f4'), ('b', '|O')]", "[('a', '<i8', (99999999,))]", "1", "{}")
        )
    order = random.choice(("True", "False", "2", "'C'")) if how == 3 else "False"
    text = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}"
    if how == 4:
        text = random.choice(("[" * 9000, "-" * 9000 + "1", "{}", text[:-2], "{1: " * 3000, "\n"))
    if how == 5 and not random.randrange(3):
        values = values[: random.randrange(len(values) + 1)]
    body = text.encode("latin1")
    version = random.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\7\7"))
    width = "<H" if version == b"\1\0" else "<I"
    return b"\x93NUMPY" + version + struct.pack(width, len(body)) + body + values


def npz_members(data: bytes, random: Random) -> bytes:
    """Return an `.npz` file with other members, names, sizes, ways of packing or checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    name = random.choice([*members])
    how = random.randrange(7)
    if how <= 2:
        members[name] = npy_header(members[name], random)
    elif how == 3:
        bomb = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({BOMB_BYTES},)}}".encode()
        head = b"\x93NUMPY\1\0" + struct.pack("<H", len(bomb))
        members[name] = head + bomb + bytes(BOMB_BYTES)
    elif how == 4:
        other = random.choice(
            (".npy", "a/b.npy", "../x.npy", "images", "images.npy.npy", "\udcff.npy")
        )
        members = {other if one == name else one: content for one, content in members.items()}
    elif how == 5:
        members[name] = random.choice((b"", b"text", members[name][:20], b"\x80\4N.", data))
    packing = random.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", packing) as archive:
        for one, content in members.items():
            archive.writestr(one.encode(errors="replace").decode(), content)
    return _directory_changed(written.getvalue(), random) if how == 6 else written.getvalue()


def _directory_changed(data: bytes, random: Random) -> bytes:
    """Return an archive whose directory says another size, checksum, way of packing or place."""
    at = data.index(b"PK\1\2") + random.choice((8, 10, 16, 20, 24, 42))
    value = random.choice((0, 1, 99, 2**31, 2**32 - 1))
    return data[:at] + struct.pack("<I", value) + data[at + 4 :]


def tflite_objects(data: bytes, random: Random) -> bytes:
    """Return a `.tflite` file in which values of one to three of its objects are others."""
    unchanged = packed(schema.ModelT.InitFromPackedBuf(data))
    while True:
        model = schema.ModelT.InitFromPackedBuf(data)
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            _change_object(model, random)
        with contextlib.suppress(Exception):  # a value that no file can hold
            if (changed := packed(model)) not in (data, unchanged):
                return changed


def packed(model: Any) -> bytes:
    """Return the file of a model by the schema's own classes, which align nothing."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _change_object(model: Any, random: Random) -> None:
    graph = random.choice(_or(model.subgraphs, model))
    parts = [getattr(graph, key, None) for key in ("operators", "operators", "tensors", "tensors")]
    parts += [model.operatorCodes, model.buffers, model.signatureDefs, [graph], [model]]
    one = random.choice(_or(random.choice(parts), graph))
    inner = [part for part in vars(one).values() if type(part).__name__.endswith("T")]
    inner = [part for part in inner if vars(part)]
    if inner and random.randrange(2):  # options, a quantization, levels of a sparse tensor
        one = random.choice(inner)
    key = random.choice([*vars(one)])
    setattr(one, key, _changed_field(getattr(one, key), random))


def _or(values: Any, other: Any) -> Any:
    """Return a vector of which one can be chosen, which a change before may have taken away."""
    return values if hasattr(values, "__len__") and len(values) else [other]


def _changed_field(value: Any, random: Random) -> Any:
    """Return another value of the kind that a field has."""
    if isinstance(value, bool) or value is None:
        return random.choice((None, not value)) if value is None else not value
    if isinstance(value, int):
        return random.choice((value + 1, 0, -1, 1, 5, 99, 2**31 - 1, -(2**31), 127, 2**33))
    if isinstance(value, float):
        return random.choice((0.0, -1.0, 1e38, float("nan"), float("inf")))
    if isinstance(value, bytes):
        return random.choice((b"", b"\xff\xfe", b"x" * 3000, b"\x1b[31m", value[:-1], None))
    if isinstance(value, (list, np.ndarray)):
        return _changed_vector(value, random)
    return None


def _changed_vector(values: Any, random: Random) -> Any:
    how, found = random.randrange(6), list(values)
    if how == 0 or not found:
        return None
    if how == 1:
        found = found[: random.randrange(len(found))]
    elif how == 2:
        found += [random.choice(found)] * random.choice((1, 1, 3, 5000))
    elif isinstance(values, np.ndarray):
        at, limits = random.randrange(len(found)), values.dtype.kind == "f"
        odd = (0, 1, 127, 0.5) if limits else (0, 1, 7, 100, 2**31 - 1, -1, -2, 2**20)
        changed = values.copy()
        with np.errstate(all="ignore"):
            changed[at : None if how == 3 else at + 1] = np.asarray(random.choice(odd)).astype(
                values.dtype
            )
        return changed
    else:
        random.shuffle(found)
    return np.asarray(found, values.dtype) if isinstance(values, np.ndarray) else found


def wav_chunks(data: bytes, random: Random) -> bytes:
    """Return a WAV file with other values in its header, or with more chunks."""
    changed = bytearray(data)
    how = random.randrange(5)
    if how == 0:
        struct.pack_into("<I", changed, random.choice((4, 16, 40)), random.choice(_ODD_SIZES))
    elif how == 1:
        struct.pack_into(
            "<H",
            changed,
            random.choice((20, 22, 32, 34)),
            random.choice((0, 1, 3, 7, 24, 65534, 65535)),
        )
    elif how == 2:
        struct.pack_into("<I", changed, 24, random.choice((0, 1, 2**32 - 1)))
    elif how == 3:
        chunk = random.choice((b"LIST", b"fmt ", b"data", b"\0\0\0\0")) + struct.pack(
            "<I", random.choice((0, 3, 2**31))
        )
        changed[12:12] = chunk * random.choice((1, 100, 2_000_000))
    else:
        del changed[random.randrange(len(changed)) :]
    return bytes(changed)


def flac_info(data: bytes, random: Random) -> bytes:
    """Return a FLAC file that claims other numbers of samples, channels or bits."""
    changed = bytearray(data)
    (packed,) = struct.unpack_from(">Q", changed, 18)
    samples = random.choice((0, 1, 2**36 - 1, 2**30, packed & (2**36 - 1)))
    rest = packed >> 36 if random.randrange(2) else random.randrange(2**28)
    struct.pack_into(">Q", changed, 18, rest << 36 | samples)
    return bytes(changed)


BINARIES: Final[Mapping[str, Mutation]] = {
    "png": png_header,
    "jpeg": jpeg_header,
    "bmp": bmp_header,
    "webp": webp_header,
    "tiff": tiff_header,
    "pnm": pnm_header,
    "npy": npy_header,
    "npz": npz_members,
    "tflite": tflite_objects,
    "wav": wav_chunks,
    "flac": flac_info,
}
"""By the format of a file: what changes what it claims, and leaves its outer format valid."""
