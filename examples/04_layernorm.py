"""A fused kernel: layernorm reads each row once, and everything between is a tile that never leaves the chip.

    python examples/04_layernorm.py

One block makes one row of any width up to a tile's. The mean and the variance divide by the row's own width, so the
columns that the tile has beyond it must not count.
"""

from __future__ import annotations

import cuda.tile as ct
import numpy as np

import tilestack as ts

ROWS, WIDTH, TILE, EPS = 8, 192, 256, 1e-5


@ct.kernel
def layernorm(x, weight, bias, out, eps, TILE: ct.Constant[int]):
    row, zero = ct.bid(0), ct.PaddingMode.ZERO
    width = x.shape[1]
    value = ct.load(x, index=(row, 0), shape=(1, TILE), padding_mode=zero)
    gain = ct.load(weight, index=(0,), shape=(TILE,), padding_mode=zero)[None, :]
    shift = ct.load(bias, index=(0,), shape=(TILE,), padding_mode=zero)[None, :]

    mean = ct.sum(value, axis=1, keepdims=True) / width
    inside = ct.less(ct.arange(TILE, dtype=ct.int32), width)[None, :]
    deviation = ct.where(inside, value - mean, 0.0)  # padding deviates from the mean too
    variance = ct.sum(deviation * deviation, axis=1, keepdims=True) / width
    ct.store(out, index=(row, 0), tile=deviation * ct.rsqrt(variance + eps) * gain + shift)


def main() -> None:
    rng = np.random.default_rng(0)
    x = 3 + rng.standard_normal((ROWS, WIDTH), np.float32)
    weight, bias = rng.standard_normal((2, WIDTH), np.float32)
    out = np.zeros_like(x)
    print(f"on {ts.device_name()}: {ROWS} rows of {WIDTH} columns in tiles of {TILE}")
    ts.load(layernorm)[ROWS](x, weight, bias, out, EPS, TILE=TILE)

    exact = x.astype(np.float64)
    exact -= exact.mean(axis=1, keepdims=True)
    exact /= np.sqrt((exact**2).mean(axis=1, keepdims=True) + EPS)
    print("first row:", out[0, :4])
    print("largest difference from float64:", abs(out - (exact * weight + bias)).max())


if __name__ == "__main__":
    main()
