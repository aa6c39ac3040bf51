"""`python -m benchmarks.cute.gemm FOLDER [--output FILE]`: the GEMMs in CuTe beside cuBLAS, on this GPU.

Compile them before with `python -m benchmarks.cute.kernels FOLDER`, on any machine. Each result is checked against a
product in float64 before it is timed. A time is the median of rounds; each round runs all sides in turn, from a CUDA
graph.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.ops.compare import benchmark_bound
from toolchain.bundles.bundle import Bundle

from ..cubins import EntryFunction, times_in_turn
from ..peers.pytorch import torch
from ..rows import by_rows
from . import TARGET

SHAPES = (
    (8192, 8192, 8192), (4096, 4096, 4096), (8192, 2304, 768), (8192, 768, 768), (8192, 3072, 768), (8192, 768, 3072),
)  # fmt: skip
ODD = (333, 264, 776)  # no tile divides it


def main() -> None:
    """Checks and times all; prints a table and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.gemm", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    bundle = Bundle.load(asked.folder)
    gemms = [Gemm(bundle, entry, TARGET) for entry in bundle.entries if entry.spec.op == "linear"]
    torch.manual_seed(0)
    bound = benchmark_bound("cute_gemm", "bf16")
    for shape in (ODD, SHAPES[2]):
        operands = _operands(shape)
        x, weight, bias, out = operands
        wanted = x.double() @ weight.double() + bias.double()
        for gemm in gemms:
            out.fill_(float("nan"))
            gemm(*operands)()
            error = ((out.double() - wanted).abs().max() / wanted.abs().max()).item()
            if not error <= bound:
                raise SystemExit(f"{gemm.symbol} at {shape}: error {error:.2g} over {bound}")
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        operands = _operands(shape)
        x, weight, bias, out = operands
        sides: dict[str, Callable[[], None]] = {"cublas": functools.partial(torch.addmm, bias, x, weight, out=out)}
        sides |= {gemm.symbol: gemm(*operands) for gemm in gemms}
        times = times_in_turn(sides)
        base = statistics.median(times["cublas"])
        for label, measured in times.items():
            median = statistics.median(measured)
            spread = (max(measured) - min(measured)) / median
            rows.append({"shape": shape, "side": label, "us": round(median, 1), "spread": round(spread, 3),
                         "of_cublas": round(base / median, 3)})  # fmt: skip
            print(
                f"{shape!s:20} {label:36} {median:9.1f} us  +-{spread:4.0%}  {base / median:.2f} of cuBLAS", flush=True
            )
    if asked.output:
        about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        asked.output.write_text(by_rows({**about, "rows": rows}))


def _operands(shape: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
    """x (M, K), weight (K, N), bias (N) and out (M, N), all bf16."""
    m, n, k = shape
    made = [torch.randn(size, device="cuda").bfloat16() for size in ((m, k), (k, n), (n,))]
    return made[0], made[1], made[2], torch.empty(m, n, device="cuda").bfloat16()


class Gemm(EntryFunction):
    """A GEMM on this GPU; called with its operands it gives a function that launches it."""

    def __call__(self, x: Any, weight: Any, bias: Any, out: Any) -> Callable[[], None]:
        (m, k), (_, n) = x.shape, weight.shape
        return self.on({"M": m, "N": n, "K": k}, x, weight, bias, out)


if __name__ == "__main__":
    main()
