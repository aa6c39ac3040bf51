"""Run a kernel of the base level on the CPU, thread after thread: enough for kernels whose threads do not talk."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as binding

from toolchain.cute.nvvm import parse, to_llvm_ir

REGISTERS = [f"{kind}.{axis}" for kind in ("tid", "ctaid") for axis in "xyz"]
_TYPES = {"ptr": ctypes.c_void_p, "i32": ctypes.c_int32, "float": ctypes.c_float}


class HostKernel:
    """The one kernel of MLIR text, compiled for the CPU; the special registers are variables."""

    def __init__(self, mlir: str) -> None:
        text = to_llvm_ir(parse(mlir, "kernel")).replace("ptx_kernel ", "").replace(" addrspace(1)", "")
        text = re.sub(r"^(target triple|declare).*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"call i32 @llvm\.nvvm\.read\.ptx\.sreg\.(\w+\.[xyz])\(\)", r"load i32, ptr @\1", text)
        name, parameters = re.findall(r"define void @(\w+)\((.*?)\)", text)[0]
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine()
        module = binding.parse_assembly("\n".join(f"@{name} = global i32 0" for name in REGISTERS) + text)
        self._engine = binding.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        self._types = [_TYPES[parameter.split()[0]] for parameter in parameters.split(", ")]
        self._function = ctypes.CFUNCTYPE(None, *self._types)(self._engine.get_function_address(name))
        places = map(self._engine.get_global_value_address, REGISTERS)
        self._registers = [ctypes.c_int32.from_address(place) for place in places]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each parameter."""
        return tuple(map(ctypes.sizeof, self._types))

    def __call__(self, grid: Sequence[int], block: Sequence[int], parameters: Sequence[bytes]) -> None:
        values: list[Any] = [
            kind.from_buffer_copy(data).value for kind, data in zip(self._types, parameters, strict=True)
        ]
        for place in itertools.product(*map(range, (*block, *grid))):
            for register, number in zip(self._registers, place, strict=True):
                register.value = number
            self._function(*values)
