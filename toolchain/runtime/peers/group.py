"""Peers: executors that share memory, opened and closed together. Those of all ranks in one process, or one in each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from ...contract.op import ops
from ...errors import DeviceError, NoGPU, UsageError
from ..buffer import DeviceBuffer
from ..cuda import CudaExecutor
from ..driver import GPU, gpus
from ..executor import PLACE, Executor, Graph
from .channel import Channel
from .cpu import CpuRank, Turns
from .heap import SymmetricHeap
from .nccl import Nccl
from .world import STEP_S, World

ACCESS = "GPUs reach each other through NVLink, or through PCIe below one root: see `nvidia-smi topo -p2p r`"


class Graphs:
    """One captured graph a rank."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._graphs = graphs

    def replay(self) -> None:
        """Starts all of them, in the order of the ranks."""
        for graph in self._graphs:
            graph.replay()


class Peers:
    """`executors`: those of this process, one a rank, in the order of the ranks. `ranks`: how many there are in all,
    `numbers`: which of them these are. `world`: the other processes; None if all ranks are in this one. `channel`: of
    all collectives that are not launched beside each other.

    Whoever launches a collective on one rank launches it on all, in the same order among their collectives. Of several
    processes all do the same: each makes its heaps, models and graphs in the same order."""

    def __init__(self, executors: Sequence[Executor], world: World | None = None, *, nccl: bool = False) -> None:
        """`nccl`: NCCL's communicators too, for large messages. Raises what Nccl does."""
        self.executors, self.world = tuple(executors), world
        self.ranks = len(self.executors) if world is None else world.ranks
        self.numbers = tuple(range(self.ranks)) if world is None else (world.rank,)
        self.nccl: Nccl | None = None
        self._heaps: list[SymmetricHeap] = []
        self._channels: list[Channel] = []
        devices = [executor.device for executor in self.executors]
        for executor in self.executors:
            executor.ranks, executor.ranks_here = self.ranks, devices.count(executor.device)
        try:
            self.channel = self.new_channel(self.executors[0].sms)
            if world is not None:
                world.describe_counts(self.channel.counts)
            if nccl:
                on_gpus = [executor for executor in self.executors if isinstance(executor, CudaExecutor)]
                if world is not None or len(on_gpus) < len(self.executors):
                    raise UsageError("NCCL is for GPUs of one process", hint="open the peers without it")
                self.nccl = Nccl(on_gpus)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """For people."""
        names = ", ".join(executor.name for executor in self.executors)
        return names if self.world is None else f"{self.ranks} processes, {names}"

    def heap(self, nbytes: int) -> SymmetricHeap:
        """New memory on every rank. It is freed with the peers, or by its own `close`."""
        made = SymmetricHeap(self.executors, nbytes, self.world)
        self._heaps.append(made)
        return made

    @property
    def apart(self) -> bool:
        """Whether each rank here has a GPU of its own. In several processes each always has."""
        gpus = [executor.device for executor in self.executors if executor.kind == "cuda"]
        return len(set(gpus)) == len(gpus)

    def new_channel(self, blocks: int) -> Channel:
        """Another channel, of at most so many blocks of a rank. Launches that run beside each other need one for each
        order of launches, and the blocks of all these channels must find room on a GPU at once: none of them ends
        before its peers have come."""
        heap = self.heap(Channel.nbytes(self.ranks, blocks))
        made = Channel(self.executors, heap, blocks, self.world)
        self._channels.append(made)
        return made

    def arguments(self, index: int, op: str = "") -> dict[str, DeviceBuffer | float]:
        """The arguments `flags`, `state` and `rank` of the collectives of an executor; with `op` those that this one
        takes of the channel: see Channel."""
        return self.channel.arguments(index, ops()[op] if op else None)

    def synchronize(self) -> None:
        """Waits for all ranks of this process. Raises the errors of launches, and DeviceError that names a rank which
        another one waited for in vain, or which has ended."""
        for executor in self.executors:
            executor.synchronize()
        if self.world is not None:
            self.world.check()
        for channel in self._channels:
            channel.check()

    def barrier(self, what: str, limit_s: float = STEP_S) -> None:
        """Waits until all processes have come here, if there are several. A rank that has launched a collective waits
        for the others on its GPU, but not as long as another one may load kernels. Raises DeviceError."""
        if self.world is not None:
            self.world.barrier(what, limit_s)

    def gather(self, what: str, arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """The arrays on the host of all ranks, given those of this process. Their dtype is the same."""
        return list(arrays) if self.world is None else self.world.exchange(what, arrays[0])

    def agree(self, what: str, value: Callable[[], str]) -> None:
        """Raises UsageError, on every rank, unless all processes have the same value."""
        if self.world is not None:
            self.world.agree(what, value())

    @contextmanager
    def capture(self) -> Generator[Graphs]:
        """Records the launches on all ranks inside the `with` instead of running them, into one graph a rank."""
        with ExitStack() as captures:
            graphs = [captures.enter_context(executor.capture()) for executor in self.executors]
            yield Graphs(graphs)

    def close(self) -> None:
        """Waits for all work and frees everything. A second call does nothing."""
        with ExitStack() as steps:  # all of them, even if one raises
            if self.world is not None:
                steps.callback(self.world.close)
            for executor in self.executors:
                steps.callback(executor.close)
            for heap in self._heaps:
                steps.callback(heap.close)
            if self.nccl is not None:
                steps.callback(self.nccl.close)
            for executor in self.executors:
                if not executor.closed:
                    steps.callback(executor.synchronize)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self.world is not None:
            self.world.fail(error)
        self.close()


def open_peers(devices: int | Sequence[str], *, sanitize: bool = True, nccl: bool = False) -> Peers:
    """Executors that share memory, one a rank.

    `devices`: how many, which are the first GPUs, or ranks on the CPU where there is no GPU; or their names, "cpu" for
    all or "cuda:0", "cuda:1", .... A GPU may be named twice: its ranks then share it, which is for tests. `sanitize`:
    on the CPU the interpreter traps undefined behaviour. `nccl`: large messages go through NCCL (see Collectives).

    Raises UsageError for other names and for GPUs of different kinds, NoGPU if there are fewer GPUs, DeviceError where
    one cannot reach the memory of another.
    """
    names = _first(devices) if isinstance(devices, int) else list(devices)
    if len(names) < 2:
        raise UsageError(f"{len(names)} device{'s' * (len(names) != 1)}: peers are at least 2")
    if set(names) == {"cpu"}:
        turns = Turns(len(names), sanitize=sanitize)
        return Peers([CpuRank(rank, len(names), turns, sanitize=sanitize) for rank in range(len(names))], nccl=nccl)
    matches = [PLACE.fullmatch(name) for name in names]
    if any(match is None or name in ("auto", "cpu") for name, match in zip(names, matches, strict=True)):
        raise UsageError(f"peers on {', '.join(names)}", hint="all of them cpu, or each a cuda:<number>")
    numbers = [int(match[1] or 0) for match in matches if match is not None]
    known = {gpu.index: gpu for gpu in gpus()}
    if missing := [number for number in numbers if number not in known]:
        raise NoGPU(
            f"there is no cuda:{missing[0]}: {len(known)} of the {len(set(numbers))} GPUs asked for",
            hint="see `nvidia-smi -L`; ranks on the CPU: cpu for each",
        )
    check_alike([known[number] for number in numbers])
    with ExitStack() as opened:
        executors = [opened.enter_context(CudaExecutor(number)) for number in numbers]
        check_access(executors)
        peers = Peers(executors, nccl=nccl)
        opened.pop_all()
    return peers


def _first(count: int) -> list[str]:
    """The names of the first GPUs, or of ranks on the CPU where there is none."""
    return [f"cuda:{number}" for number in range(count)] if gpus() else ["cpu"] * count


def check_alike(found: Sequence[GPU]) -> None:
    """Raises UsageError for GPUs of different kinds: one grid has to fit all, and one entry run on all."""
    kinds = {(gpu.compute_capability, gpu.sms): gpu for gpu in found}
    if len(kinds) > 1:
        shown = ", ".join(f"cuda:{gpu.index} {gpu.name} {gpu.target}, {gpu.sms} SMs" for gpu in kinds.values())
        raise UsageError(f"GPUs of different kinds cannot share a model: {shown}", hint="name GPUs of one kind")


def check_access(executors: Sequence[CudaExecutor]) -> None:
    """Raises DeviceError that names each pair of which one GPU cannot reach the other's memory."""
    numbers = [executor.gpu.index for executor in executors]
    _refuse(
        pair for executor in {each.gpu.index: each for each in executors}.values() for pair in _apart(executor, numbers)
    )


def check_reach(executor: CudaExecutor, numbers: Iterable[int]) -> None:
    """Raises DeviceError that names the GPUs whose memory this one cannot reach."""
    _refuse(_apart(executor, numbers))


def _apart(executor: CudaExecutor, numbers: Iterable[int]) -> list[tuple[int, int]]:
    own = executor.gpu.index
    others = sorted({*numbers} - {own})
    return [(own, other) for other in others if not executor.ask("cuDeviceCanAccessPeer", own, other)]


def _refuse(apart: Iterable[tuple[int, int]]) -> None:
    if shown := ", ".join(f"cuda:{one} to cuda:{other}" for one, other in apart):
        raise DeviceError(f"no peer access from {shown}", hint=ACCESS)
