"""Bytecode 13.5 and the tools: what cuTile Python exports is written back, what we write is read and compiled."""

# ruff: noqa: N803 (constants of a kernel are written in capitals)

from __future__ import annotations

import io
from itertools import product
from pathlib import Path
from typing import Any

import cuda.tile as ct
import pytest
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

from toolchain.errors import ToolFailed
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import verify
from toolchain.tileir.dialect.attrs import MultimemReduction
from toolchain.tileir.dialect.verify import errors_of

OPERATIONS = Path(__file__).parents[4] / "unit/toolchain/tileir/bytecode/operations_13_5.mlir"


@ct.kernel(num_worker_warps=16, occupancy=2)
def scales(x: Any, y: Any, BN: ct.Constant[int]):
    part = ct.load(x, (ct.bid(0),), (BN,))
    ct.store(y, (ct.bid(0),), part * 2.0)


@ct.kernel
def sums(x: Any, y: Any, BN: ct.Constant[int]):
    part = ct.load(x, (ct.bid(0),), (BN,), check_bounds=False)
    ct.atomic_add(y, ct.arange(BN, dtype=ct.int32), part)


@pytest.fixture(autouse=True)
def development(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuTile writes 13.5 only where features that are still in development are on."""
    monkeypatch.setattr("cuda.tile._compile.dev_features_enabled", lambda: True)


def export(kernel: Any, version: str) -> bytes:
    array = ArrayConstraint(
        ct.float32, 1, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[], may_alias_internally=False,
        stride_constant=[1], base_addr_divisible_by=16,
    )  # fmt: skip
    signature = KernelSignature([array, array, 128], CallingConvention.cutile_python_v2(), symbol="k")
    file = io.BytesIO()
    export_kernel(kernel, [signature], file, output_format="tileir_bytecode", bytecode_version=version)
    return file.getvalue()


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("kernel", [scales, sums], ids=["scales", "sums"])
def test_an_export_is_written_back_and_compiled_alike(kernel: Any, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    exported = export(kernel, "13.5")
    module = bytecode.read(exported)
    verify(module)
    assert bytecode.version_of(exported) == (13, 5)
    assert bytecode.write(module, "13.5", debug_info=True) == exported
    code = bytecode.strip_debug(exported)
    assert bytecode.write(text.parse(text.print_module(module), filename="x"), "13.5") == code
    cubins: list[bytes] = []
    for name, data in (("theirs", exported), ("ours", code)):
        (tmp_path / name).write_bytes(data)
        tool("tileiras").run(["--gpu-name=sm_90", "-o", str(tmp_path / "k.cubin"), str(tmp_path / name)])
        cubins.append((tmp_path / "k.cubin").read_bytes())
    assert cubins[0] == cubins[1]


def test_a_version_up_and_down_is_what_cutile_writes() -> None:
    old, new = (bytecode.strip_debug(export(sums, version)) for version in ("13.4", "13.5"))
    assert old != new
    assert bytecode.write(bytecode.read(old), "13.5") == new
    assert bytecode.write(bytecode.read(new), "13.4") == old


@pytest.mark.needs("toolchain")
def test_the_tools_read_every_operation_as_we_write_it(tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    module = text.parse(OPERATIONS.read_text(), filename=OPERATIONS.name)
    code = bytecode.write(module, "13.5")
    file = tmp_path / "operations.tilebc"
    file.write_bytes(code)
    again = text.parse(tool("tileirdisasm").run([str(file)]).stdout, filename="disassembled.mlir")
    assert bytecode.write(again, "13.5") == code
    tool("tileiras").run(["--gpu-name=sm_100", "-o", str(tmp_path / "k.cubin"), str(file)])


def access(op: str, order: str, element: str, reduction: str, strides: str = "8,1", tile: str = "2x4") -> str:
    """A kernel with one multimem operation."""
    array = f"tensor_view<4x8x{element}, strides=[{strides}], #cuda_tile.ptr_attr<multicast>>"
    view = f"partition_view<tile=({tile}), {array}>"
    value = f"tile<{tile}x{element}>"
    pointer = f"tile<ptr<{element}, <multicast>>>"
    kind = "" if op == "store" else f" attributes {{reduction = #cuda_tile.multimem_reduction_kind<{reduction}>}}"
    loads = op == "load_reduce"
    head = f"multimem_{op}_view_tko {order} %w{'' if loads else ', %y'}[%i, %i]{kind}"
    typed = f"{view}, tile<i32> -> {value}, token" if loads else f"{view}, {value}, tile<i32> -> token"
    return f"""entry @k(%p: {pointer}, %i: tile<i32>, %s: tile<{element}>) {{
  %v = make_tensor_view %p, shape = [4, 8], strides = [{strides}] : {pointer} -> {array}
  %w = make_partition_view %v : {view}
  %one = reshape %s : tile<{element}> -> tile<1x1x{element}>
  %y = broadcast %one : tile<1x1x{element}> -> {value}
  {"%z, %t" if loads else "%t"} = {head} : {typed}
  return
}}
"""


ORDERS = ("weak", "relaxed device", "acquire sys", "release tl_blk", "acq_rel device")
ELEMENTS = ("i32", "i64", "f16", "bf16", "f32")
CASES = [
    *((op, o, "f32", "add") for op, o in product(("load_reduce", "store"), ORDERS)),
    *(("reduce", o, "f32", "add") for o in ORDERS[1:]),
    *((op, "relaxed sys", e, str(k)) for op, e, k in product(("load_reduce", "reduce"), ELEMENTS, MultimemReduction)),
    *((op, "relaxed sys", e, "add") for op, e in product(("load_reduce", "store"), ("i8", "f64", "tf32", "f8E5M2"))),
    *(("store", "relaxed sys", "f16", "add", *more) for more in (("1,4", "2x4"), ("16,2", "2x4"), ("8,1", "1x1"))),
]


@pytest.mark.needs("toolchain")
def test_verifier_and_disassembler_refuse_the_same(tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    file = tmp_path / "k.tilebc"
    refused = 0
    for case in CASES:
        module = text.parse(access(*case), filename="k.mlir")
        file.write_bytes(bytecode.write(module, "13.5"))
        errors = errors_of(module)
        refused += bool(errors)
        if errors:
            with pytest.raises(ToolFailed, match="multimem_"):
                tool("tileirdisasm").run([str(file)])
        else:
            tool("tileirdisasm").run([str(file)])
    assert 0 < refused < len(CASES)
