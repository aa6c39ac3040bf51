"""What the examples share: a launch of a cuTile kernel on the GPU, or without one on the interpreter."""

from __future__ import annotations

import io
from typing import Any

import cuda.tile as ct
import numpy as np
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint, export_kernel

from toolchain.runtime import gpus
from toolchain.stages import assemble
from toolchain.targets import BYTECODE
from toolchain.tileir import interpreter


def where() -> str:
    """The name of the device that `launch` takes."""
    return gpus()[0].name if gpus() else "the interpreter, on the CPU"


def bytecode(kernel: Any, *args: Any, **constants: Any) -> bytes:
    """Tile IR bytecode of a kernel for arrays of these dtypes and ranks, without gaps between their elements."""
    convention = CallingConvention.cutile_python_v2()
    signature = KernelSignature([*map(_constraint, args), *constants.values()], convention, symbol="kernel")
    out = io.BytesIO()
    export_kernel(kernel, [signature], out, output_format="tileir_bytecode", bytecode_version=BYTECODE)
    return out.getvalue()


def launch(grid: tuple[int, ...], kernel: Any, *args: Any, on: str = "auto", **constants: Any) -> None:
    """Runs `kernel` over `grid` blocks. `args`: arrays of numpy or PyTorch and numbers; `constants`: the parameters
    that are compiled in, which are the kernel's last. `on`: "cpu" takes the interpreter even where there is a GPU.
    Raises SanitizerError on the interpreter."""
    arrays = [args[i] if _on_gpu(args[i]) or np.isscalar(args[i]) else np.asarray(args[i]) for i in range(len(args))]
    code = bytecode(kernel, *arrays, **constants)
    x, y, z = (*grid, 1, 1)[:3]
    if on == "cpu" or not gpus():
        flat = [part for arg in arrays for part in _flat(arg, lambda a: interpreter.Pointer(interpreter.Allocation(a)))]
        interpreter.run(code, "kernel", flat, (x, y, z))
        return
    from cute_runtime import Kernel  # imported here because it needs a driver

    flat = [part for arg in arrays for part in _flat(arg, lambda a: a)]
    Kernel().load_cubin(assemble(code, gpus()[0].target)).set_kernel("kernel").launch(flat, (x, y, z), (1, 1, 1))


def _on_gpu(arg: Any) -> bool:
    return hasattr(arg, "__cuda_array_interface__")  # PyTorch's tensors raise AttributeError for it on the CPU


def _strides(array: Any) -> tuple[int, ...]:
    """Counted in elements, as PyTorch does; numpy counts bytes."""
    if isinstance(array, np.ndarray):
        return tuple(stride // array.itemsize for stride in array.strides)
    return tuple(array.stride())


def _flat(arg: Any, pointer: Any) -> list[Any]:
    """An array as kernels take it: pointer, sizes, strides."""
    return [arg] if np.isscalar(arg) else [pointer(arg), *map(int, arg.shape), *_strides(arg)]


def _constraint(arg: Any) -> Any:
    if isinstance(arg, int | np.integer):
        return ScalarConstraint(ct.int32)
    if isinstance(arg, float):
        return ScalarConstraint(ct.float32)
    rank, name = len(arg.shape), str(arg.dtype).removeprefix("torch.")
    return ArrayConstraint(
        getattr(ct, name), rank, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[],
        may_alias_internally=False, stride_constant=[None] * (rank - 1) + [1],
    )  # fmt: skip
