"""A second reader of traces, made from docs/trace.md alone, for the tests: read(PATH) -> Trace. Needs no package: libzstd is
on every Debian."""
import collections
import ctypes
import ctypes.util
import pathlib
import struct

HEADER = struct.Struct("<8sIIIIQQ24s64s")
FRAME = struct.Struct("<4sIII")
RECORD = struct.Struct("<QQQIHBB")
KINDS = ("none", "thread", "allocate", "free", "out of memory", "op begin", "tensor", "op end", "evict", "fetch", "wait", "phase",
         "sum", "lost", "end", "peaks")
WRITTEN, RESULT, LEAF, DERIVED, FROM_HOST = 1, 2, 4, 8, 16

Header = collections.namedtuple("Header", "magic version bytes process clock start_ns wall_ns rank host")
# `name`: the text of `number`, where the kind has one.
Record = collections.namedtuple("Record", "time address amount number thread kind detail name")
Trace = collections.namedtuple("Trace", "header records cut")

_zstd = ctypes.CDLL(ctypes.util.find_library("zstd"))
for _function in (_zstd.ZSTD_decompress, _zstd.ZSTD_compress, _zstd.ZSTD_compressBound):
    _function.restype = ctypes.c_size_t


def _decompress(data: bytes, size: int) -> bytes:
    out = ctypes.create_string_buffer(size)
    got = _zstd.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    assert got == size, (got, size)
    return out.raw


def compress(data: bytes) -> bytes:
    out = ctypes.create_string_buffer(_zstd.ZSTD_compressBound(ctypes.c_size_t(len(data))))
    got = _zstd.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 3)
    return out.raw[:got]


def frame(strings: bytes, records: bytes) -> bytes:
    packed = compress(strings + records)
    return FRAME.pack(b"WFRM", len(packed), len(strings), len(records) // RECORD.size) + packed


def header(version: int = 1, rank: bytes = b"0", host: bytes = b"here") -> bytes:
    return HEADER.pack(b"WEIRTRC\n", version, HEADER.size, 4711, 0, 1000, 2000, rank, host)


def _read_strings(data: bytes, names: dict):
    at = 0
    while at < len(data):
        number, length = struct.unpack_from("<IH", data, at)
        names[number] = data[at + 6:at + 6 + length].decode()
        at += 6 + length


def read(path) -> Trace:
    data = pathlib.Path(path).read_bytes()
    head = Header(*HEADER.unpack_from(data))
    names, records, at = {}, [], HEADER.size
    while at + FRAME.size <= len(data):
        magic, packed, strings, count = FRAME.unpack_from(data, at)
        assert magic == b"WFRM", at
        if at + FRAME.size + packed > len(data):
            break
        at += FRAME.size
        body = _decompress(data[at:at + packed], strings + count * RECORD.size)
        at += packed
        _read_strings(body[:strings], names)
        for fields in RECORD.iter_unpack(body[strings:]):
            kind = KINDS[fields[5]] if fields[5] < len(KINDS) else f"kind {fields[5]}"
            named = kind in ("allocate", "op begin", "op end")
            records.append(Record(*fields[:5], kind, fields[6], names.get(fields[3], "") if named else ""))
    return Trace(head._replace(rank=head.rank.rstrip(b"\0").decode(), host=head.host.rstrip(b"\0").decode()), records,
                 len(data) - at)
