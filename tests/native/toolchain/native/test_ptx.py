"""From gpu, nvgpu and nvvm modules to PTX with LLVM's own tools, and to cubins that ptxas makes of it."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest

from kernels_cute.attention import attention
from kernels_cute.products import gemm_sm100, linear, linear_sm90
from toolchain.compiling.cubin import is_cubin
from toolchain.cute.compile import lower_module
from toolchain.cute.dsl import Kernel
from toolchain.errors import ToolFailed
from toolchain.native import ptx
from toolchain.native.tools import NativeToolchain, NativeTools

pytestmark = [pytest.mark.needs("toolchain"), pytest.mark.needs("native")]

CHIPS = list(ptx.PTX_FEATURES)


def module(body: str) -> str:
    return f"module attributes {{gpu.container_module}} {{ gpu.module @kernels {{ {body} }} }}"


GPU = module("""
  gpu.func @saxpy(%a: f32, %x: memref<1024xf32>, %y: memref<1024xf32>, %n: index) kernel {
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %threads = gpu.block_dim x
    %first = arith.muli %block, %threads : index
    %i = arith.addi %first, %thread : index
    %inside = arith.cmpi slt, %i, %n : index
    scf.if %inside {
      %xv = memref.load %x[%i] : memref<1024xf32>
      %yv = memref.load %y[%i] : memref<1024xf32>
      %product = arith.mulf %a, %xv : f32
      %sum = arith.addf %product, %yv : f32
      memref.store %sum, %y[%i] : memref<1024xf32>
    }
    gpu.return
  }""")

NVGPU = module("""
  gpu.func @mma(%a: vector<4x2xf16>, %b: vector<2x2xf16>, %c: vector<2x2xf16>, %out: memref<1xf16>) kernel {
    %d = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]}
      : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
    %zero = arith.constant 0 : index
    %first = vector.extract %d[0, 0] : f16 from vector<2x2xf16>
    memref.store %first, %out[%zero] : memref<1xf16>
    gpu.return
  }""")

CLUSTER = module("""
  llvm.func @cluster(%out: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %id = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
    llvm.store %id, %out : i32, !llvm.ptr<1>
    llvm.return
  }""")

WGMMA = module("""
  llvm.func @wgmma() attributes {gpu.kernel, nvvm.kernel} {
    nvvm.wgmma.fence.aligned
    nvvm.wgmma.commit.group.sync.aligned
    nvvm.wgmma.wait.group.sync.aligned 0
    llvm.return
  }""")

LLVM_IR = """
define ptx_kernel void @scale(ptr addrspace(1) %x, float %a) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %x, i32 %thread
  %v = load float, ptr addrspace(1) %p
  %s = fmul float %v, %a
  store float %s, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""


@pytest.fixture(scope="module")
def tools() -> Generator[NativeTools]:
    with NativeToolchain.find().open() as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "chip", "instruction"),
    [
        *((GPU, chip, ".entry saxpy") for chip in CHIPS),
        (NVGPU, "sm_80", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        (CLUSTER, "sm_90a", "barrier.cluster.arrive"),
        (CLUSTER, "sm_100a", "barrier.cluster.arrive"),
        (WGMMA, "sm_90a", "wgmma.commit_group.sync.aligned"),
    ],
    ids=[*(f"gpu-{chip}" for chip in CHIPS), "nvgpu-sm_80", "nvvm-sm_90a", "nvvm-sm_100a", "wgmma-sm_90a"],
)
def test_a_module_becomes_ptx_and_a_cubin(tools: NativeTools, text: str, chip: str, instruction: str):
    made = ptx.to_ptx(tools, text, chip)
    assert f".target {chip}" in made
    assert instruction in made
    assert is_cubin(ptx.to_cubin(made, chip))


@pytest.mark.parametrize("chip", CHIPS)
def test_llc_compiles_llvm_ir_to_what_ptxas_takes(tools: NativeTools, chip: str):
    made = ptx.llc(tools, LLVM_IR, chip)
    assert f".target {chip}" in made
    assert "mul" in made
    assert is_cubin(ptx.to_cubin(made, chip))


@pytest.mark.parametrize("chip", CHIPS)
def test_the_out_of_tree_tool_agrees_with_ptxas(tools: NativeTools, chip: str):
    text = """llvm.func @noop(%out: !llvm.ptr<1>) attributes {nvvm.kernel} {
      %thread = nvvm.read.ptx.sreg.tid.x : i32
      llvm.store %thread, %out : i32, !llvm.ptr<1>
      llvm.return
    }"""
    arguments = ["noop.mlir", chip, ptx.PTX_FEATURES[chip]]
    made = tools.run("mlir-to-ptx", arguments, files={"noop.mlir": text}).stdout
    assert ".entry noop" in made
    assert is_cubin(ptx.to_cubin(made, chip))


# Both ways must have these instructions. mlir-opt may repeat one in an unrolled loop; neither way may drop one.
COMPARED = (
    "mma.sync", "wgmma.mma_async", "tcgen05.mma", "ldmatrix", "stmatrix", "cp.async.cg", "cp.async.bulk.tensor",
    "setmaxnreg", "mbarrier.try_wait", "bar.sync", "shfl.sync", "ex2.approx", "griddepcontrol.wait", "ld.global",
    "st.global",
)  # fmt: skip


@pytest.mark.parametrize(
    ("make", "chip"),
    [
        pytest.param(linear.linear, "sm_80", id="linear"),
        pytest.param(linear_sm90.linear, "sm_90a", id="linear_sm90"),
        pytest.param(attention.attention, "sm_90a", id="attention"),
        pytest.param(gemm_sm100.gemm, "sm_100a", id="gemm_sm100"),
    ],
)
def test_a_kernel_in_cute_has_the_same_instructions_in_both_ways(
    tools: NativeTools, make: Callable[[], Kernel], chip: str
):
    """Lowered by mlir-opt and by llvmlite in the process, from one module at the base level."""
    kernel = make()
    theirs = ptx.to_ptx(tools, str(lower_module(kernel.module.clone(), chip)), chip)
    ours = kernel.ptx(chip)
    counts = {name: (ours.count(name), theirs.count(name)) for name in COMPARED if name in ours or name in theirs}
    assert len(counts) >= 4
    assert {name: pair for name, pair in counts.items() if not 1 <= pair[0] <= pair[1]} == {}
    assert is_cubin(ptx.to_cubin(theirs, chip))


def test_an_instruction_that_the_chip_has_not_is_an_error_of_a_tool(tools: NativeTools):
    with pytest.raises(ToolFailed, match=r"wgmma|sm_80|Cannot select|not supported"):
        ptx.to_cubin(ptx.to_ptx(tools, WGMMA, "sm_80"), "sm_80")


def test_a_module_that_does_not_parse_names_its_line(tools: NativeTools):
    with pytest.raises(ToolFailed, match=r"kernel\.mlir:2:\d+: error"):
        ptx.to_ptx(tools, "module {\n  gpu.nonsense\n}", "sm_80")
