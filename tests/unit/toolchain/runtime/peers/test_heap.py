"""The symmetric heap on the CPU: one memory that all ranks see, at the same offsets."""

from __future__ import annotations

import numpy as np
import pytest

from toolchain.errors import OutOfMemory, UsageError
from toolchain.runtime.peers import open_peers


def test_each_rank_reaches_every_row() -> None:
    with open_peers(["cpu"] * 3) as peers:
        heap = peers.heap(4096)
        first, second = heap.empty((2, 5), "f32"), heap.empty((3,), "i32")
        for rank in range(3):
            first[rank].select(0, rank).copy_from(np.full((2, 5), rank, np.float32))
            second[rank].select(0, rank).fill(7)
        for buffer in first:
            assert buffer.shape == (3, 2, 5)
            assert buffer.strides == (heap.stride // 4, 5, 1)
            assert buffer.numpy()[:, 1, 4].tolist() == [0, 1, 2]
        assert {buffer.offset for buffer in second} == {256}


def test_a_full_heap_says_what_is_left() -> None:
    with open_peers(["cpu"] * 2) as peers:
        heap = peers.heap(1000)  # rounded up to 1024
        heap.empty((200,), "f32")
        with pytest.raises(OutOfMemory, match="1024 bytes has 0 left, not 4"):
            heap.empty((1,), "f32")


def test_a_heap_beyond_32_bit_strides_is_refused() -> None:
    with open_peers(["cpu"] * 2) as peers, pytest.raises(UsageError, match="together at most 4294967296"):
        peers.heap(2**31 + 1)


def test_a_closed_heap_cannot_be_used() -> None:
    with open_peers(["cpu"] * 2) as peers:
        heap = peers.heap(1024)
        (buffer, _) = heap.empty((3,), "f32")
        heap.close()
        with pytest.raises(UsageError, match="after its memory was freed"):
            buffer.numpy()
