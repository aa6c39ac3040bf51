"""What is launched in a search, as a hash: by it a measurement of other code is told from one that counts."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from toolchain.bundle import Bundle, BundleEntry
from toolchain.cache import key
from toolchain.errors import BundleError

from .catalogue import OWN as OWN_FOLDER
from .catalogue import VARIANTS, Catalogue
from .measured import OWN, Measured, Row

_WHOLE = "tilestack tune --phase compile writes it; measuring and applying want the whole folder"


@dataclass(frozen=True)
class Launched:
    """The bundles of a search: the compiled `variants`, and the sources' `own` entries. `target`: what they are for."""

    target: str
    variants: Bundle
    own: Bundle

    @classmethod
    def load(cls, folder: Path, catalogue: Catalogue) -> Launched:
        """Raises BundleError if there is no such bundle, or none that has all that compiled of the catalogue."""
        try:
            found = cls(catalogue.target, Bundle.load(folder / VARIANTS), Bundle.load(folder / OWN_FOLDER))
        except BundleError as error:
            raise BundleError(error.args[0], hint=_WHOLE) from error
        compiled = [(c.spec.source, c.spec.symbol) for c in catalogue.candidates if c.status == "compiled"]
        if lacking := [name for name in compiled if name not in found._hashes]:
            first = "/".join(lacking[0])
            raise BundleError(f"{found.variants.root} lacks {len(lacking)} variants, the first {first}", hint=_WHOLE)
        return found

    def file(self, source: str, op: str, dtype: str, symbol: str) -> str:
        """A hash of what is launched for a row, empty if there is no such entry."""
        if symbol != OWN:
            return self._hashes.get((source, symbol), "")
        own = self.own.entries_of(source, op, dtype)
        return key(*map(self._hash, own)) if own else ""  # another entry may be chosen among others

    def is_old(self, row: Row) -> bool:
        """Whether what was measured is other code by now. Of what is not here at all, no row is old."""
        now = self.file(row.source, row.op, row.dtype, row.symbol)
        return bool(now) and now != row.file

    def forget_old(self, measured: Measured) -> int:
        """Drops the rows of other code; returns how many."""
        return measured.forget(self.is_old)

    @functools.cached_property
    def _hashes(self) -> dict[tuple[str, str], str]:
        return {(e.spec.source, e.spec.symbol): self._hash(e) for e in self.variants.entries}

    def _hash(self, entry: BundleEntry) -> str:
        """Of the code, and of the expressions beside it that say how many blocks are launched, and for which sizes."""
        code = entry.cubins.get(self.target, entry.code).sha256
        return key(code, *entry.spec.grid, *entry.spec.where)
