"""Atoms as values: the fields that were set on the way, and copies of boxes by TMA."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....errors import SourceError
from ...dialect.atom_ops import AtomGetValueOp, AtomSetValueOp, MakeCopyAtomOp, MakeMmaAtomOp, TmaCopyOp
from ...dialect.ops import OPERATIONS, GetScalarsOp, StaticOp
from ...dialect.sugar import MakeTiledCopyOp, MakeTiledMmaOp
from ...dialect.tensor_ops import GemmOp, ToAddressOp
from ...nvgpu import ARCH
from .place import Placed

MADE = (AtomSetValueOp, MakeCopyAtomOp, MakeMmaAtomOp)  # go once nothing uses them
Coordinate: Any = OPERATIONS["deref_arith_tuple_iter"]
SHARED = llvm.LLVMPointerType(IntAttr(3))


def value_of(atom: SSAValue, field: str) -> SSAValue | None:
    """The value of a field that was set last, or None. Raises SourceError for an atom that no operation here makes."""
    owner = atom.owner
    while isinstance(owner, AtomSetValueOp):
        if owner.field is not None and owner.field.data == field:
            return owner.args[1]
        owner = owner.args[0].owner
    if not isinstance(owner, MADE):
        raise SourceError(f"the atom {atom.type} comes from no operation that makes or changes one")
    return None


def get_value(op: AtomGetValueOp, builder: Placed) -> list[SSAValue]:  # noqa: ARG001
    assert op.field is not None
    return [_needed(op.args[0], op.field.data)]


def _needed(atom: SSAValue, field: str) -> SSAValue:
    if (found := value_of(atom, field)) is None:
        raise SourceError(f"the atom's field {field!r} is not set", hint="cute_nvgpu.atom_set_value sets it")
    return found


def tiled(op: MakeTiledMmaOp | MakeTiledCopyOp, builder: Placed) -> list[SSAValue]:
    kind: Any = op.res[0].type
    made = builder.insert(StaticOp(kind)).res
    if isinstance(op, MakeTiledMmaOp) and not _accumulates(op):
        for use in list(op.res[0].uses):
            if isinstance(use.operation, GemmOp):
                _overwrite(use.operation)
    return [made]


def _accumulates(op: MakeTiledMmaOp) -> bool:
    value = value_of(op.args[0], "accumulate")
    if value is None:
        return True
    if not isinstance(value.owner, arith.ConstantOp):
        raise SourceError("the atom's field 'accumulate' must be a constant")
    written: Any = value.owner.value
    return bool(written.value.data)


def _overwrite(op: GemmOp) -> None:
    """A product whose atom does not accumulate has no C: it overwrites D."""
    three, _, metadata = op.sides
    made = Placed(op, InsertPoint.before(op)).insert(GemmOp([op.args[0], *three, *metadata]))
    Rewriter.replace_op(op, [], list(made.res))


def tma_copy(op: TmaCopyOp, builder: Placed) -> list[SSAValue]:
    atom, box, where = op.args
    kind: Any = atom.type
    owner = atom.owner
    while isinstance(owner, AtomSetValueOp):
        owner = owner.args[0].owner
    if not isinstance(owner, MakeCopyAtomOp):
        raise SourceError(f"the atom {kind} comes from no operation that makes one")
    tensor_map = owner.args[0]
    corner = builder.insert(Coordinate([where])).res
    at = list(builder.insert(GetScalarsOp(corner)).scalars)
    address = builder.insert(ToAddressOp([box], [SHARED])).res[0]
    name, _, how = kind.data.partition(".")
    if name.startswith("load"):
        more = [_needed(atom, "mask")] if name == "load_multicast" else []
        args = [address, tensor_map, _needed(atom, "mbarrier"), *more, *at]
    else:
        args = [tensor_map, *at] if name == "prefetch" else [address, tensor_map, *at]
    builder.insert(ARCH[f"copy.tma_{name}"](args, atom=how))
    return []
