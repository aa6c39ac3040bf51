"""A collective on all ranks with one call: our kernels on the interpreter, and from which size on it is NCCL's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from toolchain.bundles.bundle import Bundle
from toolchain.contract.entries import committed
from toolchain.contract.policy import Policy
from toolchain.errors import UsageError
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.peers import Collectives, Peers, open_peers

N = 12
Shape = tuple[int, ...]


@pytest.fixture
def peers() -> Iterator[Peers]:
    with open_peers(["cpu", "cpu"]) as opened:
        yield opened


@pytest.fixture
def collectives(peers: Peers, bundle: Bundle) -> Collectives:
    return Collectives(peers, [Launcher(bundle, "mlir", executor) for executor in peers.executors], "f32")


def parts_of(peers: Peers, shape: Shape) -> tuple[list[DeviceBuffer], list[np.ndarray[Any, Any]]]:
    """A part of each rank in a heap, and their values."""
    parts = peers.heap(4096).empty(shape, "f32")
    values = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) * (rank + 1) for rank in range(2)]
    for rank, value in enumerate(values):
        parts[rank].select(0, rank).copy_from(value)
    return parts, values


Wanted = Callable[[Sequence[np.ndarray[Any, Any]], int], Any]


@pytest.mark.parametrize(
    ("name", "part", "made", "wanted"),
    [
        ("all_reduce", (N,), (N,), lambda values, _: values[0] + values[1]),
        ("all_gather", (N,), (2, N), lambda values, _: np.stack(values)),
        ("reduce_scatter", (2, N), (N,), lambda values, rank: values[0][rank] + values[1][rank]),
        ("broadcast", (N,), (N,), lambda values, _: values[0]),
    ],
)
def test_all_ranks_get_their_result(
    name: str, part: Shape, made: Shape, wanted: Wanted, collectives: Collectives, peers: Peers
) -> None:
    parts, values = parts_of(peers, part)
    out = [executor.empty(made, "f32") for executor in peers.executors]
    getattr(collectives, name)(parts, out)
    peers.synchronize()
    for rank, buffer in enumerate(out):
        assert np.array_equal(buffer.numpy(), wanted(values, rank))


@pytest.mark.parametrize(("least", "by_nccl"), [(4 * N, True), (4 * N + 1, False)])
def test_large_messages_go_through_nccl_where_it_is_open(
    least: int, by_nccl: bool, peers: Peers, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[Shape, Shape]] = []
    fake = SimpleNamespace(all_reduce=lambda own, out: called.append((own[1].shape, out[1].shape)), close=lambda: None)
    launchers = [Launcher(bundle, "mlir", executor) for executor in peers.executors]
    policy = replace(bundle.policy(None), nccl_from={"all_reduce": least})
    monkeypatch.setattr(type(bundle), "policy", lambda *_: policy)
    parts, values = parts_of(peers, (N,))
    out = [executor.empty((N,), "f32") for executor in peers.executors]
    without = Collectives(peers, launchers, "f32")
    assert not without.by_nccl("all_reduce", 1 << 30)
    monkeypatch.setattr(peers, "nccl", fake)
    collectives = Collectives(peers, launchers, "f32")
    collectives.all_reduce(parts, out)
    peers.synchronize()
    assert called == ([((N,), (N,))] if by_nccl else [])
    if not by_nccl:
        assert np.array_equal(out[1].numpy(), values[0] + values[1])
    assert not collectives.by_nccl("broadcast", 1 << 30)  # not named in the policy


def test_launchers_of_other_executors_are_refused(peers: Peers, bundle: Bundle) -> None:
    launchers = [Launcher(bundle, "mlir", peers.executors[0])] * 2
    with pytest.raises(UsageError, match="one launcher for each of the peers"):
        Collectives(peers, launchers, "f32")


def test_the_policy_says_from_which_size_on() -> None:
    policy = next(iter(committed().policies.values()))
    table = {**policy.to_json(), "nccl_from": {"all_reduce": 1 << 20}}
    read = Policy.from_table(table, "test")
    assert read.nccl_from == {"all_reduce": 1 << 20} and read.to_json() == table
    with pytest.raises(UsageError, match="nccl_from"):
        Policy.from_table({**table, "nccl_from": {"all_reduce": "much"}}, "test")
