"""What the executor finds wrong in a kernel: one class for each kind of mistake."""

from __future__ import annotations

from dataclasses import dataclass

from ....errors import SanitizerError, SourceError


@dataclass(frozen=True)
class FaultLocation:
    """Where a kernel goes wrong. `location`: file:line in Python, or empty. `thread`: in the block, or None for all of
    a warp."""

    kernel: str
    op: str
    location: str
    block: tuple[int, int, int]
    thread: int | None = None

    def __str__(self) -> str:
        at = f" at {self.location}" if self.location else ""
        who = f", thread {self.thread}" if self.thread is not None else ""
        return f"{self.kernel}: {self.op}{at}, block {self.block}{who}"


class Finding(SanitizerError):
    """A mistake in a kernel. `address`: the first byte, in its tensor; `tensor`: its name."""

    hint_text: str | None = None

    def __init__(self, site: FaultLocation, message: str, *, tensor: str = "", address: int | None = None) -> None:
        self.site, self.what, self.tensor, self.address = site, message, tensor, address
        super().__init__(f"{site}: {message}", hint=self.hint_text)


class OutOfBounds(Finding):
    """An access outside of a tensor."""

    hint_text = "a tile that does not divide the shape needs a predicate: where=..., inside=shape"


class Misaligned(Finding):
    """An access whose address is no multiple of its size."""


class Uninitialised(Finding):
    """Memory or a register is used that nothing has written."""

    hint_text = "write it before, and if another thread does, put a barrier between"


class Race(Finding):
    """Two accesses to the same bytes, one of them a write, with no barrier between."""

    hint_text = "a barrier between the two, such as sync_threads()"


class LaneRace(Race):
    """The same of two threads of a warp."""

    hint_text = "a warp_sync between the two"


class MissingWait(Finding):
    """An asynchronous copy or product is used, or its operands are overwritten, before somebody waited for it."""

    hint_text = "wait for it: cp_async_wait_group, the mbarrier, bulk_wait_group, wgmma.wait_group or tmem.wait_load"


class MissingFence(Finding):
    """What threads wrote is used by wgmma or TMA without a fence."""

    hint_text = (
        "after the writes and before the barrier: fence.proxy_async (for global memory fence.proxy_async_global), "
        "mbarrier.init_fence, or wgmma.fence"
    )


class Deadlock(Finding):
    """No warp can go on."""


class DivergentBarrier(Finding):
    """A barrier, or an instruction of a whole warp, that some of its threads do not reach."""


class Undefined(Finding):
    """An operation gets operands for which it has no result, such as a division by zero."""

    hint_text = "a predicate around the operation, or operands within its range"


class NoSemantics(SourceError):
    """An operation that the executor does not know."""
