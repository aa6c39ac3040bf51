"""One rank in a process of its own: on a GPU whose memory the other processes map, or on the CPU, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...contract.artifact import Form
from ...contract.entry import EntrySpec
from ...contract.op import CHANNEL
from ...errors import NoGPU, UsageError
from ..buffer import DeviceBuffer
from ..cpu import CpuExecutor, Step
from ..cuda import CudaExecutor
from ..driver import GPU, gpus
from .group import Peers, check_reach
from .world import LOADING_S, Place, World

if TYPE_CHECKING:
    from ...cute.executor.launches.entry import EntryLaunch
    from ...tileir.interpreter import Launch

_MEETS_ONCE = frozenset(
    {
        "all_reduce",
        "all_reduce_layernorm",
        "all_reduce_rmsnorm",
        "all_gather",
        "reduce_scatter",
        "broadcast",
        "next_token_of_ranks",
    }
)


def open_rank(place: Place, on: str = "auto", *, sanitize: bool = True) -> Peers:
    """The peers as one of several processes sees them: `executors` is its own one alone.

    `on`: "cuda", "cpu" or "auto": GPUs if there are some. Raises UsageError for another device and for GPUs of
    different kinds, NoGPU if there are fewer GPUs than ranks, DeviceError if the ranks do not come together, or one
    cannot reach the memory of another.
    """
    if place.ranks < 2:
        raise UsageError("a run of 1 process: peers are at least 2")
    if on not in ("auto", "cpu", "cuda"):
        raise UsageError(f"{on} for each of {place.ranks} processes", hint="cuda: each takes the GPU of its number")
    found = () if on == "cpu" else gpus()
    if on == "cuda" and not found:
        raise NoGPU(
            f"rank {place.rank} finds no GPU", hint="see `nvidia-smi -L`; cpu runs the ranks on the interpreter"
        )
    name = f"cuda:{_own(found, place)}" if found else "cpu"
    world = World(place, name)
    with ExitStack() as opened:
        opened.callback(world.close)
        try:
            world.agree("kinds of GPU", _kind(found, place))
            if found:
                executor = opened.enter_context(CudaExecutor(_own(found, place)))
                _check_apart(executor, world)
            else:
                executor = opened.enter_context(ProcessRank(world, sanitize=sanitize))
            peers = Peers([executor], world)
        except BaseException as error:
            world.fail(error)
            raise
        opened.pop_all()
    return peers


def _own(found: Sequence[GPU], place: Place) -> int:
    """The number of this rank's GPU. A process that sees one GPU alone takes that: its launcher has chosen."""
    if len(found) > 1 and place.local >= len(found):
        raise NoGPU(f"rank {place.rank} finds {len(found)} GPUs for {place.ranks} ranks", hint="see `nvidia-smi -L`")
    return place.local if len(found) > 1 else 0


def _kind(found: Sequence[GPU], place: Place) -> str:
    if not found:
        return "cpu"
    own = found[_own(found, place)]
    return f"{own.name} {own.target}, {own.sms} SMs"


def _check_apart(executor: CudaExecutor, world: World) -> None:
    """Raises NoGPU if two ranks are on one GPU, DeviceError if this one cannot reach another one's memory."""
    uuid = executor.ask("cuDeviceGetUuid", executor.gpu.index)
    values: list[str] = world.meet("comparing GPUs", bytes(uuid.bytes).hex(), limit_s=LOADING_S).row["values"]
    if len(set(values)) < len(values):
        one = next(rank for rank, value in enumerate(values) if values.count(value) > 1)
        other = values.index(values[one], one + 1)
        raise NoGPU(f"rank {one} and rank {other} are on the same GPU: each takes one", hint="see `nvidia-smi -L`")
    if len(gpus()) >= world.ranks:
        check_reach(executor, range(world.ranks))


class ProcessRank(CpuExecutor):
    """A rank on the CPU. A collective runs in one process after the other, each of which finds flags as if the others
    had come: they have, or the processes would not have met. Kernels of PTX, whose blocks wait for each other in the
    middle of their work, run all together, in the process of rank 0."""

    def __init__(self, world: World, *, sanitize: bool) -> None:
        super().__init__(sanitize=sanitize)
        self.name = f"{self.name}, rank {world.rank} of {world.ranks}"
        self.ranks = world.ranks
        self._world = world

    def step(self, spec: EntrySpec, launch: Launch, arrays: Sequence[DeviceBuffer]) -> Step:
        alone = super().step(spec, launch, arrays)
        if not spec.op_spec.peers:
            return alone
        if spec.op not in _MEETS_ONCE:
            raise UsageError(
                f"{spec.symbol} cannot run in several processes on the CPU", hint="open the ranks in one process"
            )
        flags = next(a for p, a in zip((p for p in spec.params if p.dims), arrays, strict=True) if p.name == CHANNEL[0])
        return lambda: self._in_turn(launch, flags.select(0, self._world.rank), alone)

    def step_of_threads(self, launch: EntryLaunch) -> Step:
        return partial(self._by_first, launch) if launch.spec.op_spec.peers else super().step_of_threads(launch)

    def _by_first(self, launch: EntryLaunch) -> None:
        """Rank 0 gets what the others alone have, and gives back what became of it. What all ranks reach is there."""
        from ...cute.executor.launches.entry import launch_together

        world, spec, at = self._world, launch.spec, launch.spec.op
        world.barrier(launch.meeting, LOADING_S)
        entries = world.exchange(f"the entries of {at}", np.frombuffer(_dumped(launch), np.uint8))
        own = [param for param in spec.params if param.dims and param.name not in spec.op_spec.peers]
        given: dict[str, Sequence[NDArray[Any]]] = {
            param.name: [each.copy() for each in world.exchange(f"{param.name} of {at}", launch.arrays[param.name])]
            for param in own
        }
        if world.rank == 0:
            launch_together([
                _loaded(entry.tobytes(), {**launch.arrays, **{name: arrays[rank] for name, arrays in given.items()}})
                for rank, entry in enumerate(entries)
            ])  # fmt: skip
        for param in own:
            if param.role == "output":
                made = np.concatenate([each.reshape(-1) for each in given[param.name]])
                found = world.exchange(f"{param.name} made by {at}", made, LOADING_S)[0]
                first = sum(each.size for each in given[param.name][: world.rank])
                array = launch.arrays[param.name]
                array[...] = found[first : first + array.size].reshape(array.shape)

    def _in_turn(self, launch: Launch, flags: DeviceBuffer, alone: Step) -> None:
        """`flags` (R, B): this rank's own."""
        world, blocks = self._world, launch.grid[0]
        world.barrier(launch.meeting)
        for rank in range(world.ranks):
            if rank == world.rank:
                later = flags.slice(0, rank + 1, world.ranks).slice(1, 0, blocks)
                self._add(later, 1)
                alone()
                self._add(later, -1)
            world.barrier(f"{launch.symbol} after rank {rank}")

    def _add(self, flags: DeviceBuffer, count: int) -> None:
        if flags.shape[0]:
            self.write(flags, self.read(flags) + np.int32(count))


def _dumped(launch: EntryLaunch) -> bytes:
    """All but its arrays: a line of JSON, then the kernel. Each rank may have an entry of its own."""
    assert isinstance(launch.kernel, str)  # of a bundle
    row = {"spec": launch.spec.to_json(), "form": launch.form.to_json()}
    row |= {"grid": launch.grid, "scalars": dict(launch.scalars)}
    return json.dumps(row).encode() + b"\n" + launch.kernel.encode()


def _loaded(dumped: bytes, arrays: Mapping[str, NDArray[Any]]) -> EntryLaunch:
    """The launch that `_dumped` wrote, with these arrays."""
    from ...cute.executor.launches.entry import EntryLaunch

    head, _, kernel = dumped.partition(b"\n")
    row = json.loads(head)
    spec, form = EntrySpec.from_json(row["spec"]), Form.from_json(row["form"])
    x, y, z = row["grid"]
    return EntryLaunch(kernel.decode(), spec, form, arrays, row["scalars"], (x, y, z))
