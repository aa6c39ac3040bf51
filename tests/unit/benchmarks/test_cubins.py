"""Kernels of cubins on PyTorch's stream, with a driver and a PyTorch that only record."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.cute_runtime.fake import FakeGPU
from toolchain.bundles.bundle import Compiled, write
from toolchain.contract.artifact import TensorMap, ptx
from toolchain.contract.entry import EntrySpec
from toolchain.errors import DeviceError
from toolchain.runtime.layout import contiguous_strides
from toolchain.runtime.packing import number

STREAM = 77


class Event:
    """Each is recorded 250 us after the one before."""

    now = 0.0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        Event.now += 0.25
        self.at = Event.now

    def synchronize(self) -> None: ...

    def elapsed_time(self, later: Event) -> float:
        return later.at - self.at


class Graph:
    """What was launched when it was made; a replay says so again."""

    log: list[str] = []

    def __init__(self) -> None:
        self.start = len(Graph.log)

    def replay(self) -> None:
        Graph.log.append(f"replay {self.held[0]} x {len(self.held)}")

    @property
    def held(self) -> list[str]:
        return Graph.log[self.start : self.start + 10]


class Tensor:
    def __init__(self, at: int = 0x40000, shape: tuple[int, ...] = (4, 24)) -> None:
        self.at, self.shape = at, shape

    def data_ptr(self) -> int:
        return self.at

    def stride(self) -> tuple[int, ...]:
        return (32, 1) if len(self.shape) == 2 else contiguous_strides(self.shape)

    def element_size(self) -> int:
        return 2


@pytest.fixture
def cubins(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    Graph.log = []
    peers = ModuleType("benchmarks.peers.pytorch")
    cuda = SimpleNamespace(
        current_stream=lambda: SimpleNamespace(cuda_stream=STREAM), synchronize=lambda: None, Event=Event,
        CUDAGraph=Graph, graph=lambda _: nullcontext(),
        get_device_properties=lambda _: SimpleNamespace(multi_processor_count=132), current_device=lambda: 0,
    )  # fmt: skip
    peers.__dict__.update(Tensor=Tensor, torch=SimpleNamespace(cuda=cuda))
    monkeypatch.setitem(sys.modules, "benchmarks.peers.pytorch", peers)
    monkeypatch.delitem(sys.modules, "benchmarks.cubins", raising=False)
    module = importlib.import_module("benchmarks.cubins")
    yield module
    sys.modules.pop("benchmarks.cubins")


@pytest.fixture
def fake(gpu: FakeGPU) -> FakeGPU:
    gpu.sizes = (8, 4)
    return gpu


@pytest.mark.parametrize("shared", [0, 65536])
def test_a_launch_has_the_grid_the_stream_and_the_shared_memory(cubins: Any, fake: FakeGPU, shared: int) -> None:
    arguments = [number("i64", 5), number("i32", 6)]
    cubins.Function(b"cubin", "k", shared).bind((1, 2, 3), (128, 1, 1), arguments)()
    asked = [args[-1] for name, args in fake.calls if name == "cuFuncSetAttribute"]
    assert asked == [shared] * bool(shared)
    assert fake.launched == [((1, 2, 3, 128, 1, 1, shared), arguments)]
    assert fake.streams == [STREAM]
    assert [args[-1] for name, args in fake.calls if name == "cuModuleGetFunction"] == [b"k"]


def test_an_error_names_the_kernel(cubins: Any, fake: FakeGPU) -> None:
    launch = cubins.Function(b"cubin", "k").bind((1, 1, 1), (32, 1, 1), [number("i64", 5), number("i32", 6)])
    fake.failing = {"cuLaunchKernelEx"}
    with pytest.raises(DeviceError, match=r"launching k with grid \(1, 1, 1\)"):
        launch()


def test_an_array_is_its_pointer_sizes_and_strides(cubins: Any) -> None:
    made = cubins.passed(Tensor())
    assert made == [number("i64", 0x40000), *(number("i32", n) for n in (4, 24, 32, 1))]


def test_an_entry_of_a_bundle_gets_its_arrays_numbers_and_maps(cubins: Any, fake: FakeGPU, tmp_path: Path) -> None:
    grid = ("cdiv(T, 64) * B", "H", "1")
    spec = EntrySpec("k", "attention", "cute", "bf16", aligned=("q", "k", "v", "out"), grid=grid, targets=("sm_90",))
    maps = (TensorMap("k", (1, 8, 1, 16), 32),)
    code = ptx(".version 8.0", block=(256, 1, 1), shared_bytes=50000, maps=maps)
    bundle = write(tmp_path / "bundle", [Compiled(spec, code, {"sm_90": b"cubin"})], {})
    fake.sizes = (*[8, *[4] * 8] * 4, 4, 128)
    q, k, v, out = (Tensor(0x40000 * at, (2, 100, 3, 64)) for at in range(1, 5))
    function = cubins.EntryFunction(bundle, bundle.entries[0], "sm_90")
    function.on({"B": 2, "T": 100, "H": 3}, q, k, v, out, 0.125)()
    ((shape, content),) = fake.launched
    assert shape == (4, 3, 1, 256, 1, 1, 50000)
    assert content[9] == number("i64", 0x80000) and content[-2] == number("f32", 0.125)
    assert fake.boxes == [(16, 1, 8, 1)]


def test_a_map_is_of_its_arrays_dtype(cubins: Any, fake: FakeGPU, tmp_path: Path) -> None:
    """Rows of 8 bits beside an output of 16."""
    spec = EntrySpec("k", "linear_f8", "cute", "bf16", aligned=("x", "out"), grid=("1", "1", "1"), targets=("sm_90",))
    code = ptx(".version 8.0", block=(256, 1, 1), maps=(TensorMap("x", (4, 16)), TensorMap("out", (4, 8))))
    bundle = write(tmp_path / "bundle", [Compiled(spec, code, {"sm_90": b"cubin"})], {})
    fake.sizes = (8,)
    given = [Tensor(0x40000 * at) for at in range(1, 7)]
    cubins.EntryFunction(bundle, bundle.entries[0], "sm_90").on({"M": 4}, *given)
    assert fake.mapped == ["UINT8", "BFLOAT16"]


def test_sides_take_turns_in_an_order_of_their_own_and_warm_up(cubins: Any) -> None:
    sides = {name: lambda name=name: Graph.log.append(name) for name in "abc"}
    times = cubins.times_in_turn(sides)
    assert {name: len(measured) for name, measured in times.items()} == dict.fromkeys("abc", cubins.ROUNDS)
    assert all(us == pytest.approx(1e3 * 0.25 / cubins.LAUNCHES) for measured in times.values() for us in measured)
    replays = [line[len("replay ")] for line in Graph.log if line.startswith("replay")]
    rounds = ["".join(replays[i : i + 3]) for i in range(0, len(replays), 3)]
    assert len(rounds) == cubins.WARM_UP + cubins.ROUNDS
    assert all(sorted(turn) == ["a", "b", "c"] for turn in rounds) and len(set(rounds)) > 1
    assert cubins.processors() == 132
