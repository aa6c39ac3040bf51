"""Runs a program at MLIR's base level on Python's numbers: `main`, what it calls and launches, and what it prints.

For programs of somebody else's tests, behind our passes: integers of `arith`, structs of `llvm`, `scf.if`, calls, and
kernels whose threads do not meet. Environment variables are those that the test names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import arith, func, llvm, math, scf, ub
from xdsl.dialects.builtin import IntegerType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from toolchain.cute.nvvm.gpu import (
    PLACES,
    GpuFuncOp,
    GpuLaunchFuncOp,
    GpuPrintfOp,
    GpuReturnOp,
    PlaceOp,
)
from toolchain.errors import UsageError

Env = dict[SSAValue, Any]


def _divided(a: int, b: int) -> int:
    """Rounded towards 0."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


BINARY: Mapping[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivSIOp: _divided,
    arith.RemSIOp: lambda a, b: a - _divided(a, b) * b,
    arith.CeilDivSIOp: lambda a, b: -(-a // b),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.ShLIOp: lambda a, b: a << b,
    arith.ShRUIOp: lambda a, b: (a & 0xFFFFFFFF) >> b,
}
COMPARED: tuple[Callable[[int, int], bool], ...] = (  # by the number of arith.cmpi's predicate
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)


def printed(module: ModuleOp, environment: Mapping[str, str] | None = None) -> str:
    """What `main` prints. Raises UsageError for an operation without a meaning here."""
    made = _Machine(module, environment or {})
    made.call("main", [])
    return "".join(made.output)


class _Machine:
    def __init__(self, module: ModuleOp, environment: Mapping[str, str]) -> None:
        ops = list(module.walk())
        self.functions = {op.sym_name.data: op for op in ops if isinstance(op, func.FuncOp | GpuFuncOp)}
        self.texts = {op.sym_name.data: op.value for op in ops if isinstance(op, llvm.GlobalOp)}
        self.environment, self.output = environment, list[str]()
        self.place: dict[str, int] = {}

    def call(self, name: str, args: Sequence[Any]) -> list[Any]:
        body = self.functions[name].body.blocks[0]
        return self.block(body, dict(zip(body.args, args, strict=True)))

    def block(self, block: Block, env: Env) -> list[Any]:
        for op in block.ops:
            ins = [env[value] for value in op.operands]
            if isinstance(op, func.ReturnOp | scf.YieldOp | GpuReturnOp):
                return ins
            outs = self.step(op, ins, env)
            env |= dict(zip(op.results, outs, strict=True))
        return []

    def step(self, op: Operation, ins: list[Any], env: Env) -> list[Any]:
        if (binary := BINARY.get(type(op))) is not None:
            return [_wrapped(binary(*ins), op.results[0].type)]
        match op:
            case arith.ConstantOp():
                value: Any = op.value
                return [value.value.data]
            case arith.CmpiOp():
                return [int(COMPARED[op.predicate.value.data](*ins))]
            case arith.ExtSIOp() | arith.IndexCastOp():
                return ins
            case arith.ExtUIOp():
                return [ins[0] & 1 if op.operands[0].type == IntegerType(1) else ins[0]]
            case math.AbsIOp():
                return [abs(ins[0])]
            case scf.IfOp():
                region = op.true_region if ins[0] & 1 else op.false_region
                return self.block(region.blocks[0], env) if region.blocks else []
            case ub.PoisonOp() | llvm.UndefOp():
                return [None]
            case llvm.ExtractValueOp():
                return [_inner(ins[0], list(op.position.iter_values()))]
            case llvm.InsertValueOp():
                return [_replaced(ins[0], list(op.position.iter_values()), ins[1])]
            case llvm.AddressOfOp():
                text = self.texts[op.global_name.string_value()]
                assert isinstance(text, StringAttr)
                return [text.data.partition("\0")[0]]
            case llvm.GEPOp():
                return ins
            case func.CallOp():
                return self.call(op.callee.string_value(), ins)
            case llvm.CallOp():
                return [self.c_function(op, ins)]
            case GpuPrintfOp():
                self.print(op.format.data, ins)
                return []
            case GpuLaunchFuncOp():
                self.launch(op, ins)
                return []
            case PlaceOp():
                return [self.place[f"{op.name.removeprefix('gpu.')} {op.dimension.data}"]]
            case _:
                raise UsageError(f"{op.name} has no meaning here", hint="lower the program to the base level")

    def c_function(self, op: llvm.CallOp, ins: list[Any]) -> Any:
        name = op.callee.string_value() if op.callee else ""
        if name == "getenv":
            return self.environment[ins[0]]
        if name == "atoi":
            return int(ins[0])
        if name == "printf":
            return self.print(ins[0], ins[1:])
        raise UsageError(f"{name} has no meaning here", hint="printf, getenv and atoi have")

    def print(self, text: str, numbers: Sequence[int]) -> int:
        shown = re.sub(r"%l*d", "%d", text) % tuple(numbers)
        self.output.append(shown)
        return len(shown)

    def launch(self, op: GpuLaunchFuncOp, ins: list[Any]) -> None:
        """Thread after thread."""
        sizes, args = ins[:6], ins[6:]
        name = op.kernel.nested_references.data[-1].data
        places = [(bx, by, bz, tx, ty, tz) for bz in range(sizes[2]) for by in range(sizes[1]) for bx in range(sizes[0])
                  for tz in range(sizes[5]) for ty in range(sizes[4]) for tx in range(sizes[3])]  # fmt: skip
        extents = {"grid_dim": sizes[:3], "block_dim": sizes[3:]}
        for place in places:
            of = {"block_id": place[:3], "thread_id": place[3:], **extents}
            self.place = {f"{what} {axis}": of[what][i] for what in PLACES for i, axis in enumerate("xyz")}
            self.call(name, args)


def _wrapped(number: int, kind: Any) -> int:
    """An integer of a type's width, with its sign."""
    if not isinstance(kind, IntegerType):
        return number
    width = kind.width.data
    number &= (1 << width) - 1
    return number - (1 << width) if width > 1 and number >> (width - 1) else number


def _inner(value: Any, place: Sequence[int]) -> Any:
    """A member of a struct; of what is undefined, and so is None, nothing is defined."""
    for number in place:
        value = None if value is None else value.get(number)
    return value


def _replaced(value: Any, place: Sequence[int], part: Any) -> Any:
    """A struct, by the numbers of its members, with another part."""
    if not place:
        return part
    known = dict(value or {})
    known[place[0]] = _replaced(known.get(place[0]), place[1:], part)
    return known
