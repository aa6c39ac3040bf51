"""Bytecode 13.4 and the tools: what cuTile Python exports is written back, what we write is read and compiled."""

# ruff: noqa: N803 (constants of a kernel are written in capitals)

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import cuda.tile as ct
import pytest
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import ops, verify

OPERATIONS = Path(__file__).parents[4] / "unit/toolchain/tileir/bytecode/operations_13_4.mlir"


@ct.kernel
def waits(x: Any, y: Any, BN: ct.Constant[int]):
    i = ct.bid(0)
    own = ct.load(y, (i,), (BN,))
    ct.grid_dependency_control_launch_dependents()
    ct.grid_dependency_control_wait()
    for j in range(ct.num_blocks(0)):
        own = own + ct.load(x, (j,), (BN,))
    ct.store(y, (i,), own)


@ct.kernel
def unchecked(x: Any, y: Any, BN: ct.Constant[int]):
    i = ct.bid(0)
    part = ct.load(x, (i,), (BN,), check_bounds=False)
    ct.store(y, (i,), part, check_bounds=False)


@ct.kernel
def inserts(x: Any, y: Any, BN: ct.Constant[int]):
    part = ct.load(x, (0,), (BN,))
    whole = ct.load(y, (0,), (4 * BN,))
    ct.store(y, (0,), ct.insert(whole, (1,), part))


KERNELS = {
    "waits": (waits, ("gdc_wait_tko token = ", "gdc_launch_dependents_tko token = ")),
    "unchecked": (unchecked, ("inbounds = [true]",)),
    "inserts": (inserts, ("insert ",)),
}


def export(name: str) -> bytes:
    array = ArrayConstraint(
        ct.float32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False,
        stride_constant=[1], base_addr_divisible_by=16,
    )  # fmt: skip
    signature = KernelSignature([array, array, 128], CallingConvention.cutile_python_v2(), symbol=name)
    file = io.BytesIO()
    export_kernel(KERNELS[name][0], [signature], file, output_format="tileir_bytecode", bytecode_version="13.4")
    return file.getvalue()


def unnamed(module: ops.ModuleOp) -> str:
    """The printed module without its author's value names."""
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    return text.print_module(module)


@pytest.mark.parametrize("name", KERNELS)
def test_an_export_is_written_back_byte_for_byte(name: str) -> None:
    exported = export(name)
    module = bytecode.read(exported)
    verify(module)
    assert bytecode.write(module, "13.4", debug_info=True) == exported
    stripped = bytecode.strip_debug(exported)
    assert Path(__file__).name.encode() in exported and Path(__file__).name.encode() not in stripped
    assert bytecode.write(text.parse(text.print_module(module), filename="x"), "13.4") == stripped
    assert all(word in text.print_module(module) for word in KERNELS[name][1])


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("name", KERNELS)
def test_what_we_write_is_compiled_as_what_was_exported(name: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    exported = export(name)
    code = bytecode.strip_debug(exported)
    file = tmp_path / f"{name}.tilebc"
    file.write_bytes(code)
    printed = tool("tileirdisasm").run([str(file)]).stdout
    assert bytecode.write(text.parse(printed, filename="disassembled.mlir"), "13.4") == code
    tool("tileiras").run(["--gpu-name=sm_90", "-o", str(tmp_path / "k.cubin"), str(file)])


@pytest.mark.needs("toolchain")
def test_disassembler_reads_every_operation_as_we_print_it(tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    module = text.parse(OPERATIONS.read_text(), filename=OPERATIONS.name)
    code = bytecode.write(module, "13.4")
    file = tmp_path / "operations.tilebc"
    file.write_bytes(code)
    again = text.parse(tool("tileirdisasm").run([str(file)]).stdout, filename="disassembled.mlir")
    assert unnamed(again) == unnamed(module)
    assert bytecode.write(again, "13.4") == code
