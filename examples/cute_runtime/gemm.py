"""Multiply numpy matrices on a GPU with a kernel in MLIR.

python examples/cute_runtime/gemm.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cute_runtime import Gemm, Tile, get_device_info

M, N, K = 100, 70, 50


def main() -> None:
    gemm = Gemm(M, N, K, "f32", "f32", "f32", arch=get_device_info(0).arch)
    gemm.compile(Path(__file__).with_name("gemm.mlir").read_text(), Tile(m=16, n=16, k=1, threads=256))
    rng = np.random.default_rng(0)
    a = rng.standard_normal((M, K), np.float32)
    b = rng.standard_normal((K, N), np.float32)
    c = gemm(a, b)
    print(f"largest difference from numpy: {np.abs(c - a @ b).max():.1e}")


if __name__ == "__main__":
    main()
