"""From an entry's operations to one Python function that runs the blocks of a launch.

Every operation becomes one or a few lines of Python over local variables, such as `v12 = v10 + v11`, so that running a
kernel costs no dispatch. Control flow becomes Python's own. Values that are the same for all blocks are computed once,
before the loop over the blocks. A trap is an exception; the line that raised it tells the operation.

With `sanitize` the function also records every access in a log. Each value that may hold unspecified elements, and no
other, gets a poison mask `p12`: None, or an array that is True where v12 is unspecified.

Interleaved, the function is a generator, which stops where another block may run (see launches/interleaving.py).
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from xdsl.ir import Block, Operation, Region, SSAValue

from toolchain.errors import UsageError

from ... import location
from ..analysis import nans, taint
from ..analysis.fields import counts_halves, is_tile, is_token, short_name, tile_of, unknown_element
from ..memory.memory import Trap


class Lowering(NamedTuple):
    """The translation of an op to Python. `poison`: "each" if a result element is poisoned exactly where an operand's
    element is; "own" if the lowering handles poison itself or has none to handle."""

    emit: Callable[[Emitter, Any], None]
    poison: str
    pure: bool


LOWERINGS: dict[str, Lowering] = {}


def lowering(
    *names: str, poison: str = "each", pure: bool = True
) -> Callable[[Callable[[Emitter, Any], None]], Callable[[Emitter, Any], None]]:
    """Registers the lowering of these ops. `pure`: the same operands always give the same results."""

    def register(emit: Callable[[Emitter, Any], None]) -> Callable[[Emitter, Any], None]:
        for name in names:
            LOWERINGS[name] = Lowering(emit, poison, pure)
        return emit

    return register


@dataclass(frozen=True)
class Kernel:
    """A compiled entry, called as `run(runtime, args, blocks)`. Line n + 1 of `source` was generated from `ops[n]`.
    `sites`: the memory operations by their number in the access log. `interleaved`: it is a
    generator. `waits`: of each loop that may wait for another
    block, by number, the operation that reads what it waits for."""

    symbol: str
    run: Callable[..., Any]
    source: str
    ops: tuple[Operation | None, ...]
    sites: tuple[Operation, ...]
    interleaved: bool
    waits: tuple[Operation, ...]
    code: CodeType


@dataclass
class Emitter:
    """Writes the Python code of one entry. `constants`: the names that the code may use beside its locals."""

    symbol: str
    sanitize: bool
    tainted: frozenset[SSAValue]
    seen: frozenset[SSAValue]  # values whose NaNs must have the bits that arithmetic of a GPU gives them
    shadows: bool  # memory may hold unspecified elements, which this entry has stored
    interleaved: bool = False  # blocks take turns
    zero: bool = False  # what is read outside a tensor without a padding value is 0; its use is noted, no trap
    waits: Mapping[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    globals: dict[str, Any] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    ops: list[Operation | None] = field(default_factory=list)
    sites: list[Operation] = field(default_factory=list)
    waited: list[Operation] = field(default_factory=list)
    lanes: bool = False  # inside a reduce or scan: a rank-0 tile stands for an array of them
    loops: list[Loop] = field(default_factory=list)
    yields: list[list[str]] = field(default_factory=list)
    _names: dict[SSAValue, str] = field(default_factory=dict)
    _poisons: dict[SSAValue, str] = field(default_factory=dict)
    _depth: int = 0
    _count: int = 0
    _current: Operation | None = None
    _bound: dict[int, str] = field(default_factory=dict)
    _kept: list[object] = field(default_factory=list)

    # Lines and names

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)
        self.ops.append(self._current)

    @contextmanager
    def indent(self, head: str) -> Generator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str = "t") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def bind(self, value: Any, hint: str = "k") -> str:
        """A name for an object that the generated code uses."""
        name = self._bound.get(id(value))
        if name is None:
            hint = getattr(value, "__name__", hint).strip("<>_")
            hint = hint if hint.isidentifier() and not keyword.iskeyword(hint) else "k"
            name = f"{hint}_{len(self._bound)}"
            self._bound[id(value)] = name
            self._kept.append(value)  # keeps the object alive, so that its id stays unique
            self.globals[name] = value
        return name

    def site(self, op: Operation) -> int:
        self.sites.append(op)
        return len(self.sites) - 1

    def wait(self, loop: Operation) -> int:
        """The number of a loop that may wait."""
        self.waited.append(self.waits[loop])
        return len(self.waited) - 1

    # Values

    def ref(self, value: SSAValue) -> str:
        return self._names[value]

    def refs(self, values: Sequence[SSAValue]) -> str:
        return ", ".join(self.ref(v) for v in values)

    def optional(self, value: SSAValue | None) -> str:
        return "None" if value is None else self.ref(value)

    def name(self, value: SSAValue, expression: str | None = None) -> str:
        """Assigns an expression to a value's variable, or lets the value stand for the expression itself."""
        self._names[value] = expression or self.fresh("v")
        return self._names[value]

    def let(self, result: SSAValue, expression: str) -> str:
        name = self.name(result)
        self.line(f"{name} = {expression}")
        return name

    def let_float(self, result: SSAValue, expression: str, *, rounds: bool) -> None:
        """The result of arithmetic: its expression in compute dtype, rounded to the element type if `rounds`."""
        element = tile_of(result).element
        if rounds and element.round is not None:
            expression = f"{self.bind(element.round, 'round_' + element.name)}({expression})"
        if result in self.seen and element.nan is not None:
            expression = f"{self.bind(nans.standard(element))}({expression})"
        self.let(result, expression)

    def alias(self, result: SSAValue, source: SSAValue) -> None:
        """`result` is `source`, poison included."""
        self.name(result, self.ref(source))
        if (poison := self.poison(source)) is not None:
            self._poisons[result] = poison

    def scalar(self, value: SSAValue) -> bool:
        """True if the value is a single Python number at run time."""
        return not self.lanes and tile_of(value).shape == ()

    # Poison

    def poison(self, value: SSAValue | None) -> str | None:
        """The variable with a value's poison mask; None if it never has one."""
        if value is None or not self.sanitize or self.lanes or value not in self.tainted:
            return None
        return self._poisons.get(value)

    def declare_poison(self, value: SSAValue) -> str:
        """The poison variable of a value that control flow assigns."""
        return self._poisons.setdefault(value, self.fresh("p"))

    def let_poison(self, result: SSAValue, expression: str | None) -> None:
        if not self.sanitize or self.lanes or result not in self.tainted:
            return
        self.line(f"{self.declare_poison(result)} = {expression}")

    def poison_of(self, values: Sequence[SSAValue]) -> str | None:
        """The union of masks of equally shaped values, as an expression."""
        names = list(dict.fromkeys(p for v in values if (p := self.poison(v)) is not None))
        if not names:
            return None
        return names[0] if len(names) == 1 else f"{self.bind(taint.either)}({', '.join(names)})"

    def forbid_poison(self, values: Sequence[SSAValue], use: str) -> None:
        """Emits a trap for unspecified elements in any of these values."""
        for value in values:
            if (poison := self.poison(value)) is not None:
                self.forbid(f"{poison} is not None and {self.bind(taint.some)}({poison})", use)

    def forbid(self, condition: str, use: str) -> None:
        """Emits a trap for an unspecified value."""
        self.line(f"if {condition}:")
        self.undetermined(
            f"{use} is an unspecified value: it depends on an element read outside its tensor, without padding"
        )

    def undetermined(self, message: str) -> None:
        """What an unspecified value does where it must not be used: a trap, or with zero padding a note."""
        if self.zero:
            self.line(f"    rt.padded.add({self.bind(self._current, 'op')})")
        else:
            self.trap_line(message)

    def trap_line(self, message: str) -> None:
        self.line(f"    raise {self.bind(Trap)}({message!r})")

    # Operations

    @contextmanager
    def at(self, op: Operation) -> Generator[None]:
        """A trap in the lines that are written meanwhile names this op."""
        before, self._current = self._current, op
        yield
        self._current = before

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        lower = LOWERINGS[short_name(op)]
        with self.at(op):
            lower.emit(self, op)
            if lower.poison != "each":
                return
            tiles = [v for v in op.operands if is_tile(v)]
            for result in op.results:
                if result in self.tainted:
                    self.let_poison(result, self.poison_of(tiles))


class BlockEnd(Exception):
    """A `return` inside a loop."""


class Loop(NamedTuple):
    """The loop that a `continue` or `break` is in: the variables that it carries into the next iteration."""

    carried: Sequence[SSAValue]
    results: Sequence[SSAValue]


def check_supported(symbol: str, body: Block) -> None:
    """Raises UsageError for the first op without a lowering, or with an element type that cannot be computed with."""
    for op in body.walk():
        missing = _missing(op)
        if missing is not None:
            raise UsageError(
                f"{symbol}: the interpreter has no {missing} ({where(op)})",
                hint="run this kernel on a GPU, or add a lowering in toolchain/tileir/interpreter",
            )


def _missing(op: Operation) -> str | None:
    if short_name(op) not in LOWERINGS:
        return short_name(op)
    if counts_halves(op):
        return f"{short_name(op)} of elements that share a byte"
    unknown = (unknown_element(value) for value in (*op.operands, *op.results))
    return next((f"tiles of {element}" for element in unknown if element is not None), None)


def where(op: Operation) -> str:
    """An op's source location for a message."""
    found = location.get(op)
    return f"{found.file}:{found.line}:{found.column}" if found is not None else "no source location"


def compile_entry(
    symbol: str, body: Block, sanitize: bool, waits: Mapping[Operation, Operation] | None,
    runtime_globals: dict[str, Any], *, zero: bool = False,
) -> Kernel:  # fmt: skip
    """The Python function of an entry that has passed `check_supported`. `waits` (see analysis/waits.py): None for
    a function that runs block after block, else it is interleaved. `zero`: padding that nobody set is 0."""
    tainted = taint.tainted(body) if sanitize else frozenset[SSAValue]()
    shadows = any(taint.stores_any(op, tainted) for op in body.walk())
    interleaved = waits is not None
    emitter = Emitter(
        symbol, sanitize, tainted, nans.seen(body), shadows, interleaved, zero, waits or {}, dict(runtime_globals)
    )
    invariant = _invariant(body)
    with emitter.indent("def kernel(rt, args, blocks):"):
        names = [emitter.name(argument) for argument in body.args]
        if names:
            emitter.line(f"({', '.join(names)},) = args")
        emitter.line("space = rt.space")
        emitter.line("log = rt.log")
        for op in body.ops:
            if op in invariant:
                emitter.op(op)
        with emitter.indent("for bx, by, bz in blocks:"):
            emitter.line("rt.begin(bx, by, bz)")
            if interleaved:
                emitter.line("yield")
            with emitter.indent("try:"):
                for op in body.ops:
                    if op not in invariant:
                        emitter.op(op)
            emitter.line(f"except {emitter.bind(BlockEnd)}:")
            emitter.line("    pass")
    source = "\n".join(emitter.lines) + "\n"
    try:
        code = compile(source, f"<tile {symbol}>", "exec")
    except SyntaxError as error:
        if "too many" not in error.msg:  # levels of indentation, or statically nested blocks
            raise
        raise UsageError(
            f"{symbol}: its loops and branches nest deeper than the interpreter can follow ({error.msg})",
            hint="run this kernel on a GPU",
        ) from error
    exec(code, emitter.globals)
    run = emitter.globals["kernel"]
    assert isinstance(run, FunctionType)
    return Kernel(
        symbol, run, source, tuple(emitter.ops), tuple(emitter.sites), interleaved, tuple(emitter.waited), run.__code__
    )


def _invariant(body: Block) -> set[Operation]:
    """The ops directly in `body` whose results are the same for every block. They end at a `return` in a branch, since
    a block that returns there must not trap in a later op."""
    varying: set[SSAValue] = set()
    found: set[Operation] = set()
    for op in body.ops:
        nested = list(op.walk())
        if any(short_name(o) == "return" for o in nested):
            break
        if all(LOWERINGS[short_name(o)].pure and not varying.intersection(o.operands) for o in nested):
            found.add(op)
        else:
            varying.update(op.results)
    return found


def region_block(region: Region) -> Block:
    """The one block of a region."""
    return region.blocks[0]


def tokens_unused(value: SSAValue) -> bool:
    return is_token(value) and not any(True for _ in value.uses)
