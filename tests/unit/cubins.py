"""Small ELF files that are built as cubins are, for tests without a compiler."""

from __future__ import annotations

import struct
from collections.abc import Sequence

NOBITS, NOTE, SYMBOLS, STRINGS, RELOCATIONS = 8, 7, 2, 3, 4
Row = tuple[str, int, bytes, int, int, int]  # name, type, content, link, info, size of what is empty


def elf(rows: Sequence[Row]) -> bytes:
    """An ELF file of 64 bits with these sections, and in front of them the empty one and that of their names."""
    names = b"\0" + b"".join(row[0].encode() + b"\0" for row in rows) + b".shstrtab\0"
    every = [(".shstrtab", STRINGS, names, 0, 0, 0), *rows]
    body, heads = b"", [bytes(64)]
    for name, kind, content, link, info, size in every:
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        length = size or len(content)
        heads.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(body), length, link, info, 1, 0))
        body += content
    start = 64 + len(body)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 190, 1, 0, 0, start, 0, 64, 56, 0, 64, len(heads), 1
    )
    return head + body + b"".join(heads)


def cubin(code: bytes, symbol: str = "k", *, shared: int = 0, note: str = "ptxas 13.5", moved: int = 0) -> bytes:
    """A cubin with one kernel. `shared`: bytes of memory; `moved`: the offset that a relocation of its code adds."""
    strings = f"\0{symbol}\0".encode()
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 2, 0, len(code))
    # .shstrtab is section 1, so the code is 2, and the symbols are 4
    return elf([
        (f".text.{symbol}", 1, code, 0, 0, 0), (".strtab", STRINGS, strings, 0, 0, 0),
        (".symtab", SYMBOLS, symbols, 3, 1, 0), (".note.nv.tkinfo", NOTE, note.encode(), 0, 0, 0),
        (f".nv.info.{symbol}", 0x70000000, b"attributes", 0, 2, 0), (f".nv.shared.{symbol}", NOBITS, b"", 0, 2, shared),
        (f".rela.text.{symbol}", RELOCATIONS, struct.pack("<QQq", 0, (1 << 32) + 2, moved), 4, 2, 0),
        (".nv.host", 1, elf([(".rodata", 1, symbol.encode() + b"\0", 0, 0, 0)]), 0, 0, 0),
        (".debug_line", 1, symbol.encode(), 0, 0, 0),
    ])  # fmt: skip
