"""One product on two devices: rows, columns or terms are split, and what travels does so while the next tile is
multiplied. With fewer than two GPUs the ranks run on the CPU, and the interpreter checks how they share memory.

    python examples/13_several_devices.py
"""

from __future__ import annotations

import numpy as np

import tilestack as ts

M, K, N = 40, 48, 56
TRAVELS = {
    "m": "nothing: a rank has some rows of x and all of w",
    "n": "nothing: a rank has all of x and some columns of w",
    "k": "parts of the result: a rank has some columns of x and those rows of w",
    "mn": "rows of x: a rank has some of them, and some columns of w",
}


def product_of(w: np.ndarray, split: str) -> ts.distributed.Product:
    try:
        return ts.distributed.Product(w, split=split, devices=2)
    except ts.NoGPU:  # one GPU alone
        return ts.distributed.Product(w, split=split, devices=["cpu", "cpu"])


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((M, K), np.float32)
    w = rng.standard_normal((K, N), np.float32)
    for split, travels in TRAVELS.items():
        with product_of(w, split) as product:
            difference = np.abs(product(x) - x @ w).max()
            print(f"{split}, on {product.peers.name}")
            print(f"  what travels is {travels}")
            print(f"  largest difference from numpy: {difference:.1e}")


if __name__ == "__main__":
    main()
