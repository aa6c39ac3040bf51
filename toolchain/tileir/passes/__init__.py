"""Passes on a parsed module, by name. Each changes the module in place and may raise SourceError.

`specialize` runs them in order. A pass is tested by files that show a module before and after it:
`tests/unit/toolchain/tileir/passes/<name>.mlir`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolchain.contract.entry import EntrySpec

from ..dialect.base import Version
from ..dialect.control import EntryOp, ModuleOp
from .assume_divisors import assume_divisors
from .casts import drop_identity_casts
from .cleanup import drop_unused, drop_unused_carry
from .hints import set_hints
from .inline import inline
from .overlap import settle
from .precision import full_tanh, round_to_tf32
from .sizes import set_sizes

__all__ = ["PASSES"]

Pass = Callable[[ModuleOp, EntrySpec, Version], None]  # a version of the bytecode that the module will be written in


def _module(run: Callable[[ModuleOp], None]) -> Pass:
    def on_all(module: ModuleOp, *_: object) -> None:
        run(module)

    return on_all


def _entries(run: Callable[[EntryOp], None]) -> Pass:
    def on_each(module: ModuleOp, *_: object) -> None:  # such a pass asks nothing of the entry
        for entry in module.entries.values():
            run(entry)

    return on_each


def _entry(run: Callable[[EntryOp, EntrySpec], None]) -> Pass:
    def on_one(module: ModuleOp, spec: EntrySpec, *_: object) -> None:
        run(module.entries[spec.symbol], spec)

    return on_one


PASSES: Mapping[str, Pass] = {
    "inline": _module(inline),
    "drop-unused-carry": _entries(drop_unused_carry),
    "drop-unused": _entries(drop_unused),
    "drop-identity-casts": _entries(drop_identity_casts),
    "round-to-tf32": _entries(round_to_tf32),
    "full-tanh": _entries(full_tanh),
    "assume-divisors": _entry(assume_divisors),
    "set-sizes": _entry(set_sizes),
    "set-hints": _entry(set_hints),
    "overlap": lambda module, spec, version: settle(module.entries[spec.symbol], spec, version),
}
