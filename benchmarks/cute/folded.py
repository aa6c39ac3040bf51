"""`python -m benchmarks.cute.folded FOLDER --bundle FOLDER [--op OP] [--rows M] [--output FILE]`: the products of GPT-2
that norms are part of, in CuTe, beside our Tile IR entries, on this GPU.

Compile the first bundle with `python -m benchmarks.cute.kernels FOLDER`, and the other with `tilestack compile --source
mlir --op rms_linear` and so on, on any machine. Each result is checked against float64 before it is timed. A time is
the median of rounds; each round runs all sides in turn, from a CUDA graph.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.ops.compare import benchmark_bound
from gpt.passes.squares import part_width
from toolchain.bundles.bundle import Bundle, BundleEntry
from toolchain.contract.expressions import cdiv
from toolchain.contract.op import ops

from ..cubins import EntryFunction, times_in_turn
from ..peers.pytorch import torch
from ..peers.torch_ops import gelu
from ..rows import by_rows
from . import TARGET

DTYPE, EPS = "bf16", 1e-5
WIDTHS = (768, 1024, 1280, 1600)
ROWS = (1024, 2048, 4096, 8192)
SIZES: Mapping[str, Callable[[int], tuple[tuple[int, int], ...]]] = {  # K and N of an op in a model of a width
    "rms_linear": lambda width: ((width, 3 * width),),
    "rms_linear_gelu": lambda width: ((width, 4 * width),),
    "linear_residual_squares": lambda width: ((width, width), (4 * width, width)),
    "linear_residual": lambda width: ((width, width), (4 * width, width)),
    "linear": lambda width: ((width, 3 * width),),
}
Args = Mapping[str, Any]
Dims = Mapping[str, int]


def main() -> None:
    """Checks and times all; prints a table and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.folded", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bundle", type=Path, required=True, help="with entries of source mlir for this GPU")
    parser.add_argument("--op", action="append", choices=SIZES, help="only this one; repeat")
    parser.add_argument("--rows", action="append", type=int, help="only so many rows; repeat")
    parser.add_argument("--width", action="append", type=int, help="only models of this width; repeat")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    mine, theirs = Bundle.load(asked.folder), Bundle.load(asked.bundle)
    torch.manual_seed(0)
    rows: list[dict[str, Any]] = []
    for m in asked.rows or ROWS:
        for width in asked.width or WIDTHS:
            for op in asked.op or SIZES:
                for k, n in SIZES[op](width):
                    rows += timed(op, {"M": m, "K": k, "N": n}, sides(op, m, k, n, mine, theirs))
                    if asked.output:
                        gpu = torch.cuda.get_device_name()
                        asked.output.write_text(by_rows({"gpu": gpu, "torch": torch.__version__, "rows": rows}))
    if any("us" not in row for row in rows):
        raise SystemExit("some results are wrong")


def sides(op: str, m: int, k: int, n: int, mine: Bundle, theirs: Bundle) -> Iterator[tuple[Product, Dims]]:
    """mlir's entry for what a model asks, and those in CuTe: each with the sizes that it is launched for. How many
    parts the squares have that a product writes follows from its tile."""
    policy = theirs.policy(TARGET)
    width = min(k, n)
    part = part_width(policy, policy.fold, width, m) if policy.fold else width
    squares = {"Z": cdiv(width, part), "L": cdiv(m, 64) * 64} if "squares" in [p.name for p in ops()[op].params] else {}
    dims = {"M": m, "K": k, "N": n, **squares}
    yield Product(theirs, theirs.select("mlir", op, DTYPE, dims, target=TARGET), "mlir"), dims
    for entry in mine.entries:
        if entry.spec.op == op and (own := _fitting(entry, dims)):
            yield Product(mine, entry), own


def _fitting(entry: BundleEntry, dims: Dims) -> Dims | None:
    """The sizes with as many parts of the squares as an entry makes, or None if it cannot run."""
    c = entry.spec.constants
    if entry.spec.op == "linear_residual_squares":
        dims = {**dims, "Z": cdiv(dims["N"], c.get("SUMMED") or c["BN"])}
    return None if entry.spec.unmet(dims) else dims


class Product(EntryFunction):
    """A product on this GPU; called with its arguments and sizes it gives a function that launches it."""

    def __init__(self, bundle: Bundle, entry: BundleEntry, label: str = "") -> None:
        self.label = label or entry.spec.symbol
        super().__init__(bundle, entry, TARGET)

    def __call__(self, args: Args, dims: Dims) -> Callable[[], None]:
        return self.on(dims, *(args[param.name] for param in self.spec.params))


def timed(op: str, size: Dims, products: Iterator[tuple[Product, Dims]]) -> list[dict[str, Any]]:
    """The rows of one op and size, each side's error beside its time."""
    launches: dict[str, Callable[[], None]] = {}
    found: dict[str, dict[str, Any]] = {}
    given: dict[int, Args] = {}
    wanted: dict[str, Any] = {}
    for product, dims in products:
        z = dims.get("Z", 0)
        if z not in given:
            given[z] = {**operands(op, dims), **next(iter(given.values()), {}), **squares_of(dims)}
        args = given[z]
        wanted = wanted or expected(args)
        for param in ops()[op].outputs:
            args[param.name].fill_(float("nan"))
        launch = product(args, dims)
        launch()
        error = max(differences(op, args, wanted, z))
        found[product.label] = {
            "op": op, **size, "side": product.label, "entry": product.symbol, "z": z, "error": float(f"{error:.3g}"),
        }  # fmt: skip
        if error <= benchmark_bound("cute_gemm", DTYPE):
            launches[product.label] = launch
        else:
            print(f"WRONG {found[product.label]}", flush=True)
    for label, times in times_in_turn(launches).items():
        median = statistics.median(times)
        found[label] |= {"us": round(median, 2), "spread": round((max(times) - min(times)) / median, 3)}
        print(found[label], flush=True)
    return [*found.values()]


def operands(op: str, dims: Dims) -> dict[str, Any]:
    """By the op's parameters, but for its squares."""
    made: dict[str, Any] = {}
    for param in ops()[op].params:
        if param.name != "squares":
            made[param.name] = (
                EPS if not param.dims else torch.randn([dims[d] for d in param.dims], device="cuda").bfloat16()
            )
    return made


def squares_of(dims: Dims) -> dict[str, Any]:
    """Squares that add up to about K; of an op that writes them, room for them."""
    if "Z" not in dims:
        return {}
    return {"squares": torch.rand(dims["Z"], dims["L"], device="cuda") * 2 * dims["K"] / dims["Z"]}


def expected(args: Args) -> dict[str, Any]:
    """In float64: the product and, for an op that divides by it, nothing more, as that depends on the squares."""
    made = {"sums": args["x"].double() @ args["weight"].double()}
    if "residual" in args:
        made["out"] = made["sums"] + args["bias"].double() + args["residual"].double()
    return made


def differences(op: str, args: Args, wanted: Mapping[str, Any], z: int) -> Iterator[float]:
    """The worst element of each output, of the largest of it."""
    if op.startswith("rms_linear"):
        k = args["x"].shape[1]
        root = (args["squares"].double().sum(0)[: len(args["x"]), None] / k + EPS).sqrt()
        out = wanted["sums"] / root + args["bias"].double()
    else:
        out = wanted.get("out", wanted["sums"] + args["bias"].double())
    out = gelu(out) if op.endswith("_gelu") else out
    yield difference(args["out"], out)
    if op == "linear_residual_squares":
        n = out.shape[1]
        part = 32 * cdiv(cdiv(n, 32), z)
        squares = [piece.square().sum(1) for piece in out.split(part, 1)]
        yield difference(args["squares"][:, : len(out)], torch.stack(squares))


def difference(result: Any, wanted: Any) -> float:
    return float(((result.double() - wanted).abs().max() / wanted.abs().max()).item())


if __name__ == "__main__":
    main()
