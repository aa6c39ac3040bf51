"""Ranks on the CPU. Each has a queue, as a GPU has a stream, and a collective runs when all ranks have come to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...contract.op import CHANNEL
from ...errors import LaunchError
from ..buffer import DeviceBuffer
from ..cpu import CpuExecutor, Step, interpreted

if TYPE_CHECKING:
    from ...contract.entry import EntrySpec
    from ...cute.executor.launches.entry import EntryLaunch
    from ...tileir.interpreter import Around, Launch


class Collective:
    """A launch that needs those of all other ranks."""

    def __init__(self, launch: Launch | EntryLaunch) -> None:
        self.launch = launch

    def __call__(self) -> None:
        raise AssertionError(f"{self.launch.symbol} runs together with the other ranks' launches")


class Turns:
    """The queues of all ranks. What one rank has to wait for keeps the rest of its queue."""

    def __init__(self, ranks: int, *, sanitize: bool) -> None:
        self._queues: list[deque[Step]] = [deque() for _ in range(ranks)]
        self._sanitize = sanitize

    def add(self, rank: int, steps: Sequence[Step]) -> None:
        """Adds to a rank's queue, and runs what can run. After an error nothing is left in any queue."""
        self._queues[rank].extend(steps)
        try:
            while self._one_round():
                pass
        except BaseException:
            for queue in self._queues:
                queue.clear()
            raise

    def _one_round(self) -> bool:
        """Runs what stands before each rank's next collective, and that if all ranks have come to it."""
        for queue in self._queues:
            while queue and not isinstance(queue[0], Collective):
                queue.popleft()()
        if not all(self._queues):
            return False
        from ...tileir import interpreter  # imported here because it needs xDSL

        launches = [step.launch for queue in self._queues if isinstance(step := queue.popleft(), Collective)]
        if len({launch.meeting for launch in launches}) > 1:
            each = "; ".join(f"rank {rank} {launch.meeting}" for rank, launch in enumerate(launches))
            raise LaunchError(
                f"the ranks do not launch the same collective: {each}",
                hint="launch the same collectives on every rank, in the same order and of the same sizes",
            )
        if by_threads := [launch for launch in launches if not isinstance(launch, interpreter.Launch)]:
            from ...cute.executor.launches.entry import launch_together

            launch_together(by_threads)
        else:
            interpreter.launch_together(
                [each for each in launches if isinstance(each, interpreter.Launch)], self._sanitize
            )
        return True

    def check_done(self, rank: int) -> None:
        """Raises LaunchError if a rank waits for another one that has not launched what it waits for."""
        if not self._queues[rank]:
            return
        waits = self._queues[rank][0]
        symbol = waits.launch.symbol if isinstance(waits, Collective) else "what was launched before"
        missing = ", ".join(str(other) for other, queue in enumerate(self._queues) if not queue)
        raise LaunchError(
            f"rank {rank} waits in {symbol} for rank {missing}, which has not launched it",
            hint="launch a collective on every rank before one of them is read or synchronized",
        )


class CpuRank(CpuExecutor):
    """One rank. `turns`: shared by all of them."""

    def __init__(self, rank: int, ranks: int, turns: Turns, *, sanitize: bool) -> None:
        super().__init__(sanitize=sanitize)
        self.name = f"{self.name}, rank {rank} of {ranks}"
        self.ranks = ranks
        self._rank, self._turns = rank, turns

    def step(self, spec: EntrySpec, launch: Launch, arrays: Sequence[DeviceBuffer]) -> Step:
        """A collective also says what this rank's other launches do with its own row of what all ranks reach: they have
        written an input before it, and read an output, before it and after it."""
        if not spec.op_spec.peers:
            return super().step(spec, launch, arrays)
        before: list[Around] = []
        after: list[Around] = []
        for param, array in zip((p for p in spec.params if p.dims), arrays, strict=True):
            if param.name not in spec.op_spec.peers or param.name in CHANNEL:
                continue
            before.append(_around(array.select(0, self._rank), writes=param.role == "input"))
            if param.role == "output":
                after.append(before[-1])
        return Collective(replace(launch, before=before, after=after))

    def step_of_threads(self, launch: EntryLaunch) -> Step:
        return Collective(launch) if launch.spec.op_spec.peers else super().step_of_threads(launch)

    def submit(self, buffers: Sequence[DeviceBuffer], step: Step) -> None:
        if self._capturing is not None:
            super().submit(buffers, step)
        else:
            self._turns.add(self._rank, [step])

    def replay(self, steps: Sequence[Step]) -> None:
        self.check_open()
        self._not_capturing("replay a graph")
        self._turns.add(self._rank, steps)

    def write(self, target: DeviceBuffer, array: np.ndarray[Any, Any]) -> None:
        self._not_capturing("copy from the host")
        array = array.copy()
        self._turns.add(self._rank, [lambda: super(CpuRank, self).write(target, array)])

    def read(self, source: DeviceBuffer) -> np.ndarray[Any, Any]:
        self._turns.check_done(self._rank)
        return super().read(source)

    def synchronize(self) -> None:
        super().synchronize()
        self._turns.check_done(self._rank)


def _around(buffer: DeviceBuffer, *, writes: bool) -> Around:
    from ...tileir import interpreter

    offsets = np.full((), buffer.offset, np.int64)
    for size, stride in zip(buffer.shape, buffer.layout.byte_strides, strict=True):
        offsets = offsets[..., None] + np.arange(size) * stride
    return interpreter.Around(interpreted(buffer.allocation), offsets.reshape(-1), buffer.layout.itemsize, writes)
