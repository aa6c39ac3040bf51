"""Times the study's kernels on a GPU, in turns, after each result was compared with float64."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.ops.compare import benchmark_bound
from toolchain.runtime.packing import number

from ..cubins import Function, address, passed
from ..peers.pytorch import torch
from ..peers.torch_side import TorchSide, measure_ceilings
from .nvrtc import compile_cuda
from .ops import (
    CUDA_WARPS,
    EPS,
    HEADS,
    LENGTH,
    ROWS,
    SCALE_LOG2,
    SIZE,
    TRITON_ATTENTION,
    TRITON_LAYERNORM,
    WIDTH,
    lines,
)

SETS = {"layernorm": 8, "attention": 6}  # of inputs: together more than twice the L2 cache
ROUNDS, WARM_UP = 20, 3
Arrays = list[Any]


@dataclass(frozen=True)
class Way:
    """One way to compute the op. `launch` gets the arrays of a set and returns the result."""

    language: str
    variant: str
    launch: Callable[[Arrays], Any]


def run(folder: Path, say: Callable[[str], object]) -> dict[str, Any]:
    """Both ops. The result is a document with a row for each way."""
    side = TorchSide("cuda:0")
    ceilings = measure_ceilings(side)
    kernels = json.loads((folder / "kernels.json").read_text())
    rows: list[dict[str, Any]] = []
    bound = benchmark_bound("one_op", "bf16")
    for op in ("layernorm", "attention"):
        sets = [_inputs(op) for _ in range(SETS[op])]
        wanted = _exact(op, sets[0])
        ready: dict[Way, tuple[Any, float]] = {}
        for way in _ways(op, folder, [row for row in kernels if row["op"] == op]):
            sets[0][-1].fill_(float("nan"))
            error = _error(way.launch(sets[0]), wanted)
            if not error <= bound:
                raise SystemExit(f"{op} in {way.language} ({way.variant}): error {error:.3g} over {bound}")
            ready[way] = _graph(way, sets), error
        times: dict[Way, list[float]] = {way: [] for way in ready}
        for round_ in range(-WARM_UP, ROUNDS):
            for way, (graph, _) in ready.items():
                us = side.time_us(graph.replay) / len(sets)
                if round_ >= 0:
                    times[way].append(us)
        floor_us = _floor_us(op, ceilings)
        for way, found in times.items():
            median, error = statistics.median(found), ready[way][1]
            rows.append(
                {
                    "op": op, "language": way.language, "variant": way.variant, "us": round(median, 2),
                    "spread": round((max(found) - min(found)) / median, 3), "share": round(floor_us / median, 3),
                    "error": float(f"{error:.3g}"),
                    "lines": 1 if way.language == "pytorch" else lines(op, way.language),
                }
            )  # fmt: skip
            say(f"{op:10} {way.language:8} {way.variant:30} {median:8.1f} us {floor_us / median:4.0%} {error:.1e}")
    return {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_bytes_per_s": ceilings.bytes_per_s,
        "flops_per_s": ceilings.flops_per_s, "rows": rows,
    }  # fmt: skip


def _inputs(op: str) -> Arrays:
    """The arrays of one set; the last is the output."""

    def normal(*shape: int) -> Any:
        return torch.randn(shape, device="cuda").bfloat16()

    if op == "layernorm":
        return [3 + normal(ROWS, WIDTH), normal(WIDTH), normal(WIDTH), normal(ROWS, WIDTH)]
    return [normal(HEADS, LENGTH, SIZE) for _ in range(4)]


def _exact(op: str, arrays: Arrays) -> Any:
    """In float64."""
    exact = [array.double() for array in arrays[:3]]
    if op == "layernorm":
        return torch.nn.functional.layer_norm(exact[0], (WIDTH,), exact[1], exact[2], EPS)
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool, device="cuda").tril()
    made = [
        torch.where(mask, q @ k.T / SIZE**0.5, -float("inf")).softmax(-1) @ v for q, k, v in zip(*exact, strict=True)
    ]
    return torch.stack(made)


def _error(result: Any, wanted: Any) -> float:
    return ((result.double() - wanted).norm() / wanted.norm()).item()


def _floor_us(op: str, ceilings: Any) -> float:
    """The bytes that must move over the rate of a copy, or the products over the rate of a large one."""
    if op == "layernorm":
        return 2 * ROWS * WIDTH * 2 / ceilings.bytes_per_s * 1e6
    return 4 * HEADS * LENGTH * (LENGTH + 1) / 2 * SIZE / ceilings.flops_per_s * 1e6


def _graph(way: Way, sets: Sequence[Arrays]) -> Any:
    graph = torch.cuda.CUDAGraph()
    way.launch(sets[0])
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for arrays in sets:
            way.launch(arrays)
    return graph


def _ways(op: str, folder: Path, kernels: Sequence[dict[str, Any]]) -> list[Way]:
    made = [*_pytorch(op), *_cuda(op), *_triton(op)]
    for row in kernels:
        function = Function((folder / row["file"]).read_bytes(), op)
        grid = (ROWS, 1) if op == "layernorm" else (-(-LENGTH // row["rows"]), HEADS)
        made.append(Way(row["language"], row["variant"], functools.partial(_tiled, function, grid, op)))
    return made


def _pytorch(op: str) -> list[Way]:
    functional = torch.nn.functional
    if op == "layernorm":
        return [Way("pytorch", "layer_norm", lambda a: functional.layer_norm(a[0], (WIDTH,), a[1], a[2], EPS))]

    def attend(backend: Any, arrays: Arrays) -> Any:
        q, k, v = (array.view(1, HEADS, LENGTH, SIZE) for array in arrays[:3])
        with torch.nn.attention.sdpa_kernel(backend):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0]

    backends = torch.nn.attention.SDPBackend
    return [
        Way("pytorch", name, functools.partial(attend, backend))
        for name, backend in (("flash", backends.FLASH_ATTENTION), ("cudnn", backends.CUDNN_ATTENTION))
    ]


def _cuda(op: str) -> list[Way]:
    function = Function(compile_cuda(op), op)

    def launch(warps: int, arrays: Arrays) -> Any:
        pointers = [address(array) for array in arrays]
        if op == "layernorm":
            arguments = [*pointers, number("i32", ROWS), number("f32", EPS)]
            function.bind((-(-ROWS // warps), 1, 1), (32 * warps, 1, 1), arguments)()
        else:
            arguments = [*pointers, number("i32", LENGTH), number("f32", SCALE_LOG2)]
            function.bind((-(-LENGTH // 64), HEADS, 1), (128, 1, 1), arguments)()
        return arrays[-1]

    return [Way("cuda", f"warps{w}", functools.partial(launch, w)) for w in (CUDA_WARPS if op == "layernorm" else (4,))]


def _triton(op: str) -> list[Way]:
    from .kernels import triton_kernels

    kernels: Any = triton_kernels

    def layernorm(options: dict[str, int], a: Arrays) -> Any:
        kernels.layernorm[(ROWS,)](*a, EPS, C=WIDTH, BLOCK=1024, **options)
        return a[-1]

    def attention(options: dict[str, int], a: Arrays) -> Any:
        grid = (-(-LENGTH // options["BM"]), HEADS)
        kernels.attention[grid](*a, LENGTH, SCALE_LOG2, D=SIZE, **options)
        return a[-1]

    call, variants = (layernorm, TRITON_LAYERNORM) if op == "layernorm" else (attention, TRITON_ATTENTION)
    return [
        Way(
            "triton",
            "-".join(f"{key}{value}" for key, value in options.items()),
            functools.partial(call, dict(options)),
        )
        for options in variants
    ]


def _tiled(function: Function, grid: tuple[int, int], op: str, arrays: Arrays) -> Any:
    """cuTile's calling convention: each array as its pointer, its sizes and its strides, then the scalars."""
    scalar = number("f32", EPS if op == "layernorm" else SCALE_LOG2)
    function.bind((*grid, 1), (1, 1, 1), [*passed(*arrays), scalar])()
    return arrays[-1]
