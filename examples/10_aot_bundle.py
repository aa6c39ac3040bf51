"""Compile ahead of time to a bundle, and launch it where there is no compiler.

    python examples/10_aot_bundle.py

A bundle is a folder with bytecode and cubins. The machine that launches it needs no compiler and, on a GPU, no package
beside numpy, ml_dtypes and cuda-bindings. Here another process stands for that machine: it is shown an empty folder in
place of the toolchain. C++ programs launch the same bundle through a header that is made of it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tilestack.__main__ import main as tilestack
from toolchain.runtime import gpus

LAUNCHES = """
import sys
import numpy as np
import tilestack as ts
x = np.linspace(-3, 3, 3000, dtype=np.float32).reshape(2, 1500)
out = np.empty_like(x)
kernel = ts.load(sys.argv[1], entry="mlir/gelu_any_f32")
kernel(x, out)
exact = x.astype(np.float64)
exact *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)))
print(f"launched on {ts.device_name()}: {kernel}")
print("largest difference from float64:", abs(out - exact).max())
"""


def main() -> None:
    target = gpus()[0].target if gpus() else "sm_90"
    with tempfile.TemporaryDirectory() as folder:
        bundle, empty = Path(folder, "bundle"), Path(folder, "empty")
        entries = ["--op", "gelu", "--dtype", "f32", "--entries", "mlir/gelu_any"]
        run("compile", *entries, "--target", target, "--output", bundle)
        print("files:", *sorted(f"*{path.suffix}" for path in bundle.rglob("*.*")), flush=True)

        empty.mkdir()
        elsewhere = ["env", f"TILESTACK_TOOLCHAIN={empty}", sys.executable, "-c", LAUNCHES, str(bundle)]
        print(subprocess.run(elsewhere, check=True, capture_output=True, text=True).stdout, end="")

        run("export-cpp", bundle, "--target", target, "--embed", "--output", Path(folder, "gelu.hpp"))
        text = Path(folder, "gelu.hpp").read_text()
        print("in C++:", next(line.strip(" {") for line in text.splitlines() if "void gelu_f32(" in line))


def run(*words: str | Path) -> None:
    """A command, as in a shell."""
    if code := tilestack([str(word) for word in words]):
        raise SystemExit(code)


if __name__ == "__main__":
    main()
