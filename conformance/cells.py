"""Which cells there are: a source that borrows ops from another one has cells of its own ops alone, and nobody needs a
whole step."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.bundles.bundle import Bundle
from toolchain.contract.op import ops
from toolchain.contract.sources import registered


def borrows_from(source: str) -> str:
    """The source that a source borrows ops from; empty if it has to have every op."""
    known = registered().get(source)
    return known.borrows_from if known else ""


def has_cell(bundle: Bundle, source: str, op: str, dtype: str) -> bool:
    """False where a source has no entry of an op in this dtype and needs none: it borrows, and what it borrows is the
    other's cell, or the op is a whole step, for which a model has others."""
    needed = not borrows_from(source) and not ops()[op].whole
    return needed or bool(bundle.entries_of(source, op, dtype))


def may_borrow(source: str, op: str) -> bool:
    """True where a source without an entry for some sizes launches another's: their row is the other's too."""
    return bool(borrows_from(source)) and not ops()[op].whole


def has_dtype(bundle: Bundle, source: str, dtype: str) -> bool:
    """The same for a model, which launches many ops: False where all of them would be borrowed."""
    return not borrows_from(source) or any((e.spec.source, e.spec.dtype) == (source, dtype) for e in bundle.entries)


def sources_of(bundle: Bundle, name: str, dtype: str, sources: Sequence[str]) -> list[str]:
    """Those of the sources that have a cell of an op, or of a suite such as a model's forward pass."""
    if name in ops():
        return [source for source in sources if has_cell(bundle, source, name, dtype)]
    return [source for source in sources if has_dtype(bundle, source, dtype)]


def borrowed_by(sources: Sequence[str]) -> str:
    """Which of the sources borrow, in one line; empty if none does."""
    return "; ".join(f"{name} takes ops that it lacks from {of}" for name in sources if (of := borrows_from(name)))
