"""Finds out which buffers of a workspace may share memory, by recording the launches of the passes.

A buffer's contents matter from the launch that writes them to the last launch that reads them. Two buffers whose
contents matter at the same time must lie apart; all others may share memory. So the layout follows from the order of
the launches, and nobody has to state lifetimes by hand.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from toolchain.contract.op import ops
from toolchain.runtime import Allocation, DeviceBuffer, Executor

from .arena import ALIGNMENT, Arena, Span, plan
from .workspace import Shape, Workspace, nbytes, views


@dataclass(frozen=True)
class _Written:
    """Bytes `first` .. `stop` of a buffer, and the step that wrote them."""

    first: int
    stop: int
    step: int


class Recorder:
    """Takes the place of a Launcher. It runs nothing, and records which parts of `work` each launch reads and writes.
    `work` is a workspace of addresses without memory behind them."""

    def __init__(self, executor: Executor, shapes: Mapping[str, Shape]) -> None:
        self._executor, self._shapes = executor, shapes
        self._starts: dict[str, int] = {}
        end = 0
        for name, shape in shapes.items():
            self._starts[name] = end
            end += -(-nbytes(shape) // ALIGNMENT) * ALIGNMENT
        self._memory = _addresses(end)
        self.work: Workspace = views(executor, self._memory, shapes, self._starts)
        self._step = 0
        self._written: dict[str, list[_Written]] = {}
        self._matters: dict[str, set[int]] = {name: set() for name in shapes}
        self._given: set[str] = set()  # buffers read before a launch wrote them: the host fills these

    def elsewhere(self, shape: Sequence[int], dtype: str) -> DeviceBuffer:
        """A buffer for an argument that is not in the workspace."""
        return self._executor.view(_addresses(nbytes((tuple(shape), dtype))), 0, shape, dtype)

    @contextmanager
    def one_pass(self) -> Generator[None]:
        """Record one pass. Its launches do not read anything that an earlier pass wrote."""
        self._written = {name: [] for name in self._shapes}
        yield

    def __call__(self, op: str, _dtype: str, /, **args: DeviceBuffer | float) -> None:
        spec = ops()[op]
        arrays = {name: value for name, value in args.items() if isinstance(value, DeviceBuffer)}
        for param in spec.params:
            if param.name in arrays and (param.role == "input" or param.name in spec.updates):
                self._read(arrays[param.name])
        for param in spec.outputs:
            self._write(arrays[param.name])
        self._step += 1

    def arena(self) -> Arena:
        """The layout. Buffers that the host fills share no memory at any step, because a graph replays on them."""
        always = frozenset(range(self._step))
        return plan({
            name: Span(nbytes(shape), always if name in self._given else frozenset(self._matters[name]))
            for name, shape in self._shapes.items()
        })  # fmt: skip

    def _read(self, buffer: DeviceBuffer) -> None:
        if (place := self._place(buffer)) is None:
            return
        name, first, stop = place
        reached = first  # all bytes from `first` to here were written by launches
        for piece in sorted(self._written[name], key=lambda piece: piece.first):
            if piece.first < stop and first < piece.stop:
                self._matters[name].update(range(piece.step, self._step + 1))
                reached = max(reached, piece.stop) if piece.first <= reached else reached
        if reached < stop:
            self._given.add(name)

    def _write(self, buffer: DeviceBuffer) -> None:
        if (place := self._place(buffer)) is None:
            return
        name, first, stop = place
        kept = self._written[name]
        if buffer.layout.contiguous:  # otherwise the bytes between its elements are not overwritten
            kept = [
                left
                for piece in kept
                for left in (
                    _Written(piece.first, min(piece.stop, first), piece.step),
                    _Written(max(piece.first, stop), piece.stop, piece.step),
                )
                if left.first < left.stop
            ]
        self._written[name] = [*kept, _Written(first, stop, self._step)]
        self._matters[name].add(self._step)

    def _place(self, buffer: DeviceBuffer) -> tuple[str, int, int] | None:
        """The name of the workspace buffer that this is a view of, and the first and last byte there. None for a buffer
        outside the workspace, and for an empty one."""
        span = buffer.layout.span
        if buffer.allocation is not self._memory or not span:
            return None
        name = next(n for n, s in self._starts.items() if s <= buffer.offset < s + nbytes(self._shapes[n]))
        first = buffer.offset - self._starts[name]
        return name, first, first + span


def _addresses(count: int) -> Allocation:
    """An allocation of `count` addresses without memory behind them."""
    return Allocation(0, count, lambda _: None)
