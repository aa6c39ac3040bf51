"""Compile a kernel in MLIR to a cubin, on a machine without a GPU.

python examples/cute_runtime/compile_mlir.py examples/cute_runtime/scale.mlir sm_90a scale.cubin
"""

from __future__ import annotations

import sys
from pathlib import Path

from cute_runtime import compile_mlir


def main(mlir: str, arch: str, cubin: str) -> None:
    made = compile_mlir(Path(mlir).read_text(), arch, cubin)
    print(f"{made}: {made.stat().st_size} bytes for {arch}")


if __name__ == "__main__":
    main(*sys.argv[1:])
