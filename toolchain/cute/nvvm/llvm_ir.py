"""From the base level to LLVM IR text.

Each operation becomes one instruction. An MLIR block argument becomes a phi. Constants are written in their users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, cf, llvm, scf
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue, TypeAttribute

from ...errors import SourceError
from .dialect import CALLS, GpuModuleOp, ReadRegister
from .llvm_ops import CASTS, COMPARISONS, FLOAT_COMPARISONS, INT_OPS, INTRINSICS
from .llvm_types import UnsupportedError, constant_text, quoted, type_text

POINTER_ATTRIBUTES = {"llvm.noalias": "noalias", "llvm.readonly": "readonly", "llvm.nonnull": "nonnull"}


def to_llvm_ir(module: ModuleOp) -> str:
    """LLVM IR text of all functions and globals of a module and of its gpu.modules. Raises SourceError that names the
    operation which has no such form."""
    written = _Module()
    for op in _members(module):
        match op:
            case llvm.FuncOp():
                written.functions.append(_Function(op, written).text())
            case llvm.GlobalOp():
                written.functions.append(_global(op))
            case _:
                raise SourceError(f"{op.name} cannot stand in a module that is lowered to LLVM IR")
    head = ['target triple = "nvptx64-nvidia-cuda"']
    return "\n".join([*head, *written.functions, *sorted(written.declared)]) + "\n"


def _members(module: ModuleOp) -> Iterator[Operation]:
    for op in module.body.ops:
        if isinstance(op, GpuModuleOp | ModuleOp):
            yield from op.body.ops
        else:
            yield op


def _global(op: llvm.GlobalOp) -> str:
    space, alignment = op.addr_space.value.data, op.alignment
    linkage = "external" if op.linkage.linkage.data == "external" else "internal"
    value = (
        "" if linkage == "external" else f" c{quoted(op.value.data)}" if isinstance(op.value, StringAttr) else " undef"
    )
    aligned = f", align {alignment.value.data}" if alignment else ""
    kind = "constant" if op.constant else "global"
    return f"@{op.sym_name.data} = {linkage} addrspace({space}) {kind} {type_text(op.global_type)}{value}{aligned}"


@dataclass
class _Module:
    functions: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])

    def declare(self, result: str, name: str, arguments: list[str]) -> None:
        self.declared.add(f"declare {result} @{name}({', '.join(arguments)})")


class _Function:
    """One function: names of its values and blocks, and the lines so far."""

    def __init__(self, op: llvm.FuncOp, module: _Module) -> None:
        self.op, self.module = op, module
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
                self.instruction(op)
            except UnsupportedError as error:
                raise SourceError(f"{self.op.sym_name.data}: {op.name}: {error}") from error

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

    def instruction(self, op: Operation) -> None:
        kind = type(op)
        if (write := WRITERS.get(kind)) is not None:
            write(self, op)
        elif kind in INT_OPS:
            first, second = op.operands
            self.line(f"{INT_OPS[kind]} {self.typed(first)}, {self.name(second)}", op.results[0])
        elif kind in CASTS:
            self.line(f"{CASTS[kind]} {self.typed(op.operands[0])} to {type_text(op.results[0].type)}", op.results[0])
        elif kind in INTRINSICS:
            written = type_text(op.results[0].type).replace("float", "f32").replace("half", "f16")
            written = {"bf32": "bf16", "double": "f64", "bf16": "bf16"}.get(written, written)
            self.call(f"{INTRINSICS[kind]}.{written}", list(op.operands), op.results[0])
        elif isinstance(op, ReadRegister):
            self.call(op.intrinsic, [], op.results[0])
        elif isinstance(op, CALLS):
            self.module.declare("void", op.INTRINSIC, op.argument.split()[:1])
            self.line(f"call void @{op.INTRINSIC}({op.argument})")
        else:
            raise UnsupportedError("this operation has no form in LLVM IR here")


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


def _nothing(f: _Function, op: Operation) -> None:
    """Written where it is used."""


def _return(f: _Function, op: Operation) -> None:
    f.line(f"ret {f.typed(op.operands[0])}" if op.operands else "ret void")


def _branch(f: _Function, op: Operation) -> None:
    f.line(f"br label %{f.blocks[op.successors[0]]}")


def _cond_branch(f: _Function, op: Operation) -> None:
    then, other = (f.blocks[block] for block in op.successors)
    f.line(f"br {f.typed(op.operands[0])}, label %{then}, label %{other}")


def _if(f: _Function, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    regions = [region for region in op.regions if region.blocks]
    labels, end = [f.fresh() for _ in regions], f.fresh()
    f.line(f"br {f.typed(op.cond)}, label %{labels[0]}, label %{labels[1] if len(labels) > 1 else end}")
    yielded: list[tuple[Sequence[SSAValue], str]] = []
    for region, label in zip(regions, labels, strict=True):
        f.begin(label)
        f.body(region.block)
        yielded.append((_yielded(region.block), f.label))
        f.line(f"br label %{end}")
    f.begin(end)
    for i, result in enumerate(op.results):
        f.lines.append(f.phi(result, [(values[i], label) for values, label in yielded]))


def _for(f: _Function, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    counter, *carried = op.body.block.args
    test, inside, end, before = f.fresh(), f.fresh(), f.fresh(), f.label
    f.line(f"br label %{test}")
    f.begin(test)
    start, kind = len(f.lines), type_text(counter.type)
    f.names.update({result: f.name(value) for result, value in zip(op.results, carried, strict=True)})
    more, following = f"%more.{test}", f"%next.{test}"
    f.line(f"{more} = icmp slt {kind} {f.name(counter)}, {f.name(op.ub)}")
    f.line(f"br i1 {more}, label %{inside}, label %{end}")
    f.begin(inside)
    f.body(op.body.block)
    f.line(f"{following} = add {kind} {f.name(counter)}, {f.name(op.step)}")
    f.line(f"br label %{test}")
    f.lines[start:start] = [
        f"  {f.name(counter)} = phi {kind} [ {f.name(op.lb)}, %{before} ], [ {following}, %{f.label} ]",
        *(f.phi(value, [(first, before), (last, f.label)])
          for value, first, last in zip(carried, op.iter_args, _yielded(op.body.block), strict=True)),
    ]  # fmt: skip
    f.begin(end)


def _while(f: _Function, op: Operation) -> None:
    assert isinstance(op, scf.WhileOp)
    first, again = op.before_region.block, op.after_region.block
    test, inside, end, before = f.fresh(), f.fresh(), f.fresh(), f.label
    f.line(f"br label %{test}")
    f.begin(test)
    start = len(f.lines)
    f.body(first)
    condition = first.last_op
    assert isinstance(condition, scf.ConditionOp)
    f.line(f"br {f.typed(condition.operands[0])}, label %{inside}, label %{end}")
    for values in (again.args, op.results):
        f.names.update({value: f.name(given) for value, given in zip(values, condition.operands[1:], strict=True)})
    f.begin(inside)
    f.body(again)
    f.line(f"br label %{test}")
    f.lines[start:start] = [
        f.phi(value, [(given, before), (last, f.label)])
        for value, given, last in zip(first.args, op.arguments, _yielded(again), strict=True)
    ]
    f.begin(end)


def _yielded(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.operands if isinstance(last, scf.YieldOp) else ()


def _cmpi(f: _Function, op: Operation) -> None:
    assert isinstance(op, arith.CmpiOp)
    f.line(f"icmp {COMPARISONS[op.predicate.value.data]} {f.typed(op.lhs)}, {f.name(op.rhs)}", op.result)


def _cmpf(f: _Function, op: Operation) -> None:
    assert isinstance(op, arith.CmpfOp)
    f.line(f"fcmp {FLOAT_COMPARISONS[op.predicate.value.data]} {f.typed(op.lhs)}, {f.name(op.rhs)}", op.result)


def _select(f: _Function, op: Operation) -> None:
    f.line("select " + ", ".join(map(f.typed, op.operands)), op.results[0])


def _negf(f: _Function, op: Operation) -> None:
    f.line(f"fneg {f.typed(op.operands[0])}", op.results[0])


def _index_cast(f: _Function, op: Operation) -> None:
    here, there = (int(type_text(t)[1:]) for t in (op.operands[0].type, op.results[0].type))
    if here != there:
        how = "sext" if there > here else "trunc"
        f.line(f"{how} {f.typed(op.operands[0])} to i{there}", op.results[0])


def _gep(f: _Function, op: Operation) -> None:
    assert isinstance(op, llvm.GEPOp)
    dynamic = iter(op.ssa_indices)
    indices = [
        f.typed(next(dynamic)) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}"
        for number in op.rawConstantIndices.iter_values()
    ]
    f.line(f"getelementptr {type_text(op.elem_type)}, {f.typed(op.ptr)}, {', '.join(indices)}", op.result)


def _aligned(op: Operation) -> str:
    found = op.properties.get("alignment")
    return f", align {found.value.data}" if isinstance(found, IntegerAttr) else ""


def _load(f: _Function, op: Operation) -> None:
    f.line(f"load {type_text(op.results[0].type)}, {f.typed(op.operands[0])}{_aligned(op)}", op.results[0])


def _store(f: _Function, op: Operation) -> None:
    f.line(f"store {f.typed(op.operands[0])}, {f.typed(op.operands[1])}{_aligned(op)}")


def _alloca(f: _Function, op: Operation) -> None:
    assert isinstance(op, llvm.AllocaOp)
    f.line(f"alloca {type_text(op.elem_type)}, {f.typed(op.size)}{_aligned(op)}", op.res)


def _inline_asm(f: _Function, op: Operation) -> None:
    """Convergent: an instruction of a whole warp must neither move into a branch nor be doubled for its two sides."""
    assert isinstance(op, llvm.InlineAsmOp)
    kind = type_text(op.res.type) if op.res else "void"
    effect = "sideeffect " if op.has_side_effects is not None else ""
    code, constraints = quoted(op.asm_string.data), quoted(op.constraints.data)
    operands = ", ".join(map(f.typed, op.operands))
    f.line(f"call {kind} asm {effect}{code}, {constraints}({operands}) convergent nounwind", op.res)


def _extract(f: _Function, op: Operation) -> None:
    assert isinstance(op, llvm.ExtractValueOp)
    f.line(f"extractvalue {f.typed(op.container)}, {', '.join(map(str, op.position.iter_values()))}", op.res)


def _insert(f: _Function, op: Operation) -> None:
    assert isinstance(op, llvm.InsertValueOp)
    where = ", ".join(map(str, op.position.iter_values()))
    f.line(f"insertvalue {f.typed(op.container)}, {f.typed(op.value)}, {where}", op.res)


def _call(f: _Function, op: Operation) -> None:
    assert isinstance(op, llvm.CallOp) and op.callee is not None
    kind = "void" if op.returned is None else type_text(op.returned.type)
    f.line(f"call {kind} @{op.callee.string_value()}({', '.join(map(f.typed, op.args))})", op.returned)


def _call_intrinsic(f: _Function, op: Operation) -> None:
    assert isinstance(op, llvm.CallIntrinsicOp)
    f.call(op.intrin.data, list(op.args), op.ress)


WRITERS: dict[type[Operation], Callable[[_Function, Operation], None]] = {
    arith.ConstantOp: _nothing, llvm.ConstantOp: _nothing, llvm.ZeroOp: _nothing, llvm.UndefOp: _nothing,
    llvm.AddressOfOp: _nothing, scf.YieldOp: _nothing, scf.ConditionOp: _nothing, scf.IfOp: _if, scf.ForOp: _for,
    scf.WhileOp: _while, llvm.ReturnOp: _return, cf.BranchOp: _branch, llvm.BrOp: _branch,
    cf.ConditionalBranchOp: _cond_branch, arith.CmpiOp: _cmpi, arith.CmpfOp: _cmpf, arith.SelectOp: _select,
    llvm.SelectOp: _select, arith.NegfOp: _negf, arith.IndexCastOp: _index_cast, llvm.GEPOp: _gep,
    llvm.LoadOp: _load, llvm.StoreOp: _store, llvm.AllocaOp: _alloca, llvm.InlineAsmOp: _inline_asm,
    llvm.ExtractValueOp: _extract, llvm.InsertValueOp: _insert, llvm.CallIntrinsicOp: _call_intrinsic,
    llvm.CallOp: _call,
}  # fmt: skip
