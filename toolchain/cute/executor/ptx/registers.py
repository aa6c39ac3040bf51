"""Registers of PTX in the executor: words without a type, that an instruction takes as it says.

A register is an array of 32, or of 1 where all threads have the same, as those of the IR; here it may be written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..state.block import NEVER, Array, Ticket, Wait, Warp
from ..state.clocks import GENERIC
from ..state.findings import MissingWait, Undefined
from .scalar import DTYPES
from .text import BITS, Instruction, Operand

Run = Callable[[Warp], "Wait | None"]
Read = Callable[[Warp], Any]
Write = Callable[[Warp, Any], None]
READ_ONLY = ("bar", "barrier", "bra", "setmaxnreg", "cp", "wgmma", "prefetch", "fence", "griddepcontrol")


def names_in(operand: Operand) -> Iterator[str]:
    """The registers of an operand."""
    if operand.kind == "register":
        yield operand.name
    for part in operand.parts:
        yield from names_in(part)


def read_and_written(each: Instruction) -> tuple[list[str], list[str]]:
    """The registers that an instruction reads, and those that it writes. A product of a warpgroup does both to C."""
    reads = [each.guard.name] if each.guard is not None else []
    writes: list[str] = []
    for number, operand in enumerate(each.operands):
        of_result = number == 0 and operand.kind in ("register", "vector", "pair")
        if of_result and each.opcode.split(".")[0] not in READ_ONLY:
            writes += names_in(operand)
        else:
            reads += names_in(operand)
    return reads, writes


def constant(operand: Operand, type_: str) -> Array:
    """A number as a register of a type holds it."""
    if type_ == "pred":
        return np.array([operand.value != 0])
    bits, dtype = BITS[type_], DTYPES[type_]
    if np.dtype(dtype).kind == "f" and not operand.is_float:
        return np.array([operand.value]).astype(dtype)
    return np.array([operand.value % (1 << bits)], f"u{bits // 8}").view(dtype)


def reader(slot: int, register: str, type_: str) -> Read:
    """A register as a value of a type; of a wider one, its low bits."""
    dtype, bits = np.dtype(DTYPES[type_]), BITS[type_]
    if BITS[register] > bits:

        def narrow(warp: Warp) -> Array:
            value = warp.env[slot]
            return value.view(f"u{value.dtype.itemsize}").astype(f"u{bits // 8}").view(dtype)

        return narrow

    def read(warp: Warp) -> Array:
        value = warp.env[slot]
        return value if value.dtype == dtype else value.view(dtype)

    return read


def writer(slot: int, register: str, type_: str, *, fragile: bool = False) -> Write:
    """Writes a value of a type where threads are active. A wider register gets it with its sign, or zeros."""
    wide = np.dtype(DTYPES[register]) if BITS[register] > BITS[type_] > 1 else None

    def write(warp: Warp, value: Any) -> None:
        if wide is not None:
            value = (value if type_[0] == "s" else value.view(f"u{value.dtype.itemsize}")).astype(wide)
        put(warp, slot, value)
        if fragile:
            touch(warp, slot)

    return write


def put(warp: Warp, slot: int, value: Any) -> None:
    """Writes a register where threads are active. What is not a number, a tensor map, all threads have the same."""
    env = warp.env
    old = env[slot]
    if warp.whole or old is None or not isinstance(value, np.ndarray):
        env[slot] = value
    else:
        env[slot] = np.where(warp.active, value, old if old.dtype == value.dtype else old.view(value.dtype))
    if warp.pending and slot in warp.pending:
        settle(warp, slot)


def settle(warp: Warp, slot: int) -> None:
    """A register has a value now. Raises MissingWait if an asynchronous product still writes it."""
    ticket = warp.pending.pop(slot)
    if ticket.agent != NEVER:
        warp.check_ticket(ticket)
    elif not warp.whole:
        missing = warp.exists if ticket.lanes is None else ticket.lanes
        warp.pending[slot] = Ticket(NEVER, lanes=missing & ~warp.active)


def touch(warp: Warp, slot: int) -> None:
    """A register of a product was written: only a wgmma.fence makes that known to the product. Raises MissingWait if
    one still reads it."""
    ticket = warp.reading.pop(slot, None)
    if ticket is not None and warp.block.clocks.seen[GENERIC, warp.agent_number, ticket.agent] < ticket.time:
        made = warp.block.steps[ticket.step]
        warp.fail(MissingWait, f"a register is written that {made} still reads: nothing has waited for it")
    warp.loaded[slot] = slot
    warp.unfenced.add(slot)


def noted(run: Run, slots: Iterable[int]) -> Run:
    """An instruction that reads registers of a product: the next product on them needs a wgmma.fence before it too."""

    def made(warp: Warp) -> Wait | None:
        for slot in slots:
            warp.loaded[slot] = slot
        warp.unfenced.update(slots)
        return run(warp)

    return made


def computed(function: Callable[..., Any], reads: Sequence[Read], write: Write, *, divides: bool = False) -> Run:
    """A register gets what a function makes of others."""

    def run(warp: Warp) -> None:
        values = [read(warp) for read in reads]
        if divides and (wrong := warp.active & (values[1] == 0)).any():
            warp.fail(Undefined, "a division by zero", lane=int(wrong.argmax()))
        write(warp, function(*values))

    return run


def moved(read: Read, write: Write) -> Run:
    """A register gets the value of another."""
    return lambda warp: write(warp, read(warp))


def taken_apart(read: Read, writes: Sequence[Write], part: str) -> Run:
    """Registers get the parts of a wider one, the low bits first."""

    def run(warp: Warp) -> None:
        parts = np.ascontiguousarray(read(warp)[:, None]).view(DTYPES[part])
        for number, write in enumerate(writes):
            write(warp, parts[:, number])

    return run


def put_together(reads: Sequence[Read], write: Write, type_: str) -> Run:
    """A register gets its parts, the low bits first."""

    def run(warp: Warp) -> None:
        parts = np.broadcast_arrays(*(read(warp) for read in reads))
        write(warp, np.ascontiguousarray(np.stack(parts, axis=1)).view(DTYPES[type_])[:, 0])

    return run


def merged(run: Run, outs: Sequence[int], fragile: Sequence[int] = ()) -> Run:
    """An instruction that gives all threads its results gives them to the active ones alone."""

    def made(warp: Warp) -> Wait | None:
        before = [warp.env[out] for out in outs]

        def merge() -> None:
            for out, old in zip(outs, before, strict=True):
                new, warp.env[out] = warp.env[out], old
                put(warp, out, new)
            for out in fragile:
                touch(warp, out)

        wait = run(warp)
        if wait is None:
            merge()
            return None

        def resume() -> None:
            wait.resume()
            merge()

        return replace(wait, resume=resume)

    return made


def guarded(run: Run, guard: int, *, negated: bool) -> Run:
    """The threads do it whose predicate is true, or is not."""

    def made(warp: Warp) -> Wait | None:
        before = warp.active
        chosen = before & (~warp.env[guard] if negated else warp.env[guard])
        if not chosen.any():
            return None
        warp.set_active(chosen)
        try:
            return run(warp)
        finally:
            warp.set_active(before)

    return made


def as_floats(run: Run, ins: Sequence[int]) -> Run:
    """An instruction whose operands are f32."""

    def made(warp: Warp) -> Wait | None:
        for slot in ins:
            warp.env[slot] = warp.env[slot].view(np.float32)
        return run(warp)

    return made


def as_predicate(given: int, to: int, lane: int | None) -> Run:
    """A predicate gets a register of 0 or 1, and another register the first lane that has the 1."""

    def run(warp: Warp) -> None:
        truth = np.broadcast_to(warp.env[given] != 0, warp.lanes.shape)
        if lane is not None:
            put(warp, lane, np.array([(truth & warp.active).argmax()], np.int32))
        put(warp, to, truth)

    return run
