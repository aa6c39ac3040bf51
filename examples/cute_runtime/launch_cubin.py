"""Launch a kernel of a cubin on an array of CuPy, without a copy. compile_mlir.py makes the cubin.

python examples/cute_runtime/launch_cubin.py scale.cubin
"""

from __future__ import annotations

import sys

import cupy

from cute_runtime import Kernel


def main(cubin: str) -> None:
    x = cupy.arange(1000, dtype=cupy.float32)
    kernel = Kernel(0).load_cubin(cubin).set_kernel("scale")
    kernel.launch((x, x.size, 2.0), grid=(-(-x.size // 128),), block=(128,))
    print(x[:4])


if __name__ == "__main__":
    main(*sys.argv[1:])
