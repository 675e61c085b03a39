"""What a shared library or program needs of others: names, symbol versions and search path, read from the file."""
import pathlib
import struct

_DYNAMIC, _NEEDED, _SONAME, _RPATH, _RUNPATH = 6, 1, 14, 15, 29  # SHT_DYNAMIC, DT_*
_VERSION_NEEDS = 0x6FFFFFFE  # SHT_GNU_verneed


class Elf:
    """A 64-bit little-endian ELF file. Raises ValueError for any other."""

    def __init__(self, path):
        self._bytes = pathlib.Path(path).read_bytes()
        if self._bytes[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        self.needed, self.path, self.versions = [], [], []  # versions: (library, "GLIBC_2.34")
        offset, = struct.unpack_from("<Q", self._bytes, 0x28)
        size, count = struct.unpack_from("<HH", self._bytes, 0x3A)
        # Each section: kind, offset, size, the section of its strings.
        sections = [struct.unpack_from("<4xI16xQQI", self._bytes, offset + index * size) for index in range(count)]
        for kind, begin, length, link in sections:
            if kind == _DYNAMIC:
                self._read_dynamic(begin, length, sections[link][1])
            elif kind == _VERSION_NEEDS:
                self._read_versions(begin, sections[link][1])

    def _text(self, offset: int) -> str:
        return self._bytes[offset:self._bytes.index(b"\0", offset)].decode()

    def _read_dynamic(self, begin: int, length: int, strings: int):
        for at in range(begin, begin + length, 16):
            tag, value = struct.unpack_from("<qQ", self._bytes, at)
            if tag == _NEEDED:
                self.needed.append(self._text(strings + value))
            elif tag in (_RPATH, _RUNPATH):
                self.path = self._text(strings + value).split(":")

    def _read_versions(self, at: int, strings: int):
        while True:
            count, library, first, following = struct.unpack_from("<2xHIII", self._bytes, at)
            entry = at + first
            for _ in range(count):
                name, step = struct.unpack_from("<8xII", self._bytes, entry)
                self.versions.append((self._text(strings + library), self._text(strings + name)))
                entry += step
            if not following:
                return
            at += following


def is_elf(path) -> bool:
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
