"""One op, written twice: as MLIR text and in cuTile Python. Callers name the op, and see no difference.

    python examples/07_two_sources_one_op.py

Both sources become Tile IR bytecode with the same parameters. One compiler makes cubins of it, one interpreter runs it:
so each checks the other.
"""

from __future__ import annotations

import tempfile

import numpy as np

import tilestack as ts
from tilestack.__main__ import main as tilestack
from toolchain.runtime import gpus


def main() -> None:
    x = np.random.default_rng(0).standard_normal((5, 300), np.float32)
    exact = x.astype(np.float64)
    exact *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)))
    print(f"gelu of 5 rows of 300 numbers, on {ts.device_name()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        target = ["--target", gpus()[0].target] if gpus() else ["--no-targets"]  # bytecode alone: for the interpreter
        words = ["--op", "gelu", "--dtype", "f32", "--entries", "gelu_any", "--output", f"{folder}/bundle"]
        if code := tilestack(["compile", *words, *target]):
            raise SystemExit(code)
        results = []
        for source in ("mlir", "py"):
            kernel = ts.load(f"{folder}/bundle", entry=f"{source}/gelu_any_f32")
            out = np.empty_like(x)
            kernel(x, out)  # the entry knows its grid
            results.append(out)
            print(f"{source:4}: entry {kernel.name}, {len(kernel.disassemble().splitlines())} lines of Tile IR")
            print("      largest difference from float64:", abs(out - exact).max())
        print("      largest difference from each other:", abs(results[0] - results[1]).max())


if __name__ == "__main__":
    main()
