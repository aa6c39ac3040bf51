"""Our bytecode and the tools': the disassembler reads ours, and we write back what cuTile Python exports."""

# ruff: noqa: N803 (constants of a kernel are written in capitals)

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import cuda.tile as ct
import pytest
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint, export_kernel

from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import verify
from toolchain.tileir.dialect.ops import ModuleOp

OPERATIONS = Path(__file__).parents[4] / "unit/toolchain/tileir/bytecode/operations.mlir"


def unnamed(module: ModuleOp) -> str:
    """The printed module without its author's value names."""
    for op in module.walk():
        for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
            value.name_hint = None
    return text.print_module(module)


@pytest.mark.needs("toolchain")
def test_disassembler_reads_every_operation_as_we_print_it(tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    module = text.parse(OPERATIONS.read_text(), filename="operations.mlir")
    code = bytecode.write(module)
    file = tmp_path / "operations.tilebc"
    file.write_bytes(code)
    printed = tool("tileirdisasm").run([str(file)]).stdout
    again = text.parse(printed, filename="disassembled.mlir")
    assert unnamed(again) == unnamed(module)
    assert bytecode.write(again) == code


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("identity", ["0x7FF0000000000000", "0xFFF0000000000000", "-2.5"])
def test_disassembler_reads_the_sign_of_an_identity(tmp_path: Path, identity: str) -> None:
    from toolchain.pinned.tools import tool

    source = f"""
    entry @k(%x: tile<ptr<f64>>) {{
      %v = constant <f64: 1.0> : tile<8xf64>
      %r = reduce %v dim=0 identities=[{identity} : f64] : tile<8xf64> -> tile<f64>
      (%a: tile<f64>, %b: tile<f64>) {{
        %m = maxf %a, %b : tile<f64>
        yield %m : tile<f64>
      }}
      %t = store_ptr_tko weak %x, %r : tile<ptr<f64>>, tile<f64> -> token
    }}
    """
    module = text.parse(source, filename="identity.mlir")
    file = tmp_path / "identity.tilebc"
    file.write_bytes(bytecode.write(module))
    printed = tool("tileirdisasm").run([str(file)]).stdout
    assert unnamed(text.parse(printed, filename="disassembled.mlir")) == unnamed(module)


@ct.kernel
def scaled_rows(x: Any, out: Any, factor: float, BN: ct.Constant[int]):
    i = ct.bid(0)
    total = ct.zeros((1, BN), ct.float32)
    for j in range(ct.cdiv(x.shape[1], BN)):
        t = ct.load(x, index=(i, j), shape=(1, BN), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        total = total + t * t
    scale = factor / ct.sqrt(ct.sum(total, axis=1, keepdims=True))
    for j in range(ct.cdiv(x.shape[1], BN)):
        t = ct.load(x, index=(i, j), shape=(1, BN), padding_mode=ct.PaddingMode.ZERO).astype(ct.float32)
        if i > 2:
            t = ct.exp(t)
        ct.store(out, index=(i, j), tile=(t * scale).astype(out.dtype))


@ct.kernel
def picked_rows(x: Any, rows: Any, out: Any, BN: ct.Constant[int]):
    n = ct.bid(0)
    row = ct.load(rows, index=(n,), shape=(1,))
    columns = ct.arange(BN, dtype=ct.int32)
    ct.scatter(out, (ct.full((1, 1), n, ct.int32), columns[None, :]), ct.gather(x, (row[:, None], columns[None, :])))
    ct.atomic_add(rows, (0,), 1)


@ct.kernel
def unchecked(x: Any, out: Any, BN: ct.Constant[int]):
    index = ct.arange(BN, dtype=ct.int32)
    ct.scatter(out, index, ct.gather(x, index, check_bounds=False), check_bounds=False)


def array(dtype: Any, rank: int) -> ArrayConstraint:
    return ArrayConstraint(
        dtype, rank, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False,
        stride_constant=[None] * (rank - 1) + [1], base_addr_divisible_by=16,
    )  # fmt: skip


KERNELS: dict[str, tuple[Any, list[Any]]] = {
    "scaled_rows": (scaled_rows, [array(ct.bfloat16, 2), array(ct.bfloat16, 2), ScalarConstraint(ct.float32), 128]),
    "unchecked": (unchecked, [array(ct.float32, 1), array(ct.float32, 1), 64]),
    "unchecked_flags": (unchecked, [array(ct.bool_, 1), array(ct.bool_, 1), 64]),
    "picked_rows": (picked_rows, [array(ct.float32, 2), array(ct.int32, 1), array(ct.float32, 2), 64]),
}


def export(name: str, version: str) -> bytes:
    kernel, parameters = KERNELS[name]
    signature = KernelSignature(parameters, CallingConvention.cutile_python_v2(), symbol=name)
    file = io.BytesIO()
    target = None if version == "13.3" else "sm_100"  # older bytecode is for one target
    export_kernel(
        kernel, [signature], file, gpu_code=target, output_format="tileir_bytecode", bytecode_version=version
    )  # fmt: skip
    return file.getvalue()


@pytest.mark.parametrize("version", ["13.1", "13.2", "13.3"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name != "unchecked_flags"])
def test_an_export_is_written_back_byte_for_byte(name: str, version: str) -> None:
    exported = export(name, version)
    module = bytecode.read(exported)
    verify(module)
    assert bytecode.write(module, version, debug_info=True) == exported
    assert __file__.encode() in exported
    stripped = bytecode.strip_debug(exported)
    assert Path(__file__).name.encode() not in stripped
    assert bytecode.version_of(stripped) == bytecode.version_of(exported)
    assert unnamed(bytecode.read(stripped)) == unnamed(module)
    assert bytecode.write(text.parse(text.print_module(module), filename="x"), version) == stripped


def test_a_padding_value_without_effect_is_not_read_as_a_mask() -> None:
    module = bytecode.read(export("unchecked_flags", "13.3"))
    again = text.parse(text.print_module(module), filename="printed.mlir")
    verify(again)
    (load,) = (op for op in again.walk() if op.name == "cuda_tile.load_ptr_tko")
    assert load.mask is None and load.paddingValue is None
