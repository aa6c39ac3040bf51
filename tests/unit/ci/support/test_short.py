"""Errors in a few words."""

from __future__ import annotations

from ci.support.short import LONGEST, short
from toolchain.errors import BytecodeError, ToolFailed


def failed(stderr: str) -> ToolFailed:
    return ToolFailed(["/opt/tileiras", "x"], 1, stderr, version="tileiras 13.2.51")


def test_the_line_that_says_error_is_taken_without_folders() -> None:
    said = "note: here\n/tmp/some/where/kernel.tilebc: error: bad /opt/a/b.so\nmore"
    assert short(failed(said)) == "kernel.tilebc: error: bad b.so"


def test_without_such_a_line_the_first_one_is_taken_and_cut() -> None:
    assert short(failed("\n first \nsecond")) == "first"
    assert short(failed("")) == "exit code of ToolFailed"
    assert len(short(failed("x" * 500))) == LONGEST


def test_a_known_reason_comes_first() -> None:
    assert short(failed("error: 5").because("these two do not fit", "next")) == "these two do not fit"
    assert short(BytecodeError("cannot be written\nmore")) == "cannot be written"


def test_a_position_in_a_file_goes() -> None:
    error = BytecodeError("/a/b/kernels_mlir/gelu.mlir:23:11: cuda_tile.tanh: bytecode 13.1 has no rounding_mode")
    assert short(error) == "cuda_tile.tanh: bytecode 13.1 has no rounding_mode"
