"""Hints to the compiler that differ by GPU: `ByTarget`. The kernel and its result stay the same.

    python examples/06_matmul_hints.py

A matrix product on Hopper is faster with eight warps for each block, on Blackwell two blocks may work as a pair. Such
choices are no part of the algorithm, so they stand beside it. docs/tuning.md finds them by measuring.
"""

from __future__ import annotations

import re

import cuda.tile as ct
import numpy as np

import tilestack as ts

M, N, K = 200, 160, 96


@ct.kernel(num_worker_warps=ct.ByTarget(sm_90=8, default=4), num_ctas=ct.ByTarget(sm_100=2, default=1))
def product(a, b, out, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.zeros((TM, TN), ct.float32)
    for k in range(ct.num_tiles(a, 1, (TM, TK))):
        left = ct.load(a, index=(i, k), shape=(TM, TK), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, index=(k, j), shape=(TK, TN), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, index=(i, j), tile=total)


def main() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((K, N)).astype(np.float16)
    out = np.zeros((M, N), np.float32)
    print(f"on {ts.device_name()}")
    kernel = ts.load(product)
    kernel[-(-M // 128), -(-N // 128)](a, b, out, TM=128, TN=128, TK=32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    print("largest difference from float64:", abs(out - exact).max())

    # The hints of every target are in the one bytecode; tileiras takes those of the target that it compiles for.
    (hints,) = re.findall(r"optimization_hints=<(.*)> \{", kernel.disassemble())
    print("hints in the bytecode:", hints)
    for target in ("sm_80", "sm_90", "sm_100"):
        used = kernel.inspect(target)
        units = " ".join(f"{name} x{count}" for name, count in used.tensor_core.items())
        print(f"{target:6} {used.registers:3} registers, {used.shared:6} bytes shared, {units}")


if __name__ == "__main__":
    main()
