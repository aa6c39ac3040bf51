"""The tests of NVIDIA's dialect on our tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.suites.tile_ir import judge
from toolchain.cute.chunks import TestFile
from toolchain.errors import SourceError

SPLIT = "// RUN: cuda-tile-opt %s -verify-diagnostics -split-input-file\n"
FUNCTION = """\
cuda_tile.module @m {{
  testing$func @f(%a: !cuda_tile.tile<2x4xf32>, %b: tile<2x!cuda_tile.ptr<f32>>,
                  %c: tensor_view<?x4xf32, strides=[?,1]>,
                  %d: partition_view<tile=(4), tensor_view<16xi32, strides=[1]>>, %e: token,
                  %f: tile<8xi4>, %g: !cuda_tile.ptr<i1>, %h: tensor_view<f32>) -> tile<2x4xf32> {{
    %x = "some.op"(%a) : (tile<2x4xf32>) -> tile<4xi1>
    "use"(%x) : (tile<4xi1>) -> ()
    {body}
    return %0 : tile<2x4xf32>
  }}
}}
"""
RIGHT = "%0 = addf %a, %a : tile<2x4xf32>"
GENERIC = """\
"cuda_tile.module"() <{sym_name = "m"}> ({
  "cuda_tile.testing$func"() <{arg_attrs = [{}], function_type = (tile<2xf32>) -> (), sym_name = "f"}> ({
  ^bb0(%a: !cuda_tile.tile<2xf32>):
    %0 = "cuda_tile.negf"(%a) : (!cuda_tile.tile<2xf32>) -> !cuda_tile.tile<2xf32>
    "cuda_tile.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
LOOSE = "%0 = constant <i32: 1> : tile<i32>\n%1 = addi %0, %0 : tile<i32>\n"
WRONG = "%0 = addf %a, %x : tile<2x4xf32> // expected-error {{they differ}}"
OLD = "// RUN: not cuda-tile-translate -mlir-to-cudatilebc -bytecode-version=13.1 %s\n"
NEWER = "cuda_tile.module @m { entry @k(%p: tile<ptr<f8E8M0FNU>>) { return } }\n"


def judged(text: str, path: Path = Path("a.mlir")) -> None:
    file = TestFile(text)
    for chunk in file.chunks:
        judge(path, file, chunk)


HINT = """\
cuda_tile.module @m {
  // expected-warning @below{{unknown hint}}
  entry @k() optimization_hints=<sm_100={HINT=1}> { return } {cuda_tile.loop_split = 0}
}
"""


@pytest.mark.parametrize(
    "text", [FUNCTION.format(body=RIGHT), GENERIC, LOOSE, FUNCTION.format(body=WRONG), HINT],
    ids=["function", "generic", "loose", "wrong", "hint"],
)  # fmt: skip
def test_what_is_right_is_taken_and_what_is_wrong_refused(text: str) -> None:
    judged(SPLIT + text)


def test_a_file_of_bytecode_that_has_to_be_refused(tmp_path: Path) -> None:
    (tmp_path / "x.bc").write_bytes(b"nothing")
    judged("// RUN: not cuda-tile-translate -cudatilebc-to-mlir %S/x.bc\n", tmp_path / "a.mlir")


def test_a_version_that_lacks_something_refuses_it() -> None:
    judged(OLD + NEWER)
    with pytest.raises(AssertionError, match="taken, though it is wrong"):
        judged(OLD.replace("13.1", "13.5") + NEWER)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (FUNCTION.format(body=RIGHT + " // expected-error {{they differ}}"), "taken, though it is wrong: they differ"),
        (HINT.replace("HINT", "occupancy"), "taken, though it is wrong: unknown hint"),
        (LOOSE.replace("addi", "addx") + "return // expected-error {{no}}\n", "refused before line 4"),
    ],
)
def test_an_expected_error_has_to_be_found(text: str, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        judged(SPLIT + text)


def test_what_is_said_to_a_pass_of_theirs_is_left_out() -> None:
    judged(SPLIT + FUNCTION.format(body=f"{RIGHT} {{cuda_tile.loop_split = 0}}"))
    with pytest.raises(SourceError):
        judged(SPLIT + FUNCTION.format(body=f"{RIGHT} {{other = 0}}"))


def test_what_is_refused_without_a_reason_fails() -> None:
    with pytest.raises(SourceError, match=r"a\.mlir:3:6"):
        judged(SPLIT + LOOSE.replace("addi", "addx"))
    with pytest.raises(SourceError, match="does not return what"):
        judged(SPLIT + FUNCTION.format(body="%0 = negf %a : tile<2x4xf32>").replace("-> tile<2x4xf32> {", "{"))
