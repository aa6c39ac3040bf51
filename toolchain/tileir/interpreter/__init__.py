"""The CPU interpreter of Tile IR bytecode: runs the files that `tileiras` compiles, over a grid, with numpy.

It is an oracle and a sanitizer. With `sanitize` (the default) a launch raises SanitizerError, naming entry, operation,
source location and block, for

- a branch, address or index that depends on an element read outside its tensor without a padding value, and a store of
  a result that was made of such elements and of others,
- an access that is misaligned, outside its allocation, or outside its tensor although `inbounds` promises otherwise,
- an `assume` that does not hold (of a stride: once an axis longer than 1 has it), a failed `assert`,
- integer overflow marked nsw or nuw, division by zero, a shift by the width or more, a float made an integer
  that cannot hold it,
- two accesses to the same bytes, one of them a write, that no token, atomic or data dependence orders, in one block or
  in two (see memory/shadow.py),
- blocks that wait for each other for ever (see launches/interleaving.py).

Blocks run one after the other, unless one may wait for another: then they take turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from .launches.prepared import Argument, Launch, Padding, PaddingWarning, Prepared, launch_together, prepare
from .launches.runtime import Grid
from .memory.log import Around
from .memory.memory import AddressSpace, Allocation, FailedAssertion, Placed, Pointer
from .memory.storages import Storage, placed

__all__ = [
    "AddressSpace", "Allocation", "Argument", "Around", "FailedAssertion", "Grid", "Launch", "Padding",
    "PaddingWarning", "Placed", "Pointer", "Prepared", "Storage", "launch_together", "placed", "prepare", "run",
]  # fmt: skip


def run(
    module_or_bytes: Operation | bytes,
    entry_symbol: str,
    args: Sequence[Argument],
    grid: Grid,
    *,
    sanitize: bool = True,
) -> None:
    """Runs one entry once. For many launches of a module use `prepare`."""
    prepared = prepare(module_or_bytes) if isinstance(module_or_bytes, bytes) else Prepared(module_or_bytes)
    prepared.launch(entry_symbol, args, grid, sanitize)
