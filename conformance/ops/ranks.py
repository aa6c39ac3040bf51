"""Collectives: launched on all ranks, on the interpreter or on one GPU that all ranks share.

On one GPU the ranks' launches run side by side, each on a stream of its own. That is how a machine with one GPU checks
them; what NVLink does to them is checked on a machine with several (see docs/several-gpus.md).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.contract.op import CHANNEL, ops
from toolchain.errors import ConformanceError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.layout import dtype_name
from toolchain.runtime.peers import Peers, SymmetricHeap, open_peers
from toolchain.runtime.peers.channel import Channel

from ..cases import Case
from .inputs import Inputs

Array = NDArray[np.generic]
LAUNCHES = 2  # the second one finds the flags of the first


def launch_ranks(
    case: Case, dtype: str, inputs: Inputs, launcher: Launcher, places: Sequence[str] = (),
    gate: AbstractContextManager[Any] | None = None,
) -> tuple[Mapping[str, Array], Sequence[float]]:  # fmt: skip
    """What each rank's launch has made, by output and stacked over the ranks, and the times in µs: none on a GPU, where
    ranks that share it say nothing about ranks that do not. `places`: the ranks' devices, by default all that of the
    launcher. `gate`: held while the ranks run. Raises ConformanceError if two launches on the same inputs differ."""
    gate = gate or nullcontext()
    executor = launcher.executor
    place = "cpu" if executor.kind == "cpu" else f"cuda:{executor.device[1]}"
    with open_peers(places or [place] * case.dims[ops()[case.op].ranks]) as peers:
        launchers = [
            Launcher(launcher.bundle, launcher.source, each, launcher.target, borrows_from=launcher.borrows_from)
            for each in peers.executors
        ]
        for each in peers.executors:
            if isinstance(each, CpuExecutor) and isinstance(executor, CpuExecutor):
                each.by_threads = executor.by_threads
        nbytes = 2 * sum(array.nbytes + 512 for array in (*inputs.arrays.values(), *inputs.outputs.values()))
        heap = peers.heap(nbytes + 64 * case.dims["R"] * case.dims["B"])
        channel = Channel(peers.executors, heap, case.dims["B"])
        names = [param.name for param in ops()[case.op].results]
        found: list[Mapping[str, Array]] = []
        taken = 0.0
        for _ in range(LAUNCHES):
            buffers = upload_ranks(case, inputs, peers, heap)
            # Captured first: a kernel that is loaded while another rank's runs on the same GPU would wait for its end.
            with peers.capture() as graphs:
                for rank, launch in enumerate(launchers):
                    launch(
                        case.op, dtype, **buffers[rank], **{**inputs.scalars, **channel.arguments(rank, ops()[case.op])}
                    )
            with gate:
                started = time.perf_counter()
                graphs.replay()
                for each in peers.executors:
                    each.synchronize()
                taken = (time.perf_counter() - started) * 1e6
            channel.check()
            found.append({name: stacked(case.op, name, buffers) for name in names})
        for executor_of in launchers:
            launcher.executor.ran |= executor_of.executor.ran
    for name, first in found[0].items():
        if not all(first.tobytes() == other[name].tobytes() for other in found[1:]):
            raise ConformanceError(f"{case.op} {dtype}: {name} differs from launch to launch, on the same inputs")
    return found[0], [taken] if executor.kind == "cpu" else []


def upload_ranks(case: Case, inputs: Inputs, peers: Peers, heap: SymmetricHeap) -> list[dict[str, DeviceBuffer]]:
    """Each rank's arguments, but for the channel."""
    symmetric, each_own, extra = ops()[case.op].peers, ops()[case.op].own, int(case.misaligned)
    made: list[dict[str, DeviceBuffer]] = [{} for _ in peers.executors]
    for name, array in {**inputs.arrays, **inputs.outputs}.items():
        if name in CHANNEL:
            continue
        of_ranks = name in symmetric or name in each_own
        shape = array.shape[1:] if of_ranks else array.shape
        # As run.py lays them out.
        padded, dtype = (*shape[:-1], shape[-1] + extra), dtype_name(array.dtype)
        everywhere = (
            heap.empty(padded, dtype) if name in symmetric else [e.empty(padded, dtype) for e in peers.executors]
        )
        for rank, buffer in enumerate(everywhere):
            view = made[rank][name] = buffer.slice(-1, extra, padded[-1])
            own = view.select(0, rank) if name in symmetric else view
            own.copy_from(np.ascontiguousarray(array[rank] if of_ranks else array))
    for executor in peers.executors:
        executor.synchronize()
    return made


def stacked(op: str, name: str, buffers: Sequence[Mapping[str, DeviceBuffer]]) -> Array:
    """An output of all ranks: of one in peer memory the rank's own row."""
    own = [each[name].select(0, rank) if name in ops()[op].peers else each[name] for rank, each in enumerate(buffers)]
    return np.stack([buffer.numpy() for buffer in own])
