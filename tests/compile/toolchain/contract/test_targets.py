"""targets.toml says what the pinned tileiras says and does."""

from __future__ import annotations

import functools
import io
import re
from pathlib import Path

import cuda.tile as ct
import pytest
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

from toolchain.contract.targets import BYTECODE, targets
from toolchain.errors import ToolFailed
from toolchain.pinned.tools import tool

pytestmark = pytest.mark.needs("toolchain")


@ct.kernel
def product(a, b, c):
    """c = a @ b for one tile."""
    accumulator = ct.zeros((16, 16), ct.float32)
    left = ct.load(a, index=(0, 0), shape=(16, 32))
    right = ct.load(b, index=(0, 0), shape=(32, 16))
    ct.store(c, index=(0, 0), tile=ct.mma(left, right, accumulator))


@functools.cache
def bytecode(dtype: str) -> bytes:
    """`product` over inputs of `dtype`, as Tile IR bytecode."""

    def array(name: str) -> ArrayConstraint:
        return ArrayConstraint(
            getattr(ct, name), 2, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[],
            may_alias_internally=False, stride_constant=[None, 1], base_addr_divisible_by=16,
        )  # fmt: skip

    convention = CallingConvention.cutile_python_v2()
    signature = KernelSignature([array(dtype), array(dtype), array("float32")], convention, symbol="product")
    file = io.BytesIO()
    export_kernel(product, [signature], file, output_format="tileir_bytecode", bytecode_version=BYTECODE)
    return file.getvalue()


def compile_for(target: str, dtype: str, folder: Path) -> Path:
    (folder / "in.tilebc").write_bytes(bytecode(dtype))
    tool("tileiras").run(["--gpu-name", target, "in.tilebc", "-o", "out.cubin"], cwd=folder)
    return folder / "out.cubin"


def test_the_targets_are_those_of_tileiras():
    assert re.findall(r"=(sm_\w+)", tool("tileiras").run(["--help"]).stdout) == list(targets())


def test_the_bytecode_versions_are_those_of_tileiras():
    listed = re.findall(r"\d+\.\d+", tool("tileiras").run(["--list-versions"]).stdout)
    assert {BYTECODE, *(target.min_bytecode for target in targets().values())} <= set(listed)


@pytest.mark.parametrize("target", targets())
def test_exact_targets_give_architecture_specific_cubins(target: str, tmp_path: Path):
    cubin = compile_for(target, "bfloat16", tmp_path)
    elf = tool("cuobjdump").run(["--dump-elf", str(cubin)]).stdout
    assert re.findall(r"\bsm=(\w+)", elf) == [target[3:] + "a" * targets()[target].exact]


@pytest.mark.parametrize("target", targets())
def test_fp8_compiles_where_the_target_has_it(target: str, tmp_path: Path):
    if "fp8" in targets()[target].features:
        assert compile_for(target, "float8_e4m3fn", tmp_path).stat().st_size > 0
    else:
        with pytest.raises(ToolFailed):
            compile_for(target, "float8_e4m3fn", tmp_path)
