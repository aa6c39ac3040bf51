"""`tilestack cute-opt`: the command; tests/unit/toolchain/cute/ has the dialect and the passes."""

from __future__ import annotations

from pathlib import Path

from toolchain.knobs import ROOT

from ..conftest import Run

TEXT = """func.func @f() -> !cute.shape<"(8,4)"> {
  %a = cute.static : !cute.layout<(8,4),(4,1)>
  %s = cute.get_shape(%a) : !cute.layout<"(8,4):(4,1)"> -> !cute.shape<"(8,4)">
  func.return %s : !cute.shape<"(8,4)">
}
"""


def test_a_file_is_verified_passes_run_and_it_is_printed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(TEXT)
    plain = run("cute-opt", file)
    assert plain.code == 0 and '!cute.layout<"(8,4):(4,1)">' in plain.out
    folded = run("cute-opt", file, "--pass-pipeline", "cute-fold-static", "--print-ir-after-all")
    assert folded.out.startswith("builtin.module {\n  func.func @f()")
    assert "get_shape" not in folded.out and '%s = cute.static : !cute.shape<"(8,4)">' in folded.out
    assert "// after cute-fold-static" in folded.err


def test_all_passes_run_one_after_the_other(run: Run) -> None:
    file = ROOT / "examples/cute/warpgroup_mma.mlir"
    names = ["cute-canonicalize", "cute-fold-static", "cute-layout-analysis", "cute-desugar", "cute-expand-atoms",
             "cute-lower", "cute-to-standard", "cute-nvgpu-to-nvvm"]  # fmt: skip
    made = run("cute-opt", file, "--pass-pipeline", ",".join(names), "--print-ir-after-all")
    assert made.code == 0
    assert [line.split()[-1] for line in made.err.splitlines() if line.startswith("// after")] == names
    assert "cute" not in made.out and "wgmma.mma_async" in made.out
    old = run("cute-opt", file, "--pass-pipeline", "cute-nvgpu-to-nvvm", "--emit", "ptx", "--arch", "sm_80")
    assert f"{file}:45:5: cute-nvgpu-to-nvvm: cute_nvgpu.arch.fence.proxy_async: sm_80 has no such" in old.err


def test_bad_input_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(TEXT.replace('(8,4)"> {', '(8,5)"> {'))
    wrong = run("cute-opt", file)
    assert wrong.code == 3 and str(file) in wrong.err
    assert "no pass 'x'" in run("cute-opt", file, "--pass-pipeline", "x").err
    assert run("cute-opt", tmp_path / "none.mlir").code == 2
    file.write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text: byte 0" in run("cute-opt", file).err


def test_a_file_without_an_operation_has_a_place(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    for text in ("", "}\n"):
        file.write_text(text)
        done = run("cute-opt", file)
        assert done.code == 3 and done.err.startswith(f"error: {file}:1:1: an operation is expected here")


def test_ptx_of_a_kernel(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    file.write_text("gpu.module @m { llvm.func @k() attributes {nvvm.kernel} { llvm.return } }")
    assert ".target sm_80" in run("cute-opt", file, "--emit", "ptx", "--arch", "sm_80").out
    assert "define ptx_kernel void @k()" in run("cute-opt", file, "--emit", "llvm").out
    assert "no PTX version is known for sm_1" in run("cute-opt", file, "--emit", "ptx", "--arch", "sm_1").err


PARTS = """// RUN: nothing
func.func @f(%s: !cute.shape<"(?,4)">) -> !cute.int_tuple<"?"> {
  %r = cute.size (%s) : (!cute.shape<"(?,4)">) -> !cute.int_tuple<"?">
  return %r : !cute.int_tuple<"?">
}
// -----
// expected-error @below {{a size is less than 1}}
func.func private @g(!cute.layout<"0:1">)
"""


def test_parts_are_taken_by_themselves_and_their_errors_are_compared(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(PARTS)
    flags = ("-split-input-file", "-verify-diagnostics")
    assert run("cute-opt", file, *flags).code == 0
    assert run("cute-opt", file, "-split-input-file").code == 3
    file.write_text(PARTS.replace("less than 1", "less than 2"))
    wrong = run("cute-opt", file, *flags)
    assert wrong.code == 3
    assert f"{file}:8: expected error 'a size is less than 2' was not produced" in wrong.err
    assert f"unexpected error: {file}:8:" in wrong.err
    file.write_text(PARTS.replace("0:1", "2:1"))
    assert "was not produced" in run("cute-opt", file, *flags).err


def test_passes_are_named_as_in_mlir_s_tools(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "f.mlir"
    file.write_text(PARTS.partition("// -----")[0] * 2)
    twice = run("cute-opt", file)
    assert twice.code == 3  # two functions of one name
    file.write_text("// -----\n".join([PARTS.partition("// -----")[0]] * 2))
    made = run("cute-opt", file, "-split-input-file", "-cute-expand-ops", "--cute-to-base", "-canonicalize", "-cse")
    assert made.code == 0
    assert made.out.count("func.func @f(%s: i32) -> i32") == 2
    assert made.out.count("// -----") == 1
    generic = run("cute-opt", file, "-split-input-file", "-mlir-print-op-generic")
    assert '"cute.size"(%s)' in generic.out
