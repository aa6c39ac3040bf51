"""A function in LLVM IR text: names of values and blocks, phis, the head with its attributes.

An MLIR block argument becomes a phi. Constants are written in their users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from xdsl.dialects import arith, cf, llvm
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute

from ...errors import SourceError
from .llvm_types import UnsupportedError, constant_text, type_text
from .location import place

LOWER = "lower it first, as cute-opt --pass-pipeline cute-desugar,cute-lower,cute-nvgpu-to-nvvm does"

POINTER_ATTRIBUTES = {"llvm.noalias": "noalias", "llvm.readonly": "readonly", "llvm.nonnull": "nonnull"}


@dataclass
class Module:
    """Functions and globals of a module, and what they declare."""

    functions: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])

    def declare(self, result: str, name: str, arguments: list[str]) -> None:
        self.declared.add(f"declare {result} @{name}({', '.join(arguments)})")


class Function:
    """One function: names of its values and blocks, and the lines so far. `write` writes an operation to it."""

    def __init__(self, op: llvm.FuncOp, module: Module, write: Writer) -> None:
        self.op, self.module, self.write = op, module, write
        self.names: dict[SSAValue, str] = {}
        self.blocks = {block: f"b{i}" for i, block in enumerate(op.body.blocks)}
        self.ends = dict(self.blocks)  # the label that a block ends under: structured operations begin others
        self.label, self.labels = "b0", len(self.blocks)
        self.lines: list[str] = []

    def text(self) -> str:
        for block in self.blocks:
            for argument in block.args:
                self.names[argument] = f"%v{len(self.names)}"
        head = self.head()
        if not self.blocks:
            return f"declare {head}"
        starts: dict[Block, int] = {}
        for block, label in self.blocks.items():
            self.begin(label)
            starts[block] = len(self.lines)
            self.body(block)
            self.ends[block] = self.label
        for block, start in reversed(starts.items()):
            self.lines[start:start] = self.phis(block)
        return f"define {head} {{\n" + "\n".join(self.lines) + "\n}"

    def body(self, block: Block) -> None:
        for op in block.ops:
            try:
                self.write(self, op)
            except UnsupportedError as error:
                hint = LOWER if op.name.startswith("cute") else None
                raise SourceError(f"{place(op)}{self.op.sym_name.data}: {op.name}: {error}", hint=hint) from error

    def begin(self, label: str) -> None:
        """What follows stands under a label."""
        self.label = label
        self.lines.append(f"{label}:")

    def fresh(self) -> str:
        self.labels += 1
        return f"b{self.labels - 1}"

    def phi(self, result: SSAValue, incoming: list[tuple[SSAValue, str]]) -> str:
        sources = ", ".join(f"[ {self.name(value)}, %{label} ]" for value, label in incoming)
        return f"  {self.name(result)} = phi {type_text(result.type)} {sources}"

    def head(self) -> str:
        attributes = self.op.attributes
        kernel = "ptx_kernel " if "nvvm.kernel" in attributes else ""
        function = self.op.function_type
        said = self.op.arg_attrs.data if self.op.arg_attrs else [DictionaryAttr({})] * len(function.inputs)
        names = [self.names[a] for a in self.op.body.blocks[0].args] if self.blocks else [""] * len(function.inputs)
        parts = zip(function.inputs, said, names, strict=True)
        parameters = ", ".join(f"{type_text(t)}{_parameter(a)} {n}".rstrip() for t, a, n in parts)
        return f"{kernel}{type_text(function.output)} @{self.op.sym_name.data}({parameters}){_limits(attributes)}"

    def phis(self, block: Block) -> list[str]:
        if block is self.op.body.blocks[0]:
            return []
        edges = [(self.ends[before], values) for before, values in self.edges(block)]
        return [self.phi(argument, [(values[i], label) for label, values in edges])
                for i, argument in enumerate(block.args)]  # fmt: skip

    def edges(self, block: Block) -> Iterator[tuple[Block, tuple[SSAValue, ...]]]:
        """The blocks that branch to one, each with the arguments that it passes."""
        for before in self.blocks:
            match before.last_op:
                case cf.BranchOp() | llvm.BrOp() as branch if branch.successors[0] is block:
                    yield before, tuple(branch.operands)
                case cf.ConditionalBranchOp() as branch if block in branch.successors:
                    if branch.then_block is block and branch.else_block is block:
                        raise SourceError("cf.cond_br: both ways lead to one block")
                    yield before, tuple(branch.then_arguments if branch.then_block is block else branch.else_arguments)
                case _:
                    pass

    def name(self, value: SSAValue) -> str:
        """A value as an operand is written. A constant is written in place, also one defined further down."""
        if (known := self.names.get(value)) is not None:
            return known
        op = value.owner
        if isinstance(op, arith.ConstantOp | llvm.ConstantOp):
            made = constant_text(op.value, value.type)
        elif isinstance(op, llvm.ZeroOp):
            made = "zeroinitializer" if not isinstance(value.type, llvm.LLVMPointerType) else "null"
        elif isinstance(op, llvm.UndefOp):
            made = "undef"
        elif isinstance(op, llvm.AddressOfOp):
            made = f"@{op.global_name.string_value()}"
        elif isinstance(op, arith.IndexCastOp) and type_text(op.input.type) == type_text(value.type):
            made = self.name(op.input)
        else:
            made = f"%v{len(self.names)}"
        self.names[value] = made
        return made

    def typed(self, value: SSAValue) -> str:
        return f"{type_text(value.type)} {self.name(value)}"

    def line(self, text: str, result: SSAValue | None = None) -> None:
        self.lines.append(f"  {text}" if result is None else f"  {self.name(result)} = {text}")

    def call(self, name: str, arguments: list[SSAValue], result: SSAValue | None) -> None:
        kind = "void" if result is None else type_text(result.type)
        self.module.declare(kind, name, [type_text(a.type) for a in arguments])
        self.line(f"call {kind} @{name}({', '.join(map(self.typed, arguments))})", result)


def _parameter(said: DictionaryAttr) -> str:
    """A kernel parameter's attributes."""
    written = ""
    for key, value in said.data.items():
        if key in POINTER_ATTRIBUTES:
            written += f" {POINTER_ATTRIBUTES[key]}"
        elif key == "llvm.align" and isinstance(value, IntegerAttr):
            written += f" align {value.value.data}"
        elif key == "llvm.byval" and isinstance(value, TypeAttribute):
            written += f" byval({type_text(value)})"
        elif key == "nvvm.grid_constant" and isinstance(value, UnitAttr):
            written += ' "nvvm.grid_constant"'
        else:
            raise SourceError(f"a parameter's attribute {key} has no form in LLVM IR here")
    return written


def _limits(attributes: dict[str, Attribute]) -> str:
    """What the compiler may assume of a launch: threads of a block, blocks of a multiprocessor and of a cluster."""
    written = ""
    for key in ("maxntid", "reqntid", "cluster_dim"):
        if isinstance(value := attributes.get(f"nvvm.{key}"), DenseArrayBase):
            written += f' "nvvm.{key}"="{",".join(str(number) for number in value.iter_values())}"'
    for key in ("minctasm", "maxnreg"):
        if isinstance(value := attributes.get(f"nvvm.{key}"), IntegerAttr):
            written += f' "nvvm.{key}"="{value.value.data}"'
    return written


Writer = Callable[[Function, Operation], None]
