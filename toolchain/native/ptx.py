"""From MLIR's gpu, nvgpu and nvvm dialects to PTX with LLVM's own tools, and on to a cubin with the pinned ptxas.

Two pipelines, by what the chip needs: `sm_80` through MLIR's own (nvgpu's mma.sync and cp.async), `sm_90a` and newer
through NVVM alone, as nvgpu's warpgroup lowering makes ptxas serialize wgmma.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import ToolchainError
from ..pinned.tools import tool
from .tools import NativeTools

# The PTX version that first names a chip; the default one, 6.0, names none of these.
PTX_FEATURES = {"sm_80": "+ptx80", "sm_90a": "+ptx80", "sm_100a": "+ptx86"}


@dataclass(frozen=True)
class Lowering:
    """How a kernel in MLIR becomes PTX: the chip, and whether nvgpu ops are lowered first."""

    chip: str

    @property
    def features(self) -> str:
        if self.chip not in PTX_FEATURES:
            raise ToolchainError(f"no PTX version is known for {self.chip}", hint=f"one of {', '.join(PTX_FEATURES)}")
        return PTX_FEATURES[self.chip]

    def arguments(self) -> list[str]:
        """mlir-opt's."""
        if self.chip == "sm_80":
            options = (
                f"cubin-chip={self.chip} cubin-features={self.features} kernel-bare-ptr-calling-convention=1 "
                "host-bare-ptr-calling-convention=1 cubin-format=isa opt-level=3"
            )
            return [f"--gpu-lower-to-nvvm-pipeline={options}"]
        # arith and math come first: convert-gpu-to-nvvm would call libdevice for a maximum or an fma.
        pipeline = (
            "builtin.module(gpu.module(convert-scf-to-cf,convert-arith-to-llvm{index-bitwidth=32},convert-math-to-llvm,"
            "convert-gpu-to-nvvm{index-bitwidth=32},convert-nvvm-to-llvm),convert-cf-to-llvm,"
            "gpu.module(reconcile-unrealized-casts,canonicalize,cse),"
            f"nvvm-attach-target{{chip={self.chip} features={self.features} O=3}},gpu-module-to-binary{{format=isa}})"
        )
        return [f"--pass-pipeline={pipeline}"]


def to_ptx(tools: NativeTools, text: str, chip: str) -> str:
    """The PTX of the one gpu.module in `text`. Raises ToolFailed with mlir-opt's message.

    The binary is taken out of the gpu.binary op that mlir-opt prints; the rest of that op holds times.
    """
    arguments = [*Lowering(chip).arguments(), "kernel.mlir"]
    printed = tools.run("mlir-opt", arguments, files={"kernel.mlir": text}).stdout
    found = re.search(r'assembly = "((?:[^"\\]|\\.)*)"', printed)
    if not found:
        raise ToolchainError(f"mlir-opt wrote no PTX for {chip}:\n{printed[:2000]}", hint="has it one gpu.module?")
    return _unescape(found[1])


def _unescape(text: str) -> str:
    """An MLIR string literal's characters: backslash and two hex digits stand for a byte."""
    return re.sub(r"\\([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text.replace("\\\\", "\\5C")).rstrip(
        "\0"
    )


def llc(tools: NativeTools, text: str, chip: str) -> str:
    """The PTX of LLVM IR in text form. Raises ToolFailed."""
    arguments = ["-mtriple=nvptx64-nvidia-cuda", f"-mcpu={chip}", f"-mattr={Lowering(chip).features}", "-O3", "k.ll"]
    return tools.run("llc", [*arguments, "-o", "-"], files={"k.ll": text}).stdout


def to_cubin(ptx: str, chip: str) -> bytes:
    """PTX to a cubin with the toolchain's ptxas. Raises ToolFailed."""
    with tempfile.TemporaryDirectory(prefix="tilestack-") as temporary:
        source, cubin = Path(temporary, "kernel.ptx"), Path(temporary, "kernel.cubin")
        source.write_text(ptx)
        tool("ptxas").run([f"--gpu-name={chip}", "-o", str(cubin), str(source)])
        return cubin.read_bytes()
