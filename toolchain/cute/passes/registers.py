"""What the slots of tensors in registers hold, as far as a block knows: what was written is read without a load.

Slots are stack memory, which LLVM turns into registers. Within a block a value goes from its writer to its readers
directly; where a block ends, what it wrote last goes to the slots.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.dialects.builtin import FixedBitwidthType, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ..nvvm.emit import Emitter, integer

WIDEST = 16  # bytes of a value in a slot


@dataclass
class Held:
    """A value in a slot. `written`: the slot itself has it not yet."""

    value: SSAValue
    written: bool


@dataclass
class Slots:
    """The stack memory of one tensor: the pointers to its bytes, and what they hold."""

    base: SSAValue
    pointers: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    held: dict[int, Held] = field(default_factory=dict[int, Held])
    shared: bool = False  # its address went elsewhere: others may write it

    def pointer(self, byte: int) -> SSAValue:
        """Made once, where the memory is."""
        if byte == 0:
            return self.base
        if (found := self.pointers.get(byte)) is None:
            owner = self.base.owner
            assert isinstance(owner, Operation)
            found = Emitter(InsertPoint.after(owner)).shifted(self.base, byte)
            self.pointers[byte] = found
        return found


class Registers:
    """All such tensors of a kernel, while it is lowered from its first operation to its last."""

    def __init__(self, builder: Emitter) -> None:
        self.builder = builder
        self._slots: dict[SSAValue, Slots] = {}

    def __contains__(self, base: SSAValue) -> bool:
        return base in self._slots

    def add(self, base: SSAValue) -> None:
        """A new tensor."""
        self._slots[base] = Slots(base)

    def read(self, base: SSAValue, byte: int, kind: Attribute) -> SSAValue:
        """The value of a type that lies at a byte."""
        slots = self._slots[base]
        found = slots.held.get(byte)
        if found is not None and found.value.type == kind:
            return found.value
        self._settle(slots, byte, bytes_of(kind))
        value = load(self.builder, slots.pointer(byte), kind)
        if not slots.shared:
            slots.held[byte] = Held(value, False)
        return value

    def write(self, base: SSAValue, byte: int, value: SSAValue) -> None:
        """Puts a value at a byte."""
        slots = self._slots[base]
        found = slots.held.get(byte)
        if found is None or found.value.type != value.type:
            self._settle(slots, byte, bytes_of(value.type))
        if slots.shared:
            store(self.builder, value, slots.pointer(byte))
        else:
            slots.held[byte] = Held(value, True)

    def share(self, base: SSAValue) -> None:
        """Others get the pointer to a tensor: from now on its slots are memory alone."""
        self.flush(base)
        self._slots[base].shared = True

    def flush(self, base: SSAValue) -> None:
        """The slots of a tensor get what was written, and nothing is known of them any more."""
        slots = self._slots[base]
        for byte, held in slots.held.items():
            if held.written:
                store(self.builder, held.value, slots.pointer(byte))
        slots.held.clear()

    def flush_all(self) -> None:
        """Where a block ends, or one within it begins."""
        for base in self._slots:
            self.flush(base)

    def forget(self) -> None:
        """Where the kernel ends, nothing reads the slots."""
        for slots in self._slots.values():
            slots.held.clear()

    def _settle(self, slots: Slots, byte: int, count: int) -> None:
        """Values of other extents that overlap these bytes go to the slots."""
        for start in range(byte - WIDEST + 1, byte + count):
            held = slots.held.get(start)
            if held is not None and start + bytes_of(held.value.type) > byte:
                if held.written:
                    store(self.builder, held.value, slots.pointer(start))
                del slots.held[start]


def load(builder: Emitter, pointer: SSAValue, kind: Attribute) -> SSAValue:
    """`llvm.load` of a value that is aligned to its size."""
    return builder.make(llvm.LoadOp, (pointer,), (kind,), _aligned(kind)).dereferenced_value


def store(builder: Emitter, value: SSAValue, pointer: SSAValue) -> None:
    """`llvm.store` of a value that is aligned to its size."""
    builder.make(llvm.StoreOp, (value, pointer), (), _aligned(value.type))


@functools.cache
def _aligned(kind: Attribute) -> Mapping[str, Attribute]:
    return {"alignment": integer(bytes_of(kind), i64), "ordering": integer(0, i64)}


@functools.cache
def bytes_of(kind: Attribute) -> int:
    """Of a value in memory."""
    if isinstance(kind, VectorType):
        return kind.element_count() * bytes_of(kind.get_element_type())
    assert isinstance(kind, FixedBitwidthType)
    return -(-kind.bitwidth // 8)
