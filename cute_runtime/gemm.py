"""Gemm: C = A B with a compiled kernel, on numpy and on device arrays."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np

from toolchain.contract.tma import TMADescriptor
from toolchain.errors import LaunchError, UsageError

from .buffer import DeviceBuffer
from .compiler import Compiler, kernel_names
from .kernel import Kernel

DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn), "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8), "i32": np.dtype(np.int32),
}  # fmt: skip
SPLITS = ("m", "n", "k")


@dataclass(frozen=True)
class Tile:
    """How a GEMM kernel was written. A block of `threads` threads computes a tile of m x n, in steps of k; the grid has
    cdiv(N, n) blocks in x and cdiv(M, m) in y. `swizzle_a`, `swizzle_b`: bytes, of the TMA descriptors."""

    m: int = 128
    n: int = 128
    k: int = 32
    threads: int = 128
    shared_mem: int = 0
    swizzle_a: int = 0
    swizzle_b: int = 0


class Gemm:
    """A is (M, K), B is (K, N), C is (M, N), row-major and without gaps. The kernel's parameters are A, B, C and M, N,
    K as 32-bit integers; with `use_tma` A and B are TMA descriptors of boxes m x k and k x n."""

    def __init__(
        self, M: int, N: int, K: int, dtype_a: str = "f16", dtype_b: str = "f16", dtype_c: str = "f32",
        arch: str = "sm_80", use_tma: bool = False, device_id: int = 0, devices: Sequence[int] = (),
        split: Literal["m", "n", "k"] = "m",
    ) -> None:  # fmt: skip
        """`devices`: the numbers of several GPUs, instead of `device_id`: each multiplies a part, all at the same time.
        `split`: which size the parts are of, rows ("m"), columns ("n") or terms ("k"). Results of parts of K are added
        up on the host, in f32 or i32 and in the order of the devices, and rounded once.

        Raises UsageError for a size, dtype or split that cannot be. Needs no GPU."""
        if min(M, N, K) < 1:
            raise UsageError(f"M={M}, N={N}, K={K}: sizes must be positive")
        for dtype in (dtype_a, dtype_b, dtype_c):
            if dtype not in DTYPES:
                raise UsageError(f"no dtype {dtype!r}", hint=f"one of {', '.join(DTYPES)}")
        self.M, self.N, self.K = M, N, K
        self.dtypes = (dtype_a, dtype_b, dtype_c)
        self.arch, self.use_tma, self.device_id = arch, use_tma, device_id
        if split not in SPLITS:
            raise UsageError(f"no split {split!r}", hint=f"one of {', '.join(SPLITS)}")
        if len(devices) > (M, N, K)[SPLITS.index(split)]:
            raise UsageError(f"{len(devices)} devices for {split.upper()}={(M, N, K)[SPLITS.index(split)]}")
        self.devices, self.split = tuple(devices), split
        self._parts: list[tuple[slice, Gemm]] = []
        self.tile = self.get_optimal_tile_size(M, N, K, dtype_a, arch)
        self._code: tuple[bytes, str] | None = None
        self._kernel: Kernel | None = None

    @staticmethod
    def get_optimal_tile_size(M: int, N: int, K: int, dtype: str = "f16", arch: str = "sm_80") -> Tile:
        """A tile to write a kernel for. M and N: at most 128, at least 16, halved until the result has a tile for each
        of 64 multiprocessors; K: 128 bytes, one row of a 128-byte swizzle. A rule of thumb: measure before relying on
        it."""
        m, n = 128, 128
        while m > 16 and (m >= 2 * M or -(-M // m) * -(-N // n) < 64):
            m //= 2
        while n > 16 and n >= 2 * N:
            n //= 2
        threads = 128 if arch.startswith(("sm_9", "sm_1")) or m * n <= 64 * 128 else 256
        return Tile(m, n, min(128 // DTYPES[dtype].itemsize, 1 << (K - 1).bit_length() if K > 1 else 1), threads)

    def compile(self, mlir: str, tile: Tile | None = None, compiler: Compiler | None = None) -> Gemm:
        """Compiles a kernel in MLIR text for `arch`; `tile`: the one that it was written for. Needs no GPU."""
        made = compiler or Compiler()
        names = kernel_names(made.compile_to_ptx(mlir, self.arch))
        if len(names) != 1:
            raise UsageError(f"the text has {len(names)} kernels: {', '.join(names)}", hint="give it one kernel")
        return self._with(made.compile_to_cubin(mlir, self.arch), names[0], tile)

    def load_compiled(self, path: str | Path, kernel: str, tile: Tile | None = None) -> Gemm:
        """Takes the kernel of that name from a cubin."""
        try:
            return self._with(Path(path).read_bytes(), kernel, tile)
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error

    def _with(self, cubin: bytes, name: str, tile: Tile | None) -> Gemm:
        self._code, self._kernel, self.tile = (cubin, name), None, tile or self.tile
        self._parts = []
        return self

    def __call__(self, a: Any, b: Any, c: Any = None) -> Any:
        """C = A B; returns `c`, which is made with numpy if it is not given.

        Raises LaunchError for an array of another shape or dtype, and on several devices for one that is not numpy's;
        UsageError if no kernel was compiled or loaded, and NoGPU.
        """
        if self._code is None:
            raise UsageError("this Gemm has no kernel", hint="compile(mlir) or load_compiled(path, kernel)")
        if c is None:
            c = np.zeros((self.M, self.N), DTYPES[self.dtypes[2]])
        shapes = ((self.M, self.K), (self.K, self.N), (self.M, self.N))
        for name, array, shape, dtype in zip("ABC", (a, b, c), shapes, self.dtypes, strict=True):
            _check(name, array, shape, dtype)
        if self.devices:
            self._on_several(a, b, c)
            return c
        kernel = self._kernel or Kernel(self.device_id).load_cubin(self._code[0]).set_kernel(self._code[1])
        self._kernel = kernel
        tile = self.tile
        if self.use_tma:
            a, b = (DeviceBuffer.from_numpy(x, self.device_id) if isinstance(x, np.ndarray) else x for x in (a, b))
        grid = (-(-self.N // tile.n), -(-self.M // tile.m))
        operands = (a, b)
        if self.use_tma:
            operands = (
                self._descriptor(a, 0, (self.M, self.K), (tile.m, tile.k), tile.swizzle_a),
                self._descriptor(b, 1, (self.K, self.N), (tile.k, tile.n), tile.swizzle_b),
            )
        kernel.launch((*operands, c, self.M, self.N, self.K), grid, (tile.threads,), tile.shared_mem)
        return c

    def _on_several(self, a: Any, b: Any, c: Any) -> None:
        """Each device's part in a thread of its own: a call copies in, launches, and copies out."""
        if any(not isinstance(array, np.ndarray) for array in (a, b, c)):
            raise LaunchError("a Gemm on several devices takes numpy arrays", hint="or a Gemm for each device")
        self._parts = self._parts or self._divided()

        def run(place: slice, part: Gemm) -> Any:
            rows, columns, terms = (place if self.split == name else slice(None) for name in SPLITS)
            return part(np.ascontiguousarray(a[rows, terms]), np.ascontiguousarray(b[terms, columns]))

        with ThreadPoolExecutor(len(self._parts)) as threads:
            made = list(threads.map(run, *zip(*self._parts, strict=True)))
        if self.split == "k":
            wide = np.int32 if c.dtype.kind == "i" else np.float32
            c[...] = np.sum([each.astype(wide) for each in made], axis=0, dtype=wide).astype(c.dtype)
            return
        for (place, _), each in zip(self._parts, made, strict=True):
            c[(place, slice(None)) if self.split == "m" else (slice(None), place)] = each

    def _divided(self) -> list[tuple[slice, Gemm]]:
        """A Gemm for each device, and where its part lies."""
        sizes = {"m": self.M, "n": self.N, "k": self.K}
        bounds = [sizes[self.split] * number // len(self.devices) for number in range(len(self.devices) + 1)]
        assert self._code is not None
        parts: list[tuple[slice, Gemm]] = []
        for device, first, last in zip(self.devices, bounds[:-1], bounds[1:], strict=True):
            m, n, k = {**sizes, self.split: last - first}.values()
            made = Gemm(m, n, k, *self.dtypes, self.arch, self.use_tma, device)
            parts.append((slice(first, last), made._with(*self._code, self.tile)))
        return parts

    def _descriptor(
        self, array: Any, operand: int, shape: tuple[int, int], box: tuple[int, int], swizzle: int
    ) -> TMADescriptor:
        """The descriptor of a matrix on the GPU."""
        dtype = self.dtypes[operand]
        rows, columns = shape
        pitch = columns * DTYPES[dtype].itemsize
        return TMADescriptor(dtype, _address(array), (columns, rows), (pitch,), box[::-1], (), swizzle, 128)


def _address(array: Any) -> int:
    if isinstance(array, DeviceBuffer):
        return array.pointer
    row: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    if row is None:
        raise LaunchError(
            f"a {type(array).__name__} has no address for a TMA descriptor",
            hint="pass a DeviceBuffer, or an array with __cuda_array_interface__",
        )
    return int(row["data"][0])


def _check(name: str, array: Any, shape: tuple[int, int], dtype: str) -> None:
    found = str(array.dtype).removeprefix("torch.")
    if tuple(array.shape) != shape or found != DTYPES[dtype].name:
        raise LaunchError(f"{name} is {found}{list(array.shape)}, but must be {DTYPES[dtype].name}{list(shape)}")
    row: dict[str, Any] | None = getattr(array, "__cuda_array_interface__", None)
    steps = None if row is None else row.get("strides")
    if steps is not None and tuple(steps) != (shape[1] * DTYPES[dtype].itemsize, DTYPES[dtype].itemsize):
        raise LaunchError(f"{name} has byte strides {list(steps)}: it must have no gaps", hint="copy it first")
