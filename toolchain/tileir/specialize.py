"""From the parts of a kernel source and an EntrySpec to the module of that entry."""

from __future__ import annotations

from collections.abc import Mapping

from toolchain.contract.entry import EntrySpec

from .compose import Library, compose
from .compose.signature import STORAGE
from .dialect import types as t
from .dialect.base import Version
from .dialect.control import ModuleOp
from .dialect.verify import verify
from .passes import PASSES

COMPOSED = ("inline", "drop-unused-carry", "drop-unused", "drop-identity-casts")
FINAL = ("set-sizes", "set-hints")


def specialize(library: Library, spec: EntrySpec, version: Version) -> ModuleOp:
    """The verified module of one entry, for a version of the bytecode. Raises SourceError with file:line:col if a part
    does not fit the entry."""
    module = compose(
        library, spec.kernel or spec.op, symbol=spec.symbol, dtype=spec.dtype, constants=spec.constants, op=spec.op
    )
    precision = [
        *(["round-to-tf32"] if spec.dtype == "tf32" else []),
        *(["full-tanh"] if STORAGE[spec.dtype] == t.f32 else []),
    ]
    for name in (*COMPOSED, *precision, "assume-divisors"):
        PASSES[name](module, spec, version)
    finish(module, spec, version, texts=library.texts)
    return module


def finish(module: ModuleOp, spec: EntrySpec, version: Version, *, texts: Mapping[str, str] | None = None) -> None:
    """Runs the passes that every source shares: compiled-in sizes, hints, and the wait for the previous launch. Then
    verifies the module; `texts`: see `verify`. Raises SourceError."""
    for name in FINAL:
        PASSES[name](module, spec, version)
    verify(module, texts=texts)
    PASSES["overlap"](module, spec, version)  # it reads what `verify` has made sure of
