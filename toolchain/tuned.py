"""Tuned rows whose code or compiler has changed since they were measured.

A row keeps, for each source, the sha256 of the bytecode that was measured: whatever changes it, be it a kernel, a pass
or a library, makes the row stale. A comment or another name of the entry does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .entries import TunedRow
from .entry import EntrySpec
from .errors import TilestackError
from .pins import pins

# An entry's code, None where the caller does not have it; raises TilestackError if it cannot be made.
CodeOf = Callable[[EntrySpec], bytes | None]


@dataclass(frozen=True)
class Stale:
    """A row that was measured with another compiler or another kernel than are here now: it works, but something else
    may be faster."""

    row: TunedRow
    why: str


def code_hash(code: bytes, symbol: str) -> str:
    """sha256 of an entry's code, whatever its symbol is. Raises BytecodeError for bytecode that cannot be read."""
    from .tileir.bytecode import is_bytecode, read, version_of, write
    from .tileir.dialect.attrs import StrAttr

    if not is_bytecode(code):  # the text of another form
        return hashlib.sha256(code.replace(symbol.encode(), b"")).hexdigest()
    module = read(code, name=symbol)
    module.entries[symbol].sym_name = StrAttr("entry")
    return hashlib.sha256(write(module, "{}.{}".format(*version_of(code)))).hexdigest()


def stale(rows: Sequence[TunedRow], code_of: CodeOf) -> list[Stale]:
    """The rows whose compiler or code has changed since they were measured."""
    found: list[Stale] = []
    for row in rows:
        reasons = [
            f"{name} is another one"
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
