"""A module with a kernel for each instruction of `cute_nvgpu.arch`, in each form that a target has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntAttr, ModuleOp, UnitAttr, f32, f64, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.rewriter import InsertPoint

from toolchain.cute.atoms import MmaAtom, atoms, copies
from toolchain.cute.nvgpu import ARCH
from toolchain.cute.nvvm.dialect import GpuModuleOp
from toolchain.cute.nvvm.emit import Emitter

GLOBAL = llvm.LLVMPointerType(IntAttr(1))
KINDS: dict[str, Attribute] = {"r": i32, "l": i64, "f": f32, "d": f64}
COORDINATES = {"copy.tma_load": 3, "copy.tma_load_multicast": 4, "copy.tma_store": 2, "copy.tma_reduce": 2,
               "copy.tma_prefetch": 1}  # the operands before them  # fmt: skip
Form = tuple[str, str, int | None, int]  # an instruction, its atom, its number, and operands if they vary


def forms(target: str) -> Iterator[Form]:
    """Each instruction that a target has: all of its atoms, for wgmma with the smallest N."""
    for name, kind in ARCH.items():
        row = kind.ROW
        if not row.runs_on(target):
            continue
        number = None if row.numbers is None else row.numbers[-1] if name == "set_registers" else row.numbers[0]
        if name == "copy.tma_load_im2col":  # 3 to 5 coordinates, and 2 fewer offsets
            yield from ((name, "", number, 3 + count) for count in (4, 6, 8))
        elif name in COORDINATES:
            for rank in (1, 5):
                yield from ((name, atom, number, COORDINATES[name] + rank) for atom in row.atoms or ("",))
        elif name == "copy.cp_async":
            yield from ((name, "", width, count) for width in (4, 8, 16) for count in (2, 3))
        else:
            yield from ((name, atom, number, 0) for atom in _atoms(name, target) or row.atoms or ("",))


def _atoms(name: str, target: str) -> list[str]:
    arch = int(target.removeprefix("sm_").rstrip("af"))
    if name.startswith("mma."):
        kinds = {"mma.sync": ("mma",), "mma.sync_sp": ("mma_sp",), "mma.wgmma": ("wgmma", "wgmma_rs")}
        wanted = kinds.get(name, ("wgmma_sp",))
        found = [a for a in atoms().values() if a.name.partition(".")[0] in wanted and a.arch <= arch]
        if name.startswith("mma.sync"):
            return [atom.name for atom in found]
        return [f"{a.name}.{major}" for a in found if a.n == 8 for major in _majors(a)]
    if name in ("copy.ldmatrix", "copy.stmatrix"):
        return [copy.name for copy in copies().values() if copy.load == (name == "copy.ldmatrix")]
    return []


def _majors(atom: MmaAtom) -> tuple[str, ...]:
    if atom.ab not in ("f16", "bf16"):
        return ("kk",)
    return ("kk", "km", "mk", "mm") if atom.a_layout is None else ("kk", "km")


def every_instruction(target: str) -> ModuleOp:
    """The module; its kernels are `k0`, `k1` and so on. Each writes what its instruction returns."""
    kernels = [_kernel(f"k{number}", form) for number, form in enumerate(forms(target))]
    return ModuleOp([GpuModuleOp("kernels", Region(Block(kernels)))])


def _kernel(symbol: str, form: Form) -> Operation:
    name, atom, number, varying = form
    empty: Any = ARCH[name]([], [], atom, number)
    if name == "registers":
        wanted = ["=r", "=f", "0", "1"]
    elif varying:
        wanted = _varying(name, varying)
    else:
        wanted = [part for part in empty.asm[1].split(",") if part]
    kinds = [KINDS[(wanted[int(part)] if part.isdigit() else part)[-1]] for part in wanted]
    results = sum(part.startswith("=") for part in wanted)
    block = Block(arg_types=[GLOBAL, *kinds[results:]])
    builder = Emitter(InsertPoint.at_end(block))
    made = builder.insert(ARCH[name](block.args[1:], kinds[:results], atom, number))
    for place, value in enumerate(made.res):
        at = builder.insert(llvm.GEPOp(block.args[0], [place], i32, result_type=GLOBAL)).result
        builder.insert(llvm.StoreOp(value, at))
    builder.insert(llvm.ReturnOp())
    kind = llvm.LLVMFunctionType([GLOBAL, *kinds[results:]])
    function = llvm.FuncOp(symbol, kind, llvm.LinkageAttr("external"), body=Region(block))
    function.attributes["nvvm.kernel"] = UnitAttr()
    return function


def _varying(name: str, count: int) -> list[str]:
    if name == "copy.cp_async":
        return ["r", "l", "r"][:count]
    fixed = {"copy.tma_prefetch": "l", "copy.tma_load": "rlr", "copy.tma_load_im2col": "rlr",
             "copy.tma_load_multicast": "rlrr"}.get(name, "rl")  # fmt: skip
    return [*fixed, *"r" * (count - len(fixed))]
