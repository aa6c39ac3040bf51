"""An entry of a bundle as the open tools of cuda-tile get it: of what their version knows, and as text.

The tools do not know bytecode after 13.3, so they get the kernel as compiled for 13.3, which has no waits for the
previous launch. A hint that their version refuses is left out of the text and of our bytecode alike: hints change how
a kernel is compiled, not what it computes. Hints are sorted by name, as MLIR sorts every dictionary: cuTile writes them
in another order.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.errors import BytecodeError
from toolchain.pinned.compatibility import CudaTile

if TYPE_CHECKING:
    from toolchain.tileir.dialect.control import ModuleOp

ALLOW_TMA = "allow_tma"  # a hint of a load or store


class NotComparableError(Exception):
    """An entry that cannot be checked; the message says why."""


class NotInVersionError(NotComparableError):
    """The entry has something that this version of bytecode lacks."""


class KnownDefectError(NotComparableError):
    """The tools treat the entry wrongly, in a way that toolchain/pinned/issues.toml lists as their defect."""


class Kernel:
    """An entry's kernel for a version of cuda-tile; `known`: what that version knows, or None for everything."""

    def __init__(self, bundle: Bundle, entry: BundleEntry, known: CudaTile | None) -> None:
        self.entry = entry
        self._bundle, self._known = bundle, known

    @property
    def symbol(self) -> str:
        return self.entry.spec.symbol

    @cached_property
    def _prepared(self) -> tuple[ModuleOp, tuple[str, ...]]:
        from toolchain.tileir.bytecode import read
        from toolchain.tileir.passes import PASSES

        module = read(self._bundle.read(self.entry.bytecode), name=self.symbol)
        PASSES["overlap"](module, self.entry.spec, (13, 3))
        return module, _settle_hints(module, self._known)

    @property
    def module(self) -> ModuleOp:
        return self._prepared[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was left out of the kernel, for the row."""
        dropped = self._prepared[1]
        version = self._known.version if self._known else ""
        return (f"without {', '.join(dropped)}, hints that cuda-tile {version} does not know",) if dropped else ()

    @cached_property
    def text(self) -> str:
        from toolchain.tileir.text import print_module

        return print_module(self.module)

    def bytecode(self, version: str) -> bytes:
        """Raises NotInVersionError for a kernel that has something newer."""
        from toolchain.tileir.bytecode import write

        try:
            return write(self.module, version)
        except BytecodeError as error:
            raise NotInVersionError(error.args[0]) from error

    @cached_property
    def has_true_i1(self) -> bool:
        """True if a constant of the module has a true i1 element. A constant that is all false has the same bytes
        whether packed or not."""
        from toolchain.tileir.dialect.attrs import DenseAttr
        from toolchain.tileir.dialect.types import i1

        values = (value for op in self.module.walk() for value in op.properties.values())
        dense = (value for value in values if isinstance(value, DenseAttr))
        return any(value.type.element_type == i1 and any(value.raw) for value in dense)

    @cached_property
    def forbids_tma(self) -> bool:
        from toolchain.tileir.dialect.attrs import HintsAttr

        values = (value for op in self.module.walk() for value in op.properties.values())
        every = (value for value in values if isinstance(value, HintsAttr))
        return any((ALLOW_TMA, False) in pairs for hints in every for _, pairs in hints.data)


def _settle_hints(module: ModuleOp, known: CudaTile | None) -> tuple[str, ...]:
    """Sorts the hints of a module, and takes away those that a cuda-tile would refuse. Returns their names, and those
    of targets that it does not know, in order."""
    from toolchain.tileir.dialect.attrs import HintsAttr

    dropped: set[str] = set()
    for op in module.walk():
        for name, hints in list(op.properties.items()):
            if not isinstance(hints, HintsAttr):
                continue
            kept: list[tuple[str, tuple[tuple[str, int | bool], ...]]] = []
            for target, pairs in sorted(hints.data):
                if known and known.lacks_target(target):
                    dropped.add(target)
                    continue
                unknown = {key for key, _ in pairs if known and known.lacks_hint(key)}
                dropped |= unknown
                if left := tuple(sorted(pair for pair in pairs if pair[0] not in unknown)):
                    kept.append((target, left))
            if kept:
                op.properties[name] = HintsAttr(tuple(kept))
            else:
                del op.properties[name]
    return tuple(sorted(dropped))


def with_booleans(theirs: bytes, version: str) -> bytes:
    """The bytecode `theirs`, with each `allow_tma` that is an integer replaced by the boolean that we write."""
    from toolchain.tileir.bytecode import read, write
    from toolchain.tileir.dialect.attrs import HintsAttr

    module = read(theirs, name="k.tilebc")
    for op in module.walk():
        for name, hints in list(op.properties.items()):
            if isinstance(hints, HintsAttr):
                pairs = ((of, tuple((k, bool(v) if k == ALLOW_TMA else v) for k, v in row)) for of, row in hints.data)
                op.properties[name] = HintsAttr(tuple(pairs))
    return write(module, version)
