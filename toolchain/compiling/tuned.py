"""Tuned rows whose code or compiler has changed since they were measured.

A row stores, for each source, the sha256 of the bytecode that was measured. Any change of that bytecode makes the row
stale, whether it comes from a kernel, a pass or a library. A changed comment or a renamed entry does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..contract.entries import TunedRow
from ..contract.entry import EntrySpec
from ..errors import TilestackError
from ..pinned.pins import pins

# Gives an entry's code, or None if the caller does not have it. Raises TilestackError if it cannot be made.
CodeOf = Callable[[EntrySpec], bytes | None]


@dataclass(frozen=True)
class Stale:
    """A row that was measured with a different compiler or kernel than the current one. Its entries work, but others
    may be faster now."""

    row: TunedRow
    why: str


def code_hash(code: bytes, symbol: str) -> str:
    """sha256 of an entry's code, independent of its symbol. Raises BytecodeError for bytecode that cannot be read."""
    from ..tileir.bytecode import is_bytecode, read, version_of, write
    from ..tileir.dialect.attrs import StrAttr

    if not is_bytecode(code):  # PTX, which is text
        return hashlib.sha256(code.replace(symbol.encode(), b"")).hexdigest()
    module = read(code, name=symbol)
    module.entries[symbol].sym_name = StrAttr("entry")
    return hashlib.sha256(write(module, "{}.{}".format(*version_of(code)))).hexdigest()


def stale(rows: Sequence[TunedRow], code_of: CodeOf) -> list[Stale]:
    """The rows whose compiler or code has changed since they were measured. A predicted one cannot be stale."""
    found: list[Stale] = []
    for row in (row for row in rows if not row.predicted):
        reasons = [
            f"{name} has changed"
            for name, sha256 in row.table["measured"]["tools"].items()
            if name not in pins().tools or pins().tools[name].expected() != sha256
        ]
        reasons += filter(None, (_changed(row, source, code_of) for source in row.sources))
        if reasons:
            found.append(Stale(row, "; ".join(reasons)))
    return found


def _changed(row: TunedRow, source: str, code_of: CodeOf) -> str:
    spec = row.measured_entry(source)
    try:
        code = code_of(spec)
    except TilestackError as error:
        return str(error.args[0])
    if code is None or code_hash(code, spec.symbol) == row.table["measured"]["code"].get(source):
        return ""
    return f"the code of source {source} has changed"
