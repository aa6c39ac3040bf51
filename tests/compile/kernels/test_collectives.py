"""Collectives on the interpreter, beyond their cases: many launches, counts that wrap around, ranks that stay away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.errors import DeviceError, LaunchError, SanitizerError
from toolchain.runtime import CpuExecutor, DeviceBuffer, Launcher
from toolchain.runtime.peers import Peers, open_peers

N = 40
SOURCES = pytest.mark.parametrize("source", ["mlir", "py"])


@pytest.fixture
def peers() -> Iterator[Peers]:
    with open_peers(["cpu", "cpu"]) as opened:
        yield opened


class Sums:
    """All-reduces of two buffers by turns: what one launch reads is written again only after the next one."""

    def __init__(self, peers: Peers, bundle: Bundle, source: str) -> None:
        self.peers = peers
        self.launchers = [Launcher(bundle, source, executor) for executor in peers.executors]
        heap = peers.heap(2 * 256)
        self.parts = [heap.empty((N,), "f32") for _ in range(2)]
        self.out = [executor.empty((N,), "f32") for executor in peers.executors]

    def launch(self, rank: int, turn: int, values: np.ndarray[Any, Any]) -> None:
        parts = self.parts[turn % 2][rank]
        parts.select(0, rank).copy_from(values)
        self.launchers[rank]("all_reduce", "f32", parts=parts, out=self.out[rank], **self.peers.arguments(rank))


def state_of(peers: Peers, rank: int) -> DeviceBuffer:
    found = peers.arguments(rank)["state"]
    assert isinstance(found, DeviceBuffer)
    return found


@SOURCES
def test_counts_go_on_from_launch_to_launch_and_wrap_around(source: str, peers: Peers, bundle: Bundle) -> None:
    least = np.iinfo(np.int32).max - 1
    for rank in range(2):
        flags = peers.arguments(rank)["flags"]
        assert isinstance(flags, DeviceBuffer)
        flags.select(0, rank).fill(least)
        state_of(peers, rank).slice(1, 0, 1).fill(least)
    sums = Sums(peers, bundle, source)
    for turn in range(4):
        values = np.arange(N, dtype=np.float32) + turn
        for rank in range(2):
            sums.launch(rank, turn, values * (rank + 1))
        peers.synchronize()
        assert all(np.array_equal(out.numpy(), 3 * values) for out in sums.out)
    assert state_of(peers, 0).numpy()[0].tolist() == [least + 4 - 2**32, 0]


@SOURCES
def test_graphs_of_all_ranks(source: str, peers: Peers, bundle: Bundle) -> None:
    sums = Sums(peers, bundle, source)
    ones = np.ones(N, np.float32)
    for rank in range(2):
        sums.launch(rank, 0, ones)
    with peers.capture() as graphs:
        for rank in range(2):
            for parts in sums.parts:
                parts[rank].select(0, rank).fill(rank + 2)
                arguments = peers.arguments(rank)
                sums.launchers[rank]("all_reduce", "f32", parts=parts[rank], out=sums.out[rank], **arguments)
    assert sums.out[0].numpy().tolist() == (2 * ones).tolist()  # what was captured has not run
    for _ in range(2):
        graphs.replay()
    peers.synchronize()
    assert [out.numpy().tolist() for out in sums.out] == [(5 * ones).tolist()] * 2


def test_a_rank_that_has_not_come_is_named(peers: Peers, bundle: Bundle) -> None:
    sums = Sums(peers, bundle, "mlir")
    sums.launch(0, 0, np.ones(N, np.float32))
    with pytest.raises(LaunchError, match=r"rank 0 waits in all_reduce_\w+ for rank 1, which has not launched it"):
        sums.out[0].numpy()
    sums.launch(1, 0, np.ones(N, np.float32))
    assert sums.out[0].numpy()[0] == 2


def test_ranks_that_launch_different_collectives(peers: Peers, bundle: Bundle) -> None:
    sums = Sums(peers, bundle, "mlir")
    sums.launch(0, 0, np.ones(N, np.float32))
    args = peers.arguments(1)
    with pytest.raises(LaunchError, match=r"rank 0 all_reduce_\w+, .*; rank 1 broadcast_\w+"):
        sums.launchers[1]("broadcast", "f32", parts=sums.parts[0][1], out=sums.out[1], root=0, **args)


def test_an_executor_without_peers_is_refused(peers: Peers, bundle: Bundle) -> None:
    cpu = CpuExecutor()
    parts, flags = cpu.empty((2, N), "f32"), cpu.empty((2, 2, 4), "i32")
    state, out = cpu.empty((4, 2), "i32"), cpu.empty((N,), "f32")
    del peers
    with pytest.raises(LaunchError, match="it is for 2 ranks, cpu interpreter is one of 1"):
        Launcher(bundle, "mlir", cpu)("all_reduce", "f32", parts=parts, out=out, flags=flags, state=state, rank=0)


@SOURCES
def test_one_that_gave_up_never_waits_again_and_says_for_whom(source: str, bundle: Bundle) -> None:
    with open_peers(["cpu", "cpu"], sanitize=False) as peers:
        sums = Sums(peers, bundle, source)
        state_of(peers, 0).slice(1, 0, 1).fill(5)  # rank 0 has come five times before, rank 1 never
        state_of(peers, 0).slice(1, 1, 2).fill(2)  # and it gave up on rank 1
        for rank in range(2):
            sums.launch(rank, 0, np.ones(N, np.float32))
        with pytest.raises(DeviceError, match=r"rank 0 .* gave up waiting for rank 1 .*: block 0 .*came 6 times, .* 1"):
            peers.synchronize()


@SOURCES
def test_the_sanitizer_finds_what_was_not_waited_for(source: str, peers: Peers, bundle: Bundle) -> None:
    """The parts are of an earlier launch of the other rank, which nothing has released to this one."""
    sums = Sums(peers, bundle, source)
    state_of(peers, 0).slice(1, 1, 2).fill(2)
    state_of(peers, 0).slice(1, 0, 1).fill(5)
    sums.launch(0, 0, np.ones(N, np.float32))
    with pytest.raises(SanitizerError, match=r"of device 0 reads .* that an earlier launch of device 1 writes"):
        sums.launch(1, 0, np.ones(N, np.float32))
