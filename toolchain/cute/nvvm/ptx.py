"""From the base level to PTX, in this process: LLVM IR text through llvmlite's NVPTX back end."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import llvmlite
import llvmlite.binding as binding
from xdsl.dialects.builtin import ModuleOp

from ...errors import SourceError, ToolchainError, UsageError
from .llvm_ir import to_llvm_ir
from .parse import parse

# The PTX version for an architecture: the lowest that has all of its instructions. Without one LLVM writes the first
# that knows the architecture, which lacks instructions. Source: PTX ISA 9.0, "Release Notes".
PTX_VERSIONS = {"sm_80": 85, "sm_86": 85, "sm_89": 85, "sm_90": 85, "sm_90a": 85, "sm_100": 86, "sm_100a": 87,
                "sm_103a": 88, "sm_120": 87, "sm_120a": 87}  # fmt: skip
LEVELS = (0, 1, 2, 3)
_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.MULTILINE)


def llvm_version() -> str:
    """The version of LLVM in llvmlite, such as `22.1.0`."""
    return ".".join(map(str, binding.llvm_version_info))


@cache
def _machine(arch: str, level: int) -> Any:
    if arch not in PTX_VERSIONS:
        raise UsageError(f"no PTX version is known for {arch}", hint=f"one of {', '.join(PTX_VERSIONS)}")
    if level not in LEVELS:
        raise UsageError(f"no optimization level {level}", hint="0, 1, 2 or 3")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=arch, features=f"+ptx{PTX_VERSIONS[arch]}", opt=level)


def compile_to_ptx(source: str | ModuleOp, arch: str, *, level: int = 3, name: str = "<kernel>") -> str:
    """PTX of the kernels in MLIR text or in a module at the base level, for an architecture such as `sm_90a`.

    Raises UsageError for an unknown architecture, SourceError for text that does not parse, does not verify or has no
    kernel, and ToolchainError if LLVM refuses the IR.
    """
    _ = _machine(arch, level)  # an unknown architecture is said first
    module = parse(source, name) if isinstance(source, str) else source
    return llvm_to_ptx(to_llvm_ir(module), arch, level=level, name=name)


def llvm_to_ptx(text: str, arch: str, *, level: int = 3, name: str = "<kernel>") -> str:
    """PTX of the kernels in LLVM IR text. Raises as `compile_to_ptx`."""
    machine = _machine(arch, level)
    try:
        lowered = binding.parse_assembly(text)
        lowered.verify()
    except RuntimeError as error:
        raise ToolchainError(
            f"LLVM {llvm_version()} (llvmlite {llvmlite.__version__}) refuses {name}: {error}"
        ) from error
    options = binding.create_pipeline_tuning_options(speed_level=level)
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(lowered, builder)
    made = machine.emit_assembly(lowered)
    if _ENTRY.search(made) is None:
        raise SourceError(f"{name} has no kernel", hint="give a llvm.func the attribute nvvm.kernel")
    return made
