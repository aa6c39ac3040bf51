"""Branches, and the structured operations of `scf`, in LLVM IR text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import cf, llvm, scf
from xdsl.ir import Block, Operation, SSAValue

from .llvm_function import Function, Writer
from .llvm_types import type_text


def _return(f: Function, op: Operation) -> None:
    f.line(f"ret {f.typed(op.operands[0])}" if op.operands else "ret void")


def _branch(f: Function, op: Operation) -> None:
    f.line(f"br label %{f.blocks[op.successors[0]]}")


def _cond_branch(f: Function, op: Operation) -> None:
    then, other = (f.blocks[block] for block in op.successors)
    f.line(f"br {f.typed(op.operands[0])}, label %{then}, label %{other}")


def _if(f: Function, op: Operation) -> None:
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


def _for(f: Function, op: Operation) -> None:
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


def _while(f: Function, op: Operation) -> None:
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


CONTROL: Mapping[type[Operation], Writer] = {
    scf.IfOp: _if, scf.ForOp: _for, scf.WhileOp: _while, llvm.ReturnOp: _return, cf.BranchOp: _branch,
    llvm.BrOp: _branch, cf.ConditionalBranchOp: _cond_branch,
}  # fmt: skip
