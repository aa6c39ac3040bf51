"""NCCL's collectives over a fake of its Python package: what is called, in which order, and what is refused."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.errors import DeviceError, ToolchainError, UsageError
from toolchain.runtime.cuda import CudaExecutor
from toolchain.runtime.peers import Peers, nccl, open_peers

from .conftest import MappingDriver

Executors = Callable[[Sequence[int]], list[CudaExecutor]]


class NCCLError(Exception):
    pass


class FakeNccl:
    """`calls`: name and arguments. `fails`: the call that raises."""

    NCCLError = NCCLError
    DataType = IntEnum("DataType", {"Int32": 2, "Float16": 6, "Float32": 7, "Bfloat16": 9})
    RedOp = IntEnum("RedOp", {"Sum": 0})

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails = ""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls.append((name, *args))
            if name == self.fails:
                raise NCCLError("unhandled system error")
            if name == "comm_init_all":
                return [f"comm {number}" for number in args[1]]
            return 23003 if name == "get_version" else None

        return call


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeNccl:
    made = FakeNccl()
    monkeypatch.setattr(nccl.importlib, "import_module", lambda _: made)
    return made


@pytest.fixture
def peers(api: FakeNccl, fake: MappingDriver, executors: Executors) -> Peers:
    del api
    fake.values["cuMemcpyDtoHAsync"] = 0
    return Peers(executors([0, 1]), nccl=True)


def test_a_collective_is_one_group_with_a_call_on_each_rank(api: FakeNccl, peers: Peers) -> None:
    assert peers.nccl is not None and peers.nccl.version == "2.30.3"
    parts, out = ([executor.empty((8,), "bf16") for executor in peers.executors] for _ in range(2))
    api.calls.clear()
    peers.nccl.all_reduce(parts, out)
    streams = [executor.stream for executor in peers.executors]
    assert api.calls == [
        ("group_start",),
        *(
            ("all_reduce", parts[rank].pointer, out[rank].pointer, 8, 9, 0, f"comm {rank}", streams[rank])
            for rank in range(2)
        ),
        ("group_end",),
    ]


@pytest.mark.parametrize(
    ("name", "shapes", "more", "said"),
    [
        ("all_gather", ((8,), (2, 8)), (), (8, 9)),
        ("reduce_scatter", ((2, 4), (4,)), (), (4, 9, 0)),
        ("broadcast", ((8,), (8,)), (1,), (8, 9, 1)),
    ],
)
def test_each_collective_counts_as_nccl_does(
    name: str, shapes: tuple[tuple[int, ...], ...], more: tuple[int, ...], said: tuple[int, ...], api: FakeNccl,
    peers: Peers,
) -> None:  # fmt: skip
    parts, out = ([executor.empty(shape, "bf16") for executor in peers.executors] for shape in shapes)
    getattr(peers.nccl, name)(parts, out, *more)
    found = next(call for call in api.calls if call[0] == name)
    assert found[3 : 3 + len(said)] == said


def test_what_nccl_cannot_take_is_refused(api: FakeNccl, peers: Peers) -> None:
    assert peers.nccl is not None
    first, second = peers.executors
    good = [executor.empty((2, 8), "f32") for executor in peers.executors]
    for parts, words in (
        (good[:1], "1 buffers for 2 ranks"),
        (good[::-1], "of another rank"),
        ([buffer.slice(1, 0, 4) for buffer in good], "not contiguous"),
        ([first.empty((2, 8), "f32"), second.empty((2, 4), "f32")], "of one shape"),
        ([executor.empty((16,), "f8E4M3FN") for executor in peers.executors], "f32, f16, bf16, i32"),
    ):
        with pytest.raises(UsageError, match=words):
            peers.nccl.all_reduce(parts, good)
    assert not [call for call in api.calls if call[0] == "all_reduce"]


def test_an_error_of_nccl_ends_the_group_and_names_the_call(api: FakeNccl, peers: Peers) -> None:
    assert peers.nccl is not None
    buffers = [executor.empty((8,), "f32") for executor in peers.executors]
    api.fails = "all_reduce"
    with pytest.raises(DeviceError, match="NCCL failed launching all_reduce: unhandled system error"):
        peers.nccl.all_reduce(buffers, buffers)
    assert api.calls[-1] == ("group_end",)


def test_closing_the_peers_closes_the_communicators_once(api: FakeNccl, peers: Peers, fake: MappingDriver) -> None:
    buffers = [executor.empty((8,), "f32") for executor in peers.executors]
    peers.close()
    peers.close()
    assert [call[1] for call in api.calls if call[0] == "comm_destroy"] == ["comm 0", "comm 1"]
    assert fake.left == {}
    with pytest.raises(UsageError, match="closed"):
        peers.nccl.all_reduce(buffers, buffers)  # type: ignore[union-attr]


def test_ranks_that_share_a_gpu_or_have_none_are_refused(api: FakeNccl, executors: Executors) -> None:
    del api
    with pytest.raises(UsageError, match="a GPU for each rank, not cuda:0, cuda:0"):
        nccl.Nccl(executors([0, 0]))
    with pytest.raises(UsageError, match="NCCL is for GPUs of one process"):
        open_peers(["cpu", "cpu"], nccl=True)


@pytest.mark.parametrize("error", [ImportError("No module named 'nccl'"), RuntimeError("libnccl.so.2 not found")])
def test_without_the_package_it_says_what_to_install(
    error: Exception, monkeypatch: pytest.MonkeyPatch, executors: Executors
) -> None:
    def absent(_: str) -> SimpleNamespace:
        raise error

    made = executors([0, 1])
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ToolchainError, match="NCCL") as caught:
        nccl.Nccl(made)
    assert "pip install nccl4py" in str(caught.value)
