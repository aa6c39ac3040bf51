"""The machine code of a cubin without names and notes, to tell whether two kernels are the same for a GPU.

It compares the encoded instructions, so it needs no disassembler, which a machine that only runs kernels lacks. A
section of code begins at address 0, and its jumps are relative. What a load fills in stands in relocations; these are
compared by the place that they name. The encoding says more than a disassembly: also how long an instruction waits.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import ToolchainError

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_HEADER, _SECTION, _SYMBOL, _RELOCATION = "<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"
_SYMBOLS, _STRINGS, _RELOCATIONS, _NOTE, _EMPTY = 2, 3, 4, 7, 8  # types of a section; an empty one takes memory alone
_CODE = ".text."


@dataclass(frozen=True)
class _Section:
    name: str
    type: int
    flags: int
    size: int
    link: int
    info: int
    content: bytes

    @property
    def ignored(self) -> bool:
        """Names, frames for debuggers, and what tools tell of themselves: a new version alone changes no code."""
        return self.type in (_SYMBOLS, _STRINGS, _NOTE) or self.name.startswith(".debug")


def machine_code(cubin: bytes) -> str:
    """A hash of all that a GPU runs of a cubin: instructions, constants, sizes of memory, attributes of the kernels.
    Symbols' names, the frames for debuggers and the notes of the tools are left out. With line information a cubin
    counts as another one. Raises ToolchainError for what is no cubin."""
    digest = hashlib.sha256()
    for part in _parts(cubin):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


def same_machine_code(one: bytes, two: bytes) -> bool:
    """Whether a GPU runs the same of two cubins. Raises ToolchainError for what is no cubin."""
    return one == two or machine_code(one) == machine_code(two)


def _parts(elf: bytes, kernels: Mapping[str, int] | None = None) -> Iterator[bytes]:
    """`kernels`: the number of each by its name; None: those of this file."""
    try:
        sections = _sections(elf)
        codes = [each.name.removeprefix(_CODE) for each in sections if each.name.startswith(_CODE)]
        named = {name: at for at, name in enumerate(codes)} if kernels is None else kernels
        for each in sections:
            target = sections[each.info] if each.type == _RELOCATIONS else each
            if each.ignored or target.ignored:
                continue
            yield _renamed(each.name, named).encode()
            yield struct.pack("<IQ", each.type, each.flags)
            if each.type == _RELOCATIONS:
                yield from _relocations(each, sections, named)
            elif each.content.startswith(_MAGIC):  # code for the host, a file of its own
                yield from _parts(each.content, named)
            elif (text := each.content.rstrip(b"\0").decode(errors="replace")) in named:  # the name that the host says
                yield str(named[text]).encode()
            else:
                yield each.content or each.size.to_bytes(8, "little")
    except (struct.error, ValueError, IndexError) as error:
        raise ToolchainError(f"this is no cubin: {error or type(error).__name__}") from error


def _sections(elf: bytes) -> list[_Section]:
    if not elf.startswith(_MAGIC):
        raise ValueError("it does not begin as an ELF file of 64 bits")
    header = struct.unpack_from(_HEADER, elf)
    start, size, count, names = header[6], header[11], header[12], header[13]
    rows = [struct.unpack_from(_SECTION, elf, start + size * at) for at in range(count)]
    if any(row[1] != _EMPTY and row[4] + row[5] > len(elf) for row in rows):
        raise ValueError("it ends within a section")
    texts = rows[names][4]

    def name(at: int) -> str:
        return elf[texts + at : elf.index(b"\0", texts + at)].decode()

    return [
        _Section(name(row[0]), row[1], row[2], row[5], row[6], row[7],
                 b"" if row[1] == _EMPTY else elf[row[4] : row[4] + row[5]])
        for row in rows
    ]  # fmt: skip


def _renamed(name: str, named: Mapping[str, int]) -> str:
    """The name of a section with its kernel's number instead of the kernel's name."""
    for symbol, at in named.items():
        if name.endswith(f".{symbol}"):
            return f"{name.removesuffix(symbol)}{at}"
    return name


def _relocations(each: _Section, sections: Sequence[_Section], named: Mapping[str, int]) -> Iterator[bytes]:
    """Where something is filled in, how, and the place that is filled in: its section and offset."""
    symbols = sections[each.link].content
    for where, info, added in struct.iter_unpack(_RELOCATION, each.content):
        _, kind, _, section, value, size = struct.unpack_from(_SYMBOL, symbols, (info >> 32) * struct.calcsize(_SYMBOL))
        place = _renamed(sections[section].name, named) if 0 < section < len(sections) else str(section)
        yield struct.pack("<QIqBQQ", where, info & 0xFFFFFFFF, added, kind, value, size) + place.encode()
