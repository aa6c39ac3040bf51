"""MLIR text to PTX and to cubins, through llvmlite and through mlir-opt, with the pinned ptxas."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_runtime import Compiler, Gemm, compile_mlir
from tests.unit.toolchain.cute.nvvm.test_ptx import KERNEL
from toolchain.compiling.cubin import is_cubin
from toolchain.compiling.stages import compile_ptx
from toolchain.cute.compile import lower
from toolchain.errors import SourceError, ToolchainError, ToolFailed, UsageError
from toolchain.native.ptx import to_ptx
from toolchain.native.tools import NativeToolchain

WITH_CUTE = """gpu.module @m {
  llvm.func @k(%y: !llvm.ptr<1>, %m: i32) attributes {nvvm.kernel} {
    %i = nvvm.read.ptx.sreg.tid.x : i32
    %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,7)">
    %c = cute.make_coord(%i) : (i32) -> !cute.coord<"(?,3)">
    %o = cute.crd2idx(%c, %s) : (!cute.coord<"(?,3)">, !cute.shape<"(?,7)">) -> !cute.int_tuple<"?">
    %r = cute.get_scalars (%o) : !cute.int_tuple<"?">
    llvm.store %r, %y : i32, !llvm.ptr<1>
    llvm.return
  }
}"""
pytestmark = pytest.mark.needs("toolchain")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILESTACK_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_a_kernel_becomes_ptx_and_a_cubin(arch: str, tmp_path: Path) -> None:
    assert f".target {arch}" in Compiler().compile_to_ptx(KERNEL, arch)
    made = compile_mlir(KERNEL, arch, tmp_path / "scale.cubin")
    assert is_cubin(made.read_bytes())
    assert ".entry scale(" in Compiler().compile(KERNEL, arch, tmp_path / "scale.ptx").read_text()


def test_a_result_is_cached_by_text_architecture_and_level(own_cache: Path) -> None:
    def entries() -> int:
        return sum(path.is_file() for path in own_cache.rglob("*"))

    first = Compiler().compile_to_cubin(KERNEL, "sm_90a")
    count = entries()
    assert Compiler().compile_to_cubin(KERNEL, "sm_90a") == first and entries() == count
    assert Compiler().compile_to_cubin(KERNEL, "sm_90a", 0) != first
    assert entries() > count


def test_what_cannot_be_compiled(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        Compiler().compile_to_ptx("no module", "sm_90a")
    with pytest.raises(UsageError, match="sm_42"):
        Compiler().compile_to_ptx(KERNEL, "sm_42")
    with pytest.raises(UsageError, match="optimization level 4"):
        Compiler().compile_to_ptx(KERNEL, "sm_80", 4)
    with pytest.raises(UsageError, match=r"neither as \.ptx nor as \.cubin"):
        compile_mlir(KERNEL, "sm_80", tmp_path / "k.o")
    with pytest.raises(ToolchainError, match=r"mlir-opt: missing\n  next: name the folder"):
        Compiler(tmp_path).compile_to_ptx(KERNEL, "sm_80")
    with pytest.raises(UsageError, match="mlir-opt is used for"):
        Compiler(tmp_path).compile_to_ptx(KERNEL, "sm_120")


def test_the_tool_of_a_folder_is_run_and_its_error_shown(tmp_path: Path) -> None:
    tool = tmp_path / "mlir-opt"
    tool.write_text("#!/bin/sh\ncat kernel.mlir >/dev/null && printf '%s' 'assembly = \"ptx\\0A\"'\n")
    tool.chmod(0o755)
    assert Compiler(tmp_path).compile_to_ptx(KERNEL, "sm_80") == "ptx\n"
    tool.write_text("#!/bin/sh\necho it does not parse >&2; exit 1\n")
    with pytest.raises(ToolFailed, match="it does not parse"):
        Compiler(tmp_path).compile_to_ptx(KERNEL, "sm_80")


@pytest.mark.needs("native")
@pytest.mark.parametrize("code", [KERNEL, WITH_CUTE], ids=["base", "cute"])
def test_mlir_opt_takes_the_same_text(code: str) -> None:
    """The other way's tool, where `nox -s build_toolchain -- --native` put it: perhaps in a container."""
    with NativeToolchain.find().open() as tools:
        made = to_ptx(tools, str(lower(code)), "sm_90a")
    assert is_cubin(compile_ptx(made.encode(), "sm_90a"))


def test_a_gemm_takes_a_text_with_one_kernel() -> None:
    assert Gemm(1, 1, 1, arch="sm_90a").compile(KERNEL)
    two = KERNEL.replace(
        "gpu.module @kernels {", "gpu.module @kernels { llvm.func @k() attributes {nvvm.kernel} { llvm.return }"
    )
    with pytest.raises(UsageError, match="the text has 2 kernels: k, scale"):
        Gemm(1, 1, 1).compile(two)


def test_text_with_operations_of_cute_is_lowered_first() -> None:
    assert ".visible .entry k(" in Compiler().compile_to_ptx(WITH_CUTE, "sm_80")
