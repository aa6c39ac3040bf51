"""A collective on all ranks with one call: by our kernels, and by NCCL from the size on from which it is faster."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import UsageError
from ..buffer import DeviceBuffer
from ..launch import Launcher
from .group import Peers


class Collectives:
    """`launchers`: one for each of the peers, in their order. Calls may be captured (Peers.capture).

    The parts are buffers of a symmetric heap, for each rank the view of all of them: what a kernel reads there it may
    read until the next collective, so they take turns (docs/several-gpus.md)."""

    def __init__(self, peers: Peers, launchers: Sequence[Launcher], dtype: str) -> None:
        if [launcher.executor for launcher in launchers] != list(peers.executors):
            raise UsageError("collectives take one launcher for each of the peers, in their order")
        self.peers, self.dtype = peers, dtype
        self._launchers = launchers
        self._nccl_from = launchers[0].bundle.policy(launchers[0].target).nccl_from if peers.nccl is not None else {}

    def by_nccl(self, collective: str, nbytes: int) -> bool:
        """Whether a message of so many bytes goes through NCCL: it is open, and the target's policy says so."""
        least = self._nccl_from.get(collective)
        return least is not None and nbytes >= least

    def all_reduce(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer]) -> None:
        """out (N) of each rank = the sum of all parts (R, N). Our kernel adds pairs of ranks in f32 and rounds once;
        NCCL's order is its own."""
        if self.by_nccl("all_reduce", out[0].nbytes) and self.peers.nccl is not None:
            self.peers.nccl.all_reduce(_own(parts), out)
        else:
            self._launch("all_reduce", parts, out)

    def all_gather(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer]) -> None:
        """out (R, N) of each rank = all parts (R, N)."""
        if self.by_nccl("all_gather", out[0].nbytes) and self.peers.nccl is not None:
            self.peers.nccl.all_gather(_own(parts), out)
        else:
            self._launch("all_gather", parts, out)

    def reduce_scatter(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer]) -> None:
        """out (N) of rank r = the sum of piece r of all parts (R, R, N)."""
        if self.by_nccl("reduce_scatter", _own(parts)[0].nbytes) and self.peers.nccl is not None:
            self.peers.nccl.reduce_scatter(_own(parts), out)
        else:
            self._launch("reduce_scatter", parts, out)

    def broadcast(self, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer], root: int = 0) -> None:
        """out (N) of each rank = the part of rank `root` of all parts (R, N)."""
        if self.by_nccl("broadcast", out[0].nbytes) and self.peers.nccl is not None:
            self.peers.nccl.broadcast(_own(parts), out, root)
        else:
            self._launch("broadcast", parts, out, root=root)

    def _launch(self, op: str, parts: Sequence[DeviceBuffer], out: Sequence[DeviceBuffer], **scalars: int) -> None:
        for rank, launch in enumerate(self._launchers):
            channel = self.peers.arguments(rank, op)
            launch(op, self.dtype, parts=parts[rank], out=out[rank], **scalars, **channel)


def _own(parts: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
    """Of each rank's view of all parts the rank's own part."""
    return [buffer.select(0, rank) for rank, buffer in enumerate(parts)]
