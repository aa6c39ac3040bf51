"""`python -m benchmarks.cute.gemm_f8 FOLDER [--bundle FOLDER] [--output FILE]`: products of 8-bit floats in CuTe beside
our Tile IR entries and PyTorch's `_scaled_mm`, on this GPU.

Compile them before with `python -m benchmarks.cute.kernels FOLDER`, and the bundle with `tilestack compile --source
mlir --op linear_f8` and so on, on any machine. Each kernel must pass the conformance cases that it fits, and each
result is checked against float64 before it is timed. A time is the median of rounds; each round runs all sides in turn,
from a CUDA graph.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conformance.cases import CASES, Case
from conformance.ops.compare import benchmark_bound, compare
from conformance.ops.inputs import Inputs, make_inputs
from conformance.ops.run import Expected, references
from conformance.reference.float64 import LARGEST
from toolchain.bundles.bundle import Bundle
from toolchain.contract.op import ops
from toolchain.errors import ConformanceError

from ..cases.cases import OpCase
from ..cubins import EntryFunction, times_in_turn
from ..peers.pytorch import torch
from ..peers.torch_op_peers import op_peers
from ..peers.torch_ops import compute
from ..rows import by_rows
from . import TARGET

DTYPE = "bf16"
SHAPES: Mapping[str, tuple[tuple[int, int, int], ...]] = {  # M, N, K
    "linear_f8": (
        (8192, 2304, 768),
        (8192, 3072, 768),
        (8192, 768, 3072),
        (8192, 768, 768),
        (8192, 8192, 8192),
        *((rows, 768, 3072) for rows in (1024, 2048, 4096, 32768)),
        (8192, 50304, 768),
        (1024, 2304, 768),
        (2048, 2304, 768),
        (4096, 2304, 768),
        (32768, 2304, 768),
    ),
    "linear_gelu_f8": ((8192, 3072, 768), (2048, 3072, 768)),
    "linear_gelu_f8_to_f8": tuple((rows, 3072, 768) for rows in (1024, 2048, 4096, 8192, 32768)),
    "linear_residual_f8": tuple((rows, 768, k) for k in (768, 3072) for rows in (1024, 2048, 4096, 8192, 32768)),
}
TORCH: Mapping[str, Any] = {
    "float32": torch.float32, "bfloat16": torch.bfloat16, "float8_e4m3fn": torch.float8_e4m3fn,
}  # fmt: skip
Args = Mapping[str, Any]


def main() -> None:
    """Checks and times all; prints a table and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.gemm_f8", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bundle", type=Path, help="with entries of source mlir for this GPU")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    compiled = Bundle.load(asked.folder)
    sides = [Product(compiled, entry, TARGET) for entry in compiled.entries if entry.spec.op in SHAPES]
    right = [side for side in sides if is_right(side)]
    bundle = Bundle.load(asked.bundle) if asked.bundle else None
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []
    for op, shapes in SHAPES.items():
        for shape in shapes:
            rows += timed(op, shape, [side for side in right if side.spec.op == op], bundle)
    if asked.output:
        about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        asked.output.write_text(by_rows({**about, "rows": rows}))
    if len(right) < len(sides):
        raise SystemExit(f"{len(sides) - len(right)} kernels are wrong")


class Product(EntryFunction):
    """A product on this GPU; called with its operands it gives a function that launches it."""

    def __call__(self, args: Args) -> Callable[[], None]:
        (m, k), n = args["x"].shape, args["weight"].shape[0]
        return self.on({"M": m, "N": n, "K": k}, *args.values())


def timed(op: str, shape: tuple[int, int, int], products: list[Product], bundle: Bundle | None) -> list[dict[str, Any]]:
    """The rows of one op and shape, each side's error beside its time."""
    args, dims = operands(op, shape), dict(zip("MNK", shape, strict=True))
    sides = dict[str, Product]()
    if bundle:
        entry = bundle.select("mlir", op, DTYPE, dims, target=TARGET)
        sides["mlir"] = Product(bundle, entry, TARGET)
    sides |= {product.symbol: product for product in products}
    wanted = compute(op, {name: each.double() for name, each in args.items()})
    launches: dict[str, Callable[[], None]] = {}
    errors: dict[str, float] = {}
    for label, product in sides.items():
        args["out"].view(torch.uint8).fill_(255)  # NaN in every float
        launches[label] = product(args)
        launches[label]()
        errors[label] = difference(args["out"], wanted)
    peer = functools.partial(op_peers(OpCase(op, dims))[0].call, args)
    launches["_scaled_mm"], errors["_scaled_mm"] = peer, difference(peer(), wanted)
    (output,) = ops()[op].outputs
    bound = benchmark_bound("cute_gemm_f8", output.storage(DTYPE))
    launches = {label: launch for label, launch in launches.items() if errors[label] <= bound}
    times = times_in_turn(launches)
    base = statistics.median(times["_scaled_mm"])
    made: list[dict[str, Any]] = []
    for label, error in errors.items():
        measured = times.get(label)
        row: dict[str, Any] = {"op": op, "shape": shape, "side": label, "error": float(f"{error:.3g}")}
        if measured:
            median = statistics.median(measured)
            spread = (max(measured) - min(measured)) / median
            row |= {"us": round(median, 2), "spread": round(spread, 3), "of_torch": round(base / median, 3)}
        print(row if measured else f"WRONG {row}", flush=True)
        made.append(row)
    return made


def operands(op: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    """By the op's parameters. Numbers are normal ones, as quantized rows are: the largest of a row is about LARGEST."""
    sizes = dict(zip("MNK", shape, strict=True))
    made: dict[str, Any] = {}
    for param in ops()[op].params:
        values = torch.randn([sizes[dim] for dim in param.dims], device="cuda")
        if param.name == "factors":
            made[param.name] = values.abs() + 0.5
        elif param.dtype == "f32":
            made[param.name] = values.abs() / LARGEST
        elif param.dtype == "T":
            made[param.name] = values.bfloat16()
        else:
            made[param.name] = (values * 100).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return made


def difference(result: Any, wanted: Any) -> float:
    """The worst element, of the largest of the result."""
    return float(((result.double() - wanted).abs().max() / wanted.abs().max()).item())


def is_right(side: Product) -> bool:
    """True if the kernel passes the cases that it fits; prints the worst share of the bound."""
    worst = 0.0
    for number, case in enumerate(CASES):
        if case.op != side.spec.op or case.misaligned or case.gpu_only or side.spec.unmet(case.dims):
            continue
        inputs, expected = drawn(number)
        args = {name: upload(array) for name, array in {**inputs.arrays, **inputs.outputs}.items()}
        side({param.name: args[param.name] for param in side.spec.params})()
        torch.cuda.synchronize()
        for name, (exact, rounded) in expected.items():
            result = args[name].view(torch.uint8).cpu().numpy().view(rounded.dtype)
            stored = next(param.storage(DTYPE) for param in side.spec.params if param.name == name)
            try:
                worst = max(worst, compare(case.op, stored, result, exact, rounded, name).share)
            except ConformanceError as error:  # said, and counted as wrong
                print(f"WRONG {side.symbol} at {case.shape}: {error}", flush=True)
                return False
    print(f"right {side.symbol}: at most {worst:.0%} of the bound", flush=True)
    return True


@functools.cache
def drawn(number: int) -> tuple[Inputs, Expected]:
    """The inputs of a case, and what is to come out."""
    case: Case = CASES[number]
    inputs = make_inputs(case, DTYPE, 1)
    return inputs, references(case, DTYPE, inputs)


def upload(array: np.ndarray[Any, Any]) -> Any:
    raw = torch.from_numpy(array.view(np.uint8).copy()).cuda()
    return raw.view(TORCH[array.dtype.name]).reshape(array.shape)


if __name__ == "__main__":
    main()
