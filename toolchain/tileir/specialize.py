"""From the parts of a kernel source and an EntrySpec to the module of that entry."""

from __future__ import annotations

from collections.abc import Mapping

from toolchain.entry import EntrySpec

from .compose import Library, compose
from .compose.signature import STORAGE
from .dialect import types as t
from .dialect.base import Version
from .dialect.control import ModuleOp
from .dialect.verify import verify
from .passes.assume_divisors import assume_divisors
from .passes.casts import drop_identity_casts
from .passes.cleanup import drop_unused, drop_unused_carry
from .passes.hints import set_hints
from .passes.inline import inline
from .passes.overlap import settle
from .passes.precision import full_tanh, round_to_tf32
from .passes.sizes import set_sizes


def specialize(library: Library, spec: EntrySpec, version: Version) -> ModuleOp:
    """The module of one entry for a version of the bytecode, verified. Raises SourceError with file:line:col where a
    part does not fit the entry."""
    module = compose(
        library, spec.kernel or spec.op, symbol=spec.symbol, dtype=spec.dtype, constants=spec.constants, op=spec.op
    )
    inline(module)
    entry = module.entries[spec.symbol]
    drop_unused_carry(entry)
    drop_unused(entry)
    drop_identity_casts(entry)
    if spec.dtype == "tf32":
        round_to_tf32(entry)
    if STORAGE[spec.dtype] == t.f32:
        full_tanh(entry)
    assume_divisors(entry, spec)
    finish(module, spec, version, texts=library.texts)
    return module


def finish(module: ModuleOp, spec: EntrySpec, version: Version, *, texts: Mapping[str, str] | None = None) -> None:
    """Run the passes that are the same for every source: compiled-in sizes, hints, and the wait for the launch before.
    Verifies the module; `texts`: see `verify`. Raises SourceError."""
    entry = module.entries[spec.symbol]
    set_sizes(entry, spec)
    set_hints(entry, spec)
    verify(module, texts=texts)
    settle(entry, spec, version)
