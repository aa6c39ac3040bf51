"""`python -m benchmarks.cute_gemm FOLDER [--output FILE]`: the GEMMs in CuTe beside cuBLAS, on this GPU.

Compile them before with `python -m kernels_cute FOLDER`, on any machine. Each result is checked against a product in
float64 before it is timed. A time is the median of rounds; each round runs all sides in turn, from a CUDA graph.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolchain.runtime.driver import load
from toolchain.runtime.tma import TMADescriptor

from .peers.pytorch import torch

SHAPES = (
    (8192, 8192, 8192), (4096, 4096, 4096), (8192, 2304, 768), (8192, 768, 768), (8192, 3072, 768), (8192, 768, 3072),
)  # fmt: skip
ODD = (333, 264, 776)  # no tile divides it
BOUND = 0.006  # of the largest result: one rounding to bf16, and sums in another order
ROUNDS, LAUNCHES = 15, 10
ALIGNED = 64  # bytes, of a descriptor


def main() -> None:
    """Checks and times all; prints a table and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute_gemm", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    gemms = [Gemm(row, asked.folder) for row in json.loads((asked.folder / "gemms.json").read_text())]
    torch.manual_seed(0)
    for shape in (ODD, SHAPES[2]):
        operands = _operands(shape)
        x, weight, bias, out = operands
        wanted = x.double() @ weight.double() + bias.double()
        for gemm in gemms:
            out.fill_(float("nan"))
            gemm(*operands)()
            error = ((out.double() - wanted).abs().max() / wanted.abs().max()).item()
            if not error <= BOUND:
                raise SystemExit(f"{gemm.row['symbol']} {gemm.row['tiles']} at {shape}: error {error:.2g} over {BOUND}")
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        operands = _operands(shape)
        x, weight, bias, out = operands
        sides: dict[str, Callable[[], None]] = {"cublas": functools.partial(torch.addmm, bias, x, weight, out=out)}
        sides |= {_label(gemm.row): gemm(*operands) for gemm in gemms}
        times = _times(sides)
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
        gpu = torch.cuda.get_device_name()
        asked.output.write_text(json.dumps({"gpu": gpu, "torch": torch.__version__, "rows": rows}, indent=1) + "\n")


def _label(row: dict[str, Any]) -> str:
    return f"{row['symbol']} " + "x".join(map(str, row["tiles"].values()))


def _operands(shape: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
    """x (M, K), weight (K, N), bias (N) and out (M, N), all bf16."""
    m, n, k = shape
    made = [torch.randn(size, device="cuda").bfloat16() for size in ((m, k), (k, n), (n,))]
    return made[0], made[1], made[2], torch.empty(m, n, device="cuda").bfloat16()


def _times(sides: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """The microseconds of each side in each round."""
    graphs: dict[str, Any] = {}
    for label, launch in sides.items():
        launch()
        torch.cuda.synchronize()
        graphs[label] = graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                launch()
    times: dict[str, list[float]] = {label: [] for label in sides}
    for number in range(ROUNDS + 2):
        for label, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if number >= 2:  # the first rounds warm up
                times[label].append(start.elapsed_time(end) / LAUNCHES * 1e3)
    return times


class Gemm:
    """A GEMM on this GPU; called with its operands it gives a function that launches it."""

    def __init__(self, row: dict[str, Any], folder: Path) -> None:
        torch.zeros(1, device="cuda")  # makes the context
        self.row, self.driver = row, load()
        self.processors = torch.cuda.get_device_properties(0).multi_processor_count
        module = self._ok(self.driver.cuModuleLoadData((folder / row["file"]).read_bytes()))
        self.function = self._ok(self.driver.cuModuleGetFunction(module, row["symbol"].encode()))
        limit = self.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._ok(self.driver.cuFuncSetAttribute(self.function, limit, row["shared"]))

    def _ok(self, result: tuple[Any, ...]) -> Any:
        if result[0] != 0:
            raise SystemExit(f"{self.row['symbol']}: the CUDA driver says {result[0]!s}")
        return result[1] if len(result) == 2 else None

    def __call__(self, x: Any, weight: Any, bias: Any, out: Any) -> Callable[[], None]:
        tiles, (m, n) = self.row["tiles"], out.shape
        blocks = -(-m // tiles["m"]) * -(-n // tiles["n"])
        if self.row["maps"]:
            blocks = min(blocks, self.processors)
        given = {"x": x, "weight": weight, "bias": bias, "out": out}
        kept: list[Any] = []
        for tensor in given.values():
            kept += [ctypes.c_uint64(tensor.data_ptr()), *map(ctypes.c_int, (*tensor.shape, *tensor.stride()))]
        kept += [self._map(given[row["array"]], row) for row in self.row["maps"]]
        pointers = (ctypes.c_void_p * len(kept))(*map(ctypes.addressof, kept))

        def launch(_kept: Any) -> None:
            stream, threads = torch.cuda.current_stream().cuda_stream, self.row["threads"]
            self._ok(
                self.driver.cuLaunchKernel(
                    self.function,
                    blocks,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    self.row["shared"],
                    stream,
                    ctypes.addressof(pointers),
                    0,
                )
            )

        return functools.partial(launch, (kept, pointers))

    def _map(self, matrix: Any, row: dict[str, Any]) -> Any:
        """A tensor map of a matrix, in memory aligned as the driver wants it."""
        sizes, strides = tuple(reversed(matrix.shape)), (matrix.stride(0) * matrix.element_size(),)
        box, said = tuple(reversed(row["box"])), {key: row[key] for key in ("swizzle", "l2_promotion")}
        made = TMADescriptor("bf16", matrix.data_ptr(), sizes, strides, box, **said).encode(self.driver)
        room = bytearray(len(made) + ALIGNED)
        start = -ctypes.addressof(ctypes.c_char.from_buffer(room)) % ALIGNED
        room[start : start + len(made)] = made
        return (ctypes.c_char * len(made)).from_buffer(room, start)


if __name__ == "__main__":
    main()
