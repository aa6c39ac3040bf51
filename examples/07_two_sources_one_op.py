"""One op, written twice: as MLIR text and in cuTile Python. Callers name the op, and see no difference.

    python examples/07_two_sources_one_op.py

Both sources become Tile IR bytecode with the same parameters. One compiler makes cubins of it, one interpreter runs it:
so each checks the other.
"""

from __future__ import annotations

import tempfile

import numpy as np

from toolchain import bundle, knobs, pipeline, targets
from toolchain.cache import Cache
from toolchain.entries import entries_of
from toolchain.runtime import Launcher, open_executor
from toolchain.sources import packages

SOURCES = ("mlir", "py")


def main() -> None:
    x = np.random.default_rng(0).standard_normal((5, 300), np.float32)
    exact = x.astype(np.float64)
    exact *= 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)))
    with open_executor() as executor, tempfile.TemporaryDirectory() as folder:
        print(f"gelu of 5 rows of 300 numbers, on {executor.name}")
        wanted = [(packages()[name], spec) for name in SOURCES for spec in entries_of(name)]
        wanted = [(package, spec) for package, spec in wanted if (spec.op, spec.dtype) == ("gelu", "f32")]
        gpu = [targets.targets()[executor.target]] if executor.target else []
        outcome = pipeline.compile_entries(wanted, gpu, Cache(knobs.cache_dir()), jobs=knobs.jobs())
        compiled = bundle.write(f"{folder}/bundle", outcome.compiled, pipeline.tools_used(gpu))
        results = []
        for source in SOURCES:
            given, out = executor.from_numpy(x), executor.empty(x.shape, "f32")
            launcher = Launcher(compiled, source, executor)
            taken = launcher.select("gelu", "f32", x=given, out=out)
            launcher("gelu", "f32", x=given, out=out)
            results.append(out.numpy())
            code = compiled.read(taken.bytecode)
            print(f"{source:4}: entry {taken.spec.symbol}, {len(code)} bytes of bytecode")
            print("      largest difference from float64:", abs(results[-1] - exact).max())
        print("      largest difference from each other:", abs(results[0] - results[1]).max())


if __name__ == "__main__":
    main()
