"""The programs of the native toolchain, run as a user runs them: files, pipes, exit codes, nothing left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from toolchain.native.engine import Engine
from toolchain.native.tools import NativeToolchain

pytestmark = pytest.mark.needs("native")

MODULE = """\
func.func @f(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %y = arith.addi %x, %zero : i32
  return %y : i32
}
"""


def call(name: str, *arguments: str, folder: Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = NativeToolchain.find().prefix / "bin" / name
    return subprocess.run([program, *arguments], cwd=folder, input=stdin, capture_output=True, check=False, timeout=120)


def test_a_file_goes_in_and_out(tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/k.mlir").write_text(MODULE)
    done = call("mlir-opt", "--canonicalize", "in/k.mlir", "-o", str(tmp_path / "out.mlir"), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "arith.addi" not in (tmp_path / "out.mlir").read_text()
    assert (tmp_path / "out.mlir").stat().st_uid == os.getuid()


def test_standard_input_goes_in_and_standard_output_comes_out_whole(tmp_path: Path):
    many = "".join(MODULE.replace("@f", f"@f{number}") for number in range(20000)).encode()  # more than a pipe holds
    done = call("mlir-opt", "--canonicalize", folder=tmp_path, stdin=many)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"func.func @f") == 20000
    assert b"arith.addi" not in done.stdout


def test_one_program_feeds_another(tmp_path: Path):
    (tmp_path / "k.mlir").write_text(f"// CHECK-NOT: arith.addi\n// CHECK: return\n{MODULE}")
    lowered = call("mlir-opt", "--canonicalize", "k.mlir", folder=tmp_path).stdout
    assert call("FileCheck", "k.mlir", folder=tmp_path, stdin=lowered).returncode == 0
    wrong = call("FileCheck", "k.mlir", folder=tmp_path, stdin=MODULE.encode())
    assert wrong.returncode == 1
    assert b"CHECK-NOT: excluded string found in input" in wrong.stderr


def test_llc_writes_ptx(tmp_path: Path):
    source = b"define ptx_kernel void @k() { ret void }"
    done = call("llc", "-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_90", "-mattr=+ptx80", folder=tmp_path, stdin=source)
    assert b".target sm_90" in done.stdout


def test_a_tool_that_fails_says_why_and_leaves_no_container(tmp_path: Path):
    done = call("mlir-opt", folder=tmp_path, stdin=b"junk\n")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"custom op 'junk' is unknown" in done.stderr
    left = Engine.find()._client.containers.list(all=True, ignore_removed=True)
    assert not [row for row in left if row.attrs["Config"]["WorkingDir"] == str(tmp_path)]


def test_a_tool_that_reads_no_input_does_not_wait_for_its_end(tmp_path: Path):
    (tmp_path / "k.mlir").write_text(MODULE)
    read, write = os.pipe()  # which nobody closes before the tool has ended
    try:
        program = NativeToolchain.find().prefix / "bin/mlir-opt"
        done = subprocess.run(
            [program, "k.mlir"], cwd=tmp_path, stdin=read, capture_output=True, timeout=60, check=True
        )
        assert b"arith.addi" in done.stdout
    finally:
        os.close(read)
        os.close(write)
