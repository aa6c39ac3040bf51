"""The steps to PTX that need no LLVM: options, and taking the PTX out of mlir-opt's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from toolchain.errors import ToolchainError
from toolchain.native.ptx import PTX_FEATURES, Lowering, _unescape, llc, to_ptx
from toolchain.native.tools import Output


class Tools:
    """Stands in for native tools: prints `said`, and writes down what was asked."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.asked: tuple[str, list[str], Mapping[str, str]] = ("", [], {})

    def run(self, name: str, arguments: Sequence[str], *, files: Mapping[str, str]) -> Output:
        self.asked = name, list(arguments), files
        return Output(self.said, {})


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r"//\0A.version 8.0\09x\0a\00", "//\n.version 8.0\tx\n"),
        (r"\22a\22", '"a"'),
        (r"a\\0Ab", r"a\0Ab"),  # a backslash, and 0A
        (r"\\\\0A\0A", "\\\\0A\n"),
        (r"\5C0A", r"\0A"),
        ("no escape: 0A", "no escape: 0A"),
        ("", ""),
    ],
)
def test_a_string_of_mlir_is_unescaped(literal: str, text: str):
    assert _unescape(literal) == text


PRINTED = r"""
gpu.binary @kernels [#gpu.object<#nvvm.target<chip = "sm_90a">, properties = {LLVMIRToISATimeInMs = 7 : i64},
  assembly = "// a \22quote\22 and a \\ backslash\0A.target sm_90a\0A\00">]
func.func @f() { "op"() {note = "not this"} : () -> () }
"""


def test_the_ptx_is_taken_out_of_the_binary():
    tools: Any = Tools(PRINTED)
    assert to_ptx(tools, "a module", "sm_90a") == '// a "quote" and a \\ backslash\n.target sm_90a\n'
    name, arguments, files = tools.asked
    assert (name, arguments[-1], files) == ("mlir-opt", "kernel.mlir", {"kernel.mlir": "a module"})


def test_no_ptx_is_an_error_that_shows_what_there_was():
    tools: Any = Tools("module {\n}\n")
    with pytest.raises(ToolchainError, match=r"wrote no PTX for sm_80:\nmodule(.|\n)*next: has it one gpu\.module"):
        to_ptx(tools, "", "sm_80")


def test_sm_80_goes_through_mlirs_own_pipeline():
    (option,) = Lowering("sm_80").arguments()
    name, _, options = option.partition("=")
    assert name == "--gpu-lower-to-nvvm-pipeline"
    assert dict(part.split("=") for part in options.split()) == {
        "cubin-chip": "sm_80",
        "cubin-features": "+ptx80",
        "cubin-format": "isa",
        "kernel-bare-ptr-calling-convention": "1",
        "host-bare-ptr-calling-convention": "1",
        "opt-level": "3",
    }


@pytest.mark.parametrize("chip", sorted(PTX_FEATURES.keys() - {"sm_80"}))
def test_newer_chips_go_through_nvvm_alone(chip: str):
    (option,) = Lowering(chip).arguments()
    assert option.startswith("--pass-pipeline=builtin.module(")
    assert f"nvvm-attach-target{{chip={chip} features={PTX_FEATURES[chip]} O=3}}" in option
    assert option.endswith(",gpu-module-to-binary{format=isa})")
    assert "nvgpu" not in option  # ptxas would serialize its wgmma
    assert all(option.count(start) == option.count(end) for start, end in ("()", "{}"))


def test_llc_is_told_the_chip():
    tools: Any = Tools(".target sm_100a")
    assert llc(tools, "define void @f()", "sm_100a") == ".target sm_100a"
    name, arguments, files = tools.asked
    assert name == "llc"
    assert {"-mtriple=nvptx64-nvidia-cuda", "-mcpu=sm_100a", "-mattr=+ptx86", "-O3"} <= set(arguments)
    assert set(files) <= set(arguments)
    assert arguments[-2:] == ["-o", "-"]


@pytest.mark.parametrize("chip", ["sm_70", "sm_90", "80", ""])
def test_an_unknown_chip_is_refused(chip: str):
    tools: Any = Tools(PRINTED)
    for lower in (to_ptx, llc):
        with pytest.raises(ToolchainError, match=f"no PTX version is known for {chip}\n  next: one of sm_80, sm_90a"):
            lower(tools, "", chip)
