"""Passes on a parsed module, by name. Each changes the module in place and may raise SourceError.

`specialize` runs them in order. A pass is tested by files that show a module before and after it:
`tests/unit/toolchain/tileir/passes/<name>.mlir`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolchain.contract.entry import EntrySpec
from toolchain.contract.targets import BYTECODE

from ..bytecode.writer import parse_version
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

Pass = Callable[[ModuleOp, EntrySpec], None]


def _entries(run: Callable[[EntryOp], None]) -> Pass:
    def on_each(module: ModuleOp, spec: EntrySpec) -> None:  # noqa: ARG001 (a pass that asks nothing of the entry)
        for entry in module.entries.values():
            run(entry)

    return on_each


def _entry(run: Callable[[EntryOp, EntrySpec], None]) -> Pass:
    return lambda module, spec: run(module.entries[spec.symbol], spec)


PASSES: Mapping[str, Pass] = {
    "inline": lambda module, _: inline(module),
    "drop-unused-carry": _entries(drop_unused_carry),
    "drop-unused": _entries(drop_unused),
    "drop-identity-casts": _entries(drop_identity_casts),
    "round-to-tf32": _entries(round_to_tf32),
    "full-tanh": _entries(full_tanh),
    "assume-divisors": _entry(assume_divisors),
    "set-sizes": _entry(set_sizes),
    "set-hints": _entry(set_hints),
    "overlap": _entry(lambda entry, spec: settle(entry, spec, parse_version(BYTECODE))),
}
