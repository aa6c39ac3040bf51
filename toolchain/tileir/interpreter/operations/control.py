"""Control flow as Python's own, assumptions and assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ..analysis import counters
from ..analysis.fields import DivBy, assumption, flag, is_stride, is_tile, is_token, is_view, short_name, text, tile_of
from ..memory.memory import FailedAssertion, Trap
from ..numbers.elements import Element
from . import panels
from .codegen import BlockEnd, Emitter, Loop, lowering, region_block
from .integers import trap_where, wrap


def _assign(emitter: Emitter, targets: Any, sources: Any) -> None:
    """Parallel assignment of values and their poison."""
    pairs = [(emitter.ref(t), emitter.ref(s)) for t, s in zip(targets, sources, strict=True)]
    for target, source in zip(targets, sources, strict=True):
        if is_tile(target) and target in emitter.tainted and not emitter.lanes:
            pairs.append((_poison_name(emitter, target), str(emitter.poison(source))))
    pairs = [(t, s) for t, s in pairs if t != s]
    if pairs:
        emitter.line(f"{', '.join(t for t, _ in pairs)} = {', '.join(s for _, s in pairs)}")


def _poison_name(emitter: Emitter, value: SSAValue) -> str:
    return emitter.poison(value) or emitter.declare_poison(value)


def _declare(emitter: Emitter, values: Any) -> None:
    for value in values:
        emitter.name(value)


@lowering("for", poison="own", pure=False)
def _for(emitter: Emitter, op: Any) -> None:
    lower, upper, step = op.operands[:3]
    block = region_block(op.regions[0])
    induction, *carried = block.args
    emitter.forbid_poison((lower, upper, step), "a loop bound")
    _declare(emitter, block.args)
    _assign(emitter, carried, op.operands[3:])
    if not emitter.sanitize and not emitter.interleaved and (found := panels.find(emitter, op)) is not None:
        panels.emit(emitter, op, found)
        _alias_results(emitter, op.results, carried)
        return
    bits = tile_of(lower).element.bits
    low, high, by = (emitter.ref(v) for v in (lower, upper, step))
    if not by.isdecimal() or by == "0":  # a literal step is known to be positive
        emitter.line(f"if {by} <= 0:")
        emitter.trap_line("a loop's step must be positive")
    if flag(op, "unsignedCmp"):
        mask = (1 << bits) - 1
        wrapped = f"{emitter.bind(wrap)}(i, {bits})"
        head = f"for {emitter.ref(induction)} in ({wrapped} for i in range({low} & {mask}, {high} & {mask}, {by})):"
    else:
        head = f"for {emitter.ref(induction)} in range({low}, {high}, {by}):"
    emitter.loops.append(Loop(carried, op.results))
    with emitter.indent(head):
        emitter.block(block)
    emitter.loops.pop()
    _alias_results(emitter, op.results, carried)


def _alias_results(emitter: Emitter, results: Any, carried: Any) -> None:
    for result, argument in zip(results, carried, strict=True):
        emitter.alias(result, argument)


@lowering("loop", poison="own", pure=False)
def _loop(emitter: Emitter, op: Any) -> None:
    block = region_block(op.regions[0])
    _declare(emitter, block.args)
    _declare(emitter, op.results)
    _assign(emitter, block.args, op.operands)
    emitter.loops.append(Loop(block.args, op.results))
    number = emitter.wait(op) if emitter.interleaved and op in emitter.waits else None
    if number is not None:
        emitter.line(f"rt.enter({number})")
    with emitter.indent("while True:"):
        if number is not None:
            carried = [emitter.ref(value) for value in block.args if not is_token(value)]
            emitter.line(f"rt.turn({number}, [{', '.join(carried)}])")
            emitter.line("yield")
        emitter.block(block)
    emitter.loops.pop()


@lowering("continue", poison="own", pure=False)
def _continue(emitter: Emitter, op: Any) -> None:
    _assign(emitter, emitter.loops[-1].carried, op.operands)
    emitter.line("continue")


@lowering("break", poison="own", pure=False)
def _break(emitter: Emitter, op: Any) -> None:
    _assign(emitter, emitter.loops[-1].results, op.operands)
    emitter.line("break")


@lowering("if", poison="own", pure=False)
def _if(emitter: Emitter, op: Any) -> None:
    condition = op.operands[0]
    emitter.forbid_poison((condition,), "the condition of if")
    if emitter.sanitize and (counter := counters.asked(op)) is not None and emitter.scalar(counter.update.results[0]):
        update = counter.update
        noted = emitter.refs((update.operands[0], update.results[0], counter.compared, counter.wanted))
        emitter.line(f"rt.counters.note({emitter.bind(update, 'op')}, {noted})")
    _declare(emitter, op.results)
    for head, region in zip((f"if {emitter.ref(condition)}:", "else:"), op.regions, strict=True):
        if region.blocks and not region.block.is_empty:
            with emitter.indent(head):
                emitter.line("pass")
                emitter.block(region_block(region))


@lowering("yield", poison="own", pure=True)
def _yield(emitter: Emitter, op: Operation) -> None:
    if emitter.lanes:
        emitter.yields[-1].extend(emitter.ref(v) for v in op.operands)
        return
    parent = op.parent_op()
    assert parent is not None
    _assign(emitter, parent.results, op.operands)


@lowering("return", poison="own", pure=False)
def _return(emitter: Emitter, _op: Operation) -> None:
    # Continue with the next block: leave one Python loop, or several.
    emitter.line(f"raise {emitter.bind(BlockEnd)}" if emitter.loops else "continue")


@lowering("assert", poison="own", pure=False)
def _assert(emitter: Emitter, op: Any) -> None:
    emitter.forbid_poison((op.operands[0],), "the condition of assert")
    emitter.line(f"{emitter.bind(check_assertion)}({emitter.ref(op.operands[0])}, {text(op, 'message')!r})")


def check_assertion(condition: Any, message: str) -> None:
    if not np.all(condition):
        where = np.argwhere(np.logical_not(condition))
        at = f" at element {tuple(where[0].tolist())}" if np.ndim(condition) else ""
        raise FailedAssertion(message, at)


@lowering("assume", poison="own")
def _assume(emitter: Emitter, op: Any) -> None:
    emitter.alias(op.results[0], op.operands[0])
    if emitter.sanitize and not emitter.lanes and not _only_strides(op.results[0]):
        check_assumption(emitter, op)


def check_assumption(emitter: Emitter, op: Any) -> None:
    """Emits the check of an `assume`."""
    value = op.operands[0]
    name = emitter.ref(value)
    if is_view(value):
        check: Callable[..., None] = view_check(assumption(op))
        emitter.line(f"{emitter.bind(check)}({name})")
    else:
        tile = tile_of(value)
        check = assumption_check(assumption(op), tile.element, tile.pointee_bytes, tile.shape)
        emitter.line(f"{emitter.bind(check)}({name}, {emitter.poison(value)})")


def deferred_assumptions(stride: SSAValue) -> list[Operation]:
    """The `assume`s of a stride that are checked where it addresses something, the first one first. The stride of an
    axis of length 1 addresses nothing, and cuTile claims of such strides what does not hold."""
    found: list[Operation] = []
    while isinstance(op := stride.owner, Operation) and short_name(op) == "assume" and _only_strides(stride):
        found.append(op)
        stride = op.operands[0]
    return found[::-1]


def _only_strides(value: SSAValue) -> bool:
    """True if a value is used, and as nothing but strides of tensor views."""
    uses = [(use.operation, use.index) for use in value.uses]
    return bool(uses) and all(
        _only_strides(op.results[0]) if short_name(op) == "assume" else is_stride(op, at) for op, at in uses
    )


def view_check(predicate: Any) -> Callable[[Any], None]:
    def check(view: Any) -> None:
        if isinstance(predicate, DivBy) and view.address % predicate.divisor:
            raise Trap(f"assumed div_by<{predicate.divisor}> of a tensor view at address {view.address:#x}")

    return check


def assumption_check(
    predicate: Any, element: Element, pointee_bytes: int, shape: tuple[int, ...]
) -> Callable[[Any, Any], None]:
    """Traps if the predicate of an `assume` does not hold."""
    unit = pointee_bytes if element.kind == "pointer" else 1
    kind = "address" if element.kind == "pointer" else "value"

    def shown(value: Any, bad: Any) -> str:
        if isinstance(value, int):
            return hex(value) if element.kind == "pointer" else str(value)
        return str(np.broadcast_to(value, np.shape(bad))[np.asarray(bad)].flat[0])

    def div_by(value: Any, poison: Any) -> None:
        if predicate.every is None:
            bad = value & (predicate.divisor - 1) != 0
        else:
            full = np.broadcast_to(value, shape)
            position = np.arange(shape[predicate.along]) % predicate.every
            position = position.reshape([-1 if d == predicate.along else 1 for d in range(len(shape))])
            first = full - position * unit
            starts = np.take(
                full, np.arange(shape[predicate.along]) // predicate.every * predicate.every, predicate.along
            )
            bad = (first != starts) | (starts & (predicate.divisor - 1) != 0)
        if np.any(bad):
            trap_where(bad, poison, f"assumed {predicate}, but the {kind} is {shown(value, bad)}")

    def bounded(value: Any, poison: Any) -> None:
        low = element.low if predicate.low is None else predicate.low
        high = element.high if predicate.high is None else predicate.high
        bad = (value < low) | (value > high)
        if np.any(bad):
            trap_where(bad, poison, f"assumed {predicate}, but the {kind} is {shown(value, bad)}")

    def same_elements(value: Any, poison: Any) -> None:
        full = np.broadcast_to(value, shape)
        for dim, group in enumerate(predicate.groups):
            starts = np.arange(shape[dim]) // group * group
            trap_where(full != np.take(full, starts, dim), poison, f"assumed {predicate}, but a group differs")

    return {"DivBy": div_by, "Bounded": bounded, "SameElements": same_elements}[type(predicate).__name__]
