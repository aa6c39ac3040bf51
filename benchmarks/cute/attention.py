"""`python -m benchmarks.cute.attention FOLDER [--bundle FOLDER] [--output FILE]`: the attention in CuTe beside our Tile
IR entries and PyTorch's, on this GPU.

Compile it before with `python -m benchmarks.cute.kernels FOLDER`, and the bundle with `tilestack compile --op
attention`, on any machine. Each kernel must pass the conformance cases that it fits before it is timed. A time is the
median of rounds; each round runs all sides in turn, from a CUDA graph.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from conformance.cases import CASES
from conformance.ops.compare import compare
from conformance.ops.inputs import make_inputs
from conformance.reference import eager, float64
from toolchain.bundles.bundle import Bundle
from toolchain.errors import ConformanceError

from ..cubins import EntryFunction, times_in_turn
from ..peers.pytorch import attention, functional, torch
from ..rows import by_rows
from . import TARGET

SHAPES = ((8, 1024, 12, 64), (32, 1024, 12, 64), (4, 4096, 12, 64), (1, 1024, 12, 64), (8, 256, 12, 64))  # B, T, H, D
PEERS = ("flash", "cudnn")


def main() -> None:
    """Checks and times all; prints a table and writes JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.attention", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bundle", type=Path, help="with entries of attention for this GPU")
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    compiled = Bundle.load(asked.folder)
    sides = [Attention(compiled, entry, TARGET) for entry in compiled.entries if entry.spec.op == "attention"]
    bundle = Bundle.load(asked.bundle) if asked.bundle else None
    torch.manual_seed(0)
    right = [side for side in sides if _right(side)]
    rows: list[dict[str, Any]] = []
    for shape in SHAPES:
        operands = _operands(shape)
        launches = {peer: _peer(peer, operands) for peer in PEERS}
        if bundle:
            entry = bundle.select(bundle.sources[0], "attention", "bf16", _dims(shape), target=TARGET)
            launches["tile"] = Attention(bundle, entry, TARGET)(*operands)
        launches |= {side.symbol: side(*operands) for side in right
                     if (side.spec.dtype, side.spec.constants["D"]) == ("bf16", shape[3])}  # fmt: skip
        times = times_in_turn(launches)
        base = statistics.median(times["tile" if bundle else "cudnn"])
        for label, measured in times.items():
            median = statistics.median(measured)
            spread = (max(measured) - min(measured)) / median
            rows.append({"shape": shape, "side": label, "us": round(median, 2), "spread": round(spread, 3),
                         "of_base": round(base / median, 3)})  # fmt: skip
            print(f"{shape!s:20} {label:84} {median:8.2f} us  +-{spread:4.0%}  {base / median:.2f}", flush=True)
    if asked.output:
        about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
        asked.output.write_text(by_rows({**about, "rows": rows}))
    if len(right) < len(sides):
        raise SystemExit(f"{len(sides) - len(right)} kernels are wrong")


def _right(side: Attention) -> bool:
    """True if the kernel passes the cases that it fits; prints the worst share of the bound."""
    worst = 0.0
    for case in CASES:
        d = case.dims
        if case.op != "attention" or case.misaligned or case.gpu_only or d["D"] != side.spec.constants["D"]:
            continue
        dtype = side.spec.dtype
        arrays, wanted, same = _reference(CASES.index(case), dtype)
        q, k, v = map(_upload, arrays)
        out = torch.full_like(q, float("nan"))
        side(q, k, v, out)()
        torch.cuda.synchronize()
        try:
            share = compare("attention", dtype, _download(out, same.dtype), wanted, same).share
        except ConformanceError as error:  # said, and counted as wrong
            print(f"WRONG {side.symbol} {dtype} at {case.shape}: {error}", flush=True)
            return False
        worst = max(worst, share)
    print(f"right {side.symbol} {side.spec.dtype}: at most {worst:.0%} of the bound", flush=True)
    return True


@functools.cache
def _reference(case: int, dtype: str) -> tuple[Any, Any, Any]:
    """Makes the data of case number N: the inputs q, k, v, the result in float64, and the result of numpy in the
    case's own dtype."""
    made = make_inputs(CASES[case], dtype, 1)
    q, k, v = (made.arrays[name] for name in "qkv")
    scale = made.scalars["scale"]
    return (q, k, v), float64.attention(q, k, v, scale), eager.attention(q, k, v, scale, dtype=dtype)


def _upload(array: np.ndarray[Any, Any]) -> Any:
    kind = torch.bfloat16 if array.dtype.name == "bfloat16" else torch.float16
    return torch.from_numpy(array.view(np.int16).copy()).view(kind).cuda()


def _download(tensor: Any, dtype: Any) -> np.ndarray[Any, Any]:
    return tensor.cpu().view(torch.int16).numpy().view(dtype)


def _operands(shape: tuple[int, int, int, int]) -> tuple[Any, Any, Any, Any]:
    """q, k, v and out, all (B, T, H, D) bf16."""
    made = [torch.randn(shape, device="cuda").bfloat16() for _ in range(3)]
    return made[0], made[1], made[2], torch.empty_like(made[0])


def _peer(name: str, operands: tuple[Any, Any, Any, Any]) -> Callable[[], None]:
    q, k, v, _ = (x.transpose(1, 2).contiguous() for x in operands)
    backend = attention.SDPBackend.FLASH_ATTENTION if name == "flash" else attention.SDPBackend.CUDNN_ATTENTION

    def launch() -> None:
        with attention.sdpa_kernel(backend):
            functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return launch


class Attention(EntryFunction):
    """An attention on this GPU; called with its operands it gives a function that launches it."""

    def __call__(self, q: Any, k: Any, v: Any, out: Any) -> Callable[[], None]:
        return self.on(_dims(q.shape), q, k, v, out, q.shape[3] ** -0.5)


def _dims(shape: tuple[int, int, int, int]) -> dict[str, int]:
    b, t, h, d = shape
    return {"B": b, "T": t, "S": t, "H": h, "D": d}


if __name__ == "__main__":
    main()
