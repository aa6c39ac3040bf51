"""The verifier: finds modules that parse, as text or bytecode, but that the compiler would refuse.

This module checks structure: terminators, symbols, and the parts that an operation must have. What each operation
requires of its types and attributes is in `rules/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from toolchain.errors import SourceError

from .. import location
from . import debug
from .attrs import DictAttr, is_dense
from .base import TileOp
from .control import (
    BreakOp,
    ContinueOp,
    EntryOp,
    ForOp,
    GlobalOp,
    IfOp,
    LoopOp,
    ModuleOp,
    ReturnOp,
    YieldOp,
    parent_loop,
)
from .memory import GetGlobalOp
from .rules import RULES, Invalid, need
from .rules.base import check_tile
from .rules.debug import check_inner_scope, check_scope
from .rules.hints import check_hints
from .shaping import ReduceOp, ScanOp
from .types import SCALARS, PtrType, TileType, spell

TERMINATORS = (BreakOp, ContinueOp, ReturnOp, YieldOp)
EFFECTS = ("alloca", "assert", "assume", "for", "loop")  # and every operation with tokens


def verify(
    module: ModuleOp, *, text: str | None = None, filename: str = "<unknown>", texts: Mapping[str, str] | None = None
) -> None:
    """Raises SourceError if the compiler would refuse the module. The error names the operation's place. Given `text`,
    or `texts` by file name, it also shows the line with a caret. An operation without a place, such as one read from
    bytecode without debug information, is reported in `filename`."""
    for error in _Verifier(text, filename, texts or {}).module(module):
        raise error from error.__cause__


def errors_of(
    module: ModuleOp, *, text: str | None = None, filename: str = "<unknown>", texts: Mapping[str, str] | None = None
) -> list[SourceError]:
    """Everything for which the compiler would refuse the module, at most one error for an operation. See `verify`."""
    return list(_Verifier(text, filename, texts or {}).module(module))


def verify_function(function: Operation, *, texts: Mapping[str, str]) -> None:
    """Verifies the body of a function that ends with a `yield` of its results. Raises SourceError as `verify` does."""
    verifier = _Verifier(None, "<unknown>", texts)
    (block,) = function.regions[0].blocks
    verifier.tiles(block.args)
    for error in verifier.operations([op for op in block.ops if op is not block.last_op]):
        raise error from error.__cause__


@dataclass
class _Verifier:
    text: str | None
    filename: str
    texts: Mapping[str, str]
    symbols: dict[str, Operation] = field(default_factory=dict[str, Operation])
    right: set[TileType] = field(default_factory=set[TileType])  # types already checked

    def fail(self, op: Operation, problem: Exception) -> SourceError:
        from ..source import Source  # not above: the text form imports the dialect

        place = location.get(op)
        origin = debug.attached(op)
        message = f"{_name(op)}: {problem}"
        if place is None:
            entry: Operation | None = op
            while entry is not None and not isinstance(entry, EntryOp):
                entry = entry.parent_op()
            inside = "" if entry is None else f" (in @{entry.symbol})"
            return SourceError(f"{self.filename}:0:0: error: {message}{inside}")
        # What `loc(...)` names need not be this text.
        elsewhere = self.text is None or (origin is not None and debug.position(origin) == place)
        text = self.texts.get(place.file) if elsewhere else self.text
        if text is None:
            return SourceError(f"{place}: error: {message}")
        return Source(text, place.file).error_at(place, message)

    def module(self, module: ModuleOp) -> Iterator[SourceError]:
        """The errors of a module, in order."""
        for op in module.body.block.ops:
            yield from self.tried(op, lambda op=op: self.symbol(op))
        for op in module.body.block.ops:
            if isinstance(op, EntryOp):
                yield from self.block(op, op.body.block)

    def tried(self, op: Operation, check: Callable[[], object]) -> Iterator[SourceError]:
        """The error that a check of an operation finds, if it does."""
        try:
            check()
        except (Invalid, VerifyException) as problem:
            error = self.fail(op, problem)
            error.__cause__ = problem
            yield error

    def symbol(self, op: Operation) -> None:
        """Checks an entry or a global of the module."""
        need(isinstance(op, EntryOp | GlobalOp), "a module may contain only entries and globals")
        assert isinstance(op, EntryOp | GlobalOp)
        name = op.sym_name.data
        need(name not in self.symbols, f"symbol @{name} is already taken")
        self.symbols[name] = op
        op.get_irdl_definition().verify(op)
        need(bool(name), "its name is empty")
        check_scope(op)
        if isinstance(op, EntryOp):
            _check_entry(op)
            self.tiles(op.body.block.args)
        else:
            _check_global(op)

    def block(self, parent: Operation, block: Block) -> Iterator[SourceError]:
        """The errors of a block's operations, and of those nested in them."""
        yield from self.operations(list(block.ops))
        ends = isinstance(block.last_op, TERMINATORS)
        yield from self.tried(parent, lambda: need(ends, f"its block must end with {_ending(parent)}"))

    def operations(self, ops: Sequence[Operation]) -> Iterator[SourceError]:
        for op in ops:
            found = list(self.tried(op, lambda op=op: self.operation(op)))
            yield from found
            if found:  # what is inside of it is not checked
                continue
            for region in op.regions:
                for inner in region.blocks:
                    yield from self.block(op, inner)

    def tiles(self, values: Sequence[SSAValue]) -> None:
        """Checks the tile types of these values."""
        for value in values:
            if isinstance(value.type, TileType) and value.type not in self.right:
                check_tile(value.type)
                self.right.add(value.type)

    def operation(self, op: Operation) -> None:
        need(isinstance(op, TileOp), "an entry may contain only operations of Tile IR")
        assert isinstance(op, TileOp)
        for value in (*op.results, *op.operands):
            if isinstance(value.type, PtrType) or value.type in SCALARS:
                raise Invalid(f"no value is of type {spell(value.type)}: write tile<{spell(value.type)}>")
        op.get_irdl_definition().verify(op)  # the operands, results, properties and regions it declares
        self.tiles(op.results)
        for region in op.regions:
            for block in region.blocks:
                self.tiles(block.args)
        check_hints(op, op.properties.get("optimization_hints"))
        _check_effects(op)
        check_inner_scope(op)
        if _name(op) in RULES:
            RULES[_name(op)](op)
        if isinstance(op, TERMINATORS):
            need(op.next_op is None, "must be the last operation of its block")
            _check_terminator(op)
        if isinstance(op, GetGlobalOp):
            found = self.symbols.get(op.global_name.data)
            need(isinstance(found, GlobalOp), f"there is no global @{op.global_name.data}")
            assert isinstance(found, GlobalOp)
            pointer = op.result.type.element_type
            said = pointer.ptr_attr if isinstance(pointer, PtrType) else None  # which may be anything
            _expect(op.results, [TileType((), PtrType(found.value.type.element_type, said))])


def _name(op: Operation) -> str:
    return op.name.removeprefix("cuda_tile.")


def _spelled(kinds: Sequence[Attribute]) -> str:
    return f"({', '.join(map(spell, kinds))})"


def _expect(values: Sequence[object], wanted: Sequence[Attribute]) -> None:
    found = [v.type for v in values]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    if found != list(wanted):
        raise Invalid(f"has {_spelled(found)} where {_spelled(wanted)} is expected")  # pyright: ignore[reportUnknownArgumentType]


def _ending(parent: Operation) -> str:
    kinds = {EntryOp: "return", ForOp: "continue", LoopOp: "continue or break"}
    return next((ending for kind, ending in kinds.items() if isinstance(parent, kind)), "yield")


def _check_entry(op: EntryOp) -> None:
    inputs, outputs = op.function_type.inputs.data, op.function_type.outputs.data
    need(not outputs, "an entry returns nothing")
    _expect(op.body.block.args, inputs)
    check_hints(op, op.optimization_hints)
    _check_arguments(op)
    for n, kind in enumerate(inputs):
        scalar = isinstance(kind, TileType) and kind.shape == ()
        need(scalar, f"parameter {n} is {spell(kind)}, but parameters are scalar tiles")


def _check_arguments(op: EntryOp) -> None:
    """Checks what is said of the parameters: a dictionary each, whose names have a dialect in front, as `nv.align`."""
    if op.arg_attrs is None:
        return
    said, parameters = op.arg_attrs.data, len(op.body.block.args)
    need(len(said) == parameters, f"{len(said)} dictionaries of attributes for {parameters} parameters")
    for n, one in enumerate(said):
        names = [name for name, _ in one.data] if isinstance(one, DictAttr) else [""]
        for name in names:
            rest = "but its name must begin with that of a dialect"
            need(name.find(".") > 0, f"parameter {n} has the attribute {name!r}, {rest}")
        need(len(names) == len(set(names)), f"parameter {n} has an attribute twice")


def _check_global(op: GlobalOp) -> None:
    kind = op.value.type
    need(len(kind.shape) == 1, f"its value must have rank 1, not {spell(kind)}")
    check_tile(kind)
    need(is_dense(op.value.raw, kind), f"{len(op.value.raw)} bytes of value for {spell(kind)}")
    need(op.alignment.data >= 0, f"alignment = {op.alignment.data}")


def _check_effects(op: Operation) -> None:
    """Refuses side effects in the region of a reduction or scan, which may run in any order and any number of times."""
    if _name(op) not in EFFECTS and not _name(op).endswith("_tko"):
        return
    around = op.parent_op()
    while isinstance(around, IfOp):
        around = around.parent_op()
    need(
        not isinstance(around, ReduceOp | ScanOp),
        "is not possible in a reduce or scan, whose region may not have side effects",
    )


def _check_terminator(op: Operation) -> None:
    """Checks that a terminator is allowed where it is, and that its operands have the expected types."""
    parent = op.parent_op()
    loop = parent_loop(op)
    if isinstance(op, ReturnOp):
        around = parent
        while isinstance(around, IfOp | LoopOp):
            around = around.parent_op()
        need(
            isinstance(around, EntryOp), "may end an entry, also from inside an if or a loop, but not from inside a for"
        )
        _expect(op.operands, ())
    elif isinstance(op, YieldOp):
        need(isinstance(parent, IfOp | ReduceOp | ScanOp), "may end only a region of if, reduce or scan")
        assert parent is not None
        kinds = [r.type for r in parent.results]
        if isinstance(parent, ReduceOp | ScanOp):
            kinds = [TileType((), k.element_type) for k in kinds if isinstance(k, TileType)]
        _expect(op.operands, kinds)
    else:
        need(isinstance(parent, IfOp | ForOp | LoopOp) and loop is not None, "is possible only in a loop")
        assert isinstance(loop, ForOp | LoopOp)
        need(isinstance(loop, LoopOp) or isinstance(op, ContinueOp), "cannot leave a for: use loop")
        # `continue` passes the carried values, `break` the results. A `for` has the same types for both.
        _expect(op.operands, [v.type for v in (loop.initValues if isinstance(op, ContinueOp) else loop.results)])
