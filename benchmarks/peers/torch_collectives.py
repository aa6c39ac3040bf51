"""PyTorch's collectives, one process a GPU: NCCL's, and the one-shot and two-shot sums over its symmetric memory."""

from __future__ import annotations

import datetime
import functools
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..collectives.cases import COLLECTIVES, ITEM, SIZES, Row, launches, row, samples
from ..rows import by_rows
from .pytorch import torch

NCCL, SYMMETRIC = "NCCL", "PyTorch symmetric memory"
SHOTS = {"one-shot": "one_shot_all_reduce", "two-shot": "two_shot_all_reduce_"}
PRODUCTS = (8192, 4096)
LATER = 120  # seconds that a rank waits for another one


def measure(output: Path, ranks: int, sizes: Sequence[int] = SIZES, collectives: Sequence[str] = COLLECTIVES) -> None:
    """Writes `rows` and `versions` to a file of JSON. Every rank is a process, which ends when it has measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(_rank, (ranks, port, output, tuple(sizes), tuple(collectives)), nprocs=ranks)


def _rank(rank: int, ranks: int, port: int, output: Path, sizes: Sequence[int], collectives: Sequence[str]) -> None:
    torch.set_grad_enabled(False)
    torch.cuda.set_device(rank)
    group = torch.distributed
    group.init_process_group(
        "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=LATER), device_id=torch.device("cuda", rank),
    )  # fmt: skip
    rows: list[Row] = []
    for found in _rows(group, ranks, sizes, collectives):
        rows.append(found)
        if rank != 0:
            continue
        print(found, flush=True)
        versions = {"torch": torch.__version__, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}
        output.write_text(by_rows({"versions": versions, "rows": [asdict(each) for each in rows]}))
    group.destroy_process_group()


def _rows(group: Any, ranks: int, sizes: Sequence[int], collectives: Sequence[str]) -> Iterator[Row]:
    for collective in collectives:
        for nbytes in sizes:
            make = functools.partial(_nccl, group, collective, nbytes, ranks)
            yield _row(group, NCCL, collective, nbytes, "its choice", make)
    yield from _products(group, ranks, PRODUCTS)
    for shot, function in SHOTS.items():
        for nbytes in sizes if "all_reduce" in collectives else ():
            make = functools.partial(_symmetric, group, function, nbytes)
            yield _row(group, SYMMETRIC, "all_reduce", nbytes, shot, make)


def _products(group: Any, ranks: int, sizes: Sequence[int]) -> Iterator[Row]:
    """Products of n x n x n over all ranks with NCCL's collective behind or before them, and as PyTorch fuses them."""
    name = group.group.WORLD.group_name
    for size in sizes:
        part = size // ranks
        rows = torch.randn(size, part, device="cuda").bfloat16()  # K is split
        weight = torch.randn(part, size, device="cuda").bfloat16()
        whole, piece = (torch.empty(n, size, device="cuda", dtype=torch.bfloat16) for n in (size, part))
        mine = torch.randn(part, size, device="cuda").bfloat16()  # rows and columns are split
        every = torch.empty(size, size, device="cuda", dtype=torch.bfloat16)
        columns = torch.randn(size, part, device="cuda").bfloat16()
        out = torch.empty(size, part, device="cuda", dtype=torch.bfloat16)

        def scatter(a: Any = rows, b: Any = weight, parts: Any = whole, to: Any = piece) -> None:
            torch.mm(a, b, out=parts)
            group.reduce_scatter_tensor(to, parts)

        def gather(a: Any = mine, all_rows: Any = every, b: Any = columns, to: Any = out) -> None:
            group.all_gather_into_tensor(all_rows, a)
            torch.mm(all_rows, b, out=to)

        def fused_scatter(a: Any = rows, b: Any = weight) -> object:
            return torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, name)

        def fused_gather(a: Any = mine, b: Any = columns) -> object:
            return torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, name)

        nbytes = ITEM * size * part
        fused = "symmetric memory, fused"
        alone = (
            functools.partial(torch.mm, rows, weight, out=whole),
            functools.partial(torch.mm, every, columns, out=out),
        )
        for collective, variants in (
            ("matmul_reduce_scatter", {"mm alone": alone[0], NCCL: scatter, fused: fused_scatter}),
            ("all_gather_matmul", {"mm alone": alone[1], NCCL: gather, fused: fused_gather}),
        ):
            for variant, call in variants.items():
                yield _row(group, "PyTorch", collective, nbytes, f"{size}, {variant}", lambda c=call: c)


def _nccl(group: Any, collective: str, nbytes: int, ranks: int) -> Callable[[], object]:
    elements = nbytes // ITEM
    whole = torch.randn(elements, device="cuda").bfloat16()
    part = torch.randn(elements // ranks, device="cuda").bfloat16()
    return {
        "all_reduce": lambda: group.all_reduce(whole),
        "all_gather": lambda: group.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: group.reduce_scatter_tensor(part, whole),
        "broadcast": lambda: group.broadcast(whole, 0),
    }[collective]


def _symmetric(group: Any, function: str, nbytes: int) -> Callable[[], object]:
    from torch.distributed import _symmetric_memory as memory  # pyright: ignore[reportMissingImports]

    tensor = memory.empty(nbytes // ITEM, dtype=torch.bfloat16, device="cuda")
    tensor.normal_()
    name = group.group.WORLD.group_name
    memory.rendezvous(tensor, name)
    call = getattr(torch.ops.symm_mem, function)
    return lambda: call(tensor, "sum", name)


def _row(
    group: Any, side: str, collective: str, nbytes: int, variant: str, make: Callable[[], Callable[[], object]]
) -> Row:
    """All ranks take the same samples, and of each the shortest time counts: see cases."""
    try:
        mine = _samples(group, make(), launches(nbytes))
    except (RuntimeError, AttributeError) as error:  # the latter: a PyTorch without this one
        return Row(side, collective, nbytes, variant, error=" ".join(str(error).split())[:200])
    times: list[Any] = [None] * group.get_world_size()
    group.all_gather_object(times, mine)
    return row(side, collective, nbytes, variant, [min(each) for each in zip(*times, strict=True)])


def _samples(group: Any, call: Callable[[], object], count: int) -> list[float]:
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()

    def once() -> float:
        group.barrier()
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return 1e3 * float(start.elapsed_time(end)) / count

    return samples(once)


if __name__ == "__main__":
    began = time.perf_counter()
    measure(Path(sys.argv[1]), int(sys.argv[2]), collectives=sys.argv[3:] or COLLECTIVES)
    print(f"PyTorch's collectives took {time.perf_counter() - began:.0f} s", flush=True)
