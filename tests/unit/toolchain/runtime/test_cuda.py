"""The handles that a CUDA executor takes and gives back, and the calls it makes under its lock, with a fake driver."""

from __future__ import annotations

import gc
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolchain.bundles.bundle import BundleEntry, FileRef
from toolchain.contract.artifact import ptx, tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.op import CHANNEL
from toolchain.errors import DeviceError, LaunchError, NoRoom, UsageError
from toolchain.runtime import GPU
from toolchain.runtime import cuda_driver as module
from toolchain.runtime.cuda import CudaExecutor
from toolchain.runtime.executor import Loaded
from toolchain.runtime.launch import EntryLauncher

from .fake_driver import FakeDriver

BUNDLE: Any = SimpleNamespace(read=lambda file: file.sha256.encode())
GELU = EntrySpec("gelu_f32", "gelu", "py", "f32", grid=("N", "1", "1"))
CODE = tile_ir(b"", "13.4").form
ENTRY = BundleEntry(GELU, FileRef(Path("gelu"), "gelu"), CODE, {"sm_90": FileRef(Path("gelu.sm_90"), "cubin")})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    monkeypatch.setattr(module, "load", lambda: made)
    monkeypatch.setattr(module, "describe", lambda *_: GPU(0, "NVIDIA H200", (9, 0), 132, 141 * 2**30))
    return made


def used() -> tuple[CudaExecutor, list[Any]]:
    """An executor on which everything has been used once, and the objects that it handed out."""
    cuda = CudaExecutor()
    x, out = cuda.empty((4, 4), "f32"), cuda.empty((4, 4), "f32")
    EntryLauncher(cuda)(BUNDLE, ENTRY, {"x": x, "out": out})
    event = cuda.record()
    with cuda.capture() as graph:
        out.copy_from(x)
    graph.replay()
    return cuda, [x, out, event, graph]


def test_close_gives_everything_back(fake: FakeDriver) -> None:
    cuda, handed_out = used()
    assert set(fake.left) == set(fake.GIVES_BACK.values()) - {"cuGraphDestroy"}
    cuda.close()
    assert fake.left == {}
    assert fake.names()[-2:] == ["cuCtxSetCurrent", "cuDevicePrimaryCtxRelease"]  # the context last
    calls = len(fake.calls)
    cuda.close()
    del handed_out, cuda
    gc.collect()
    assert len(fake.calls) == calls


def test_what_was_handed_out_cannot_be_used_after_close(fake: FakeDriver) -> None:
    del fake
    cuda, (x, out, event, graph) = used()
    cuda.close()
    for use in (
        x.numpy, lambda: out.fill(0), graph.replay, lambda: event.us_since(event), cuda.synchronize, cuda.record,
        lambda: cuda.empty((4,), "f32"), lambda: cuda.capture().__enter__(), lambda: cuda.adopt(16, 0, lambda: None),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=r"closed|freed"):
            use()
    with pytest.raises(LaunchError, match="freed"):
        EntryLauncher(cuda)(BUNDLE, ENTRY, {"x": x, "out": out})


def test_an_executor_is_closed_at_the_end_of_its_with(fake: FakeDriver) -> None:
    with pytest.raises(ZeroDivisionError), CudaExecutor() as cuda:
        cuda.empty((4,), "f32").fill(1 / 0)
    assert cuda.closed
    assert fake.left == {}


def test_an_executor_that_nobody_has_gives_everything_back(fake: FakeDriver) -> None:
    for _ in range(2):
        used()
        gc.collect()
    assert fake.left == {}


def test_what_was_adopted_is_given_back_at_close(fake: FakeDriver) -> None:
    given: list[str] = []
    fake.called("cuInit", ())
    cuda = CudaExecutor()
    _kept = cuda.adopt(0x100, 0, lambda: given.append("back"))
    cuda.close()
    assert given == ["back"]


def test_close_inside_a_capture_is_refused(fake: FakeDriver) -> None:
    cuda = CudaExecutor()
    with pytest.raises(UsageError, match="cannot be closed inside a capture"), cuda.capture():
        cuda.close()
    cuda.close()
    assert fake.left == {}


def test_an_error_at_close_leaves_nothing_behind(fake: FakeDriver) -> None:
    cuda, _handed_out = used()
    fake.failing = {"cuStreamSynchronize"}
    with pytest.raises(DeviceError, match="waiting for gelu_f32"):
        cuda.close()
    assert cuda.closed
    assert fake.left == {}


@pytest.mark.parametrize("call", ["cuStreamCreate", "cuMemPoolCreate", "cuMemPoolSetAttribute"])
def test_an_executor_that_cannot_be_made_leaves_nothing_behind(fake: FakeDriver, call: str) -> None:
    fake.failing = {call}
    with pytest.raises(DeviceError, match=call):
        CudaExecutor()
    assert fake.left == {}


def test_a_graph_that_cannot_be_made_leaves_nothing_behind(fake: FakeDriver) -> None:
    cuda = CudaExecutor()
    buffer = cuda.empty((4,), "f32")
    fake.failing = {"cuGraphInstantiate"}
    with pytest.raises(DeviceError, match="cuGraphInstantiate"), cuda.capture():
        buffer.fill(1)
    assert fake.made["cuGraphDestroy"] == []


# What puts work on the stream, or changes what is remembered of it.
LOCKED = {
    "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync",
    "cuMemsetD32Async", "cuModuleLoadData", "cuLaunchKernelEx", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent",
    "cuEventDestroy", "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate", "cuGraphLaunch",
    "cuGraphExecDestroy",
}  # fmt: skip


def test_work_is_put_on_the_stream_under_the_lock(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """While such a call runs, another thread cannot take the lock."""
    cuda = CudaExecutor()
    unlocked: list[str] = []
    waited_with_lock: list[str] = []
    ordinary = fake.called

    def free() -> bool:
        got: list[bool] = []

        def take() -> None:
            got.append(cuda.lock.acquire(blocking=False))
            if got[0]:
                cuda.lock.release()

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        return got[0]

    def called(name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        if name in LOCKED and free():
            unlocked.append(name)
        if name in ("cuStreamSynchronize", "cuEventSynchronize") and not free():
            waited_with_lock.append(name)
        return ordinary(name, args)

    monkeypatch.setattr(fake, "called", called)
    x, out = cuda.empty((4, 4), "f32"), cuda.empty((4, 4), "f32")
    x.copy_from(x.numpy())
    EntryLauncher(cuda)(BUNDLE, ENTRY, {"x": x, "out": out})
    cuda.wait_for(7)
    cuda.record().us_since(cuda.record())
    with cuda.capture() as graph:
        x.fill(1)
        out.copy_from(x)
    graph.replay()
    cuda.synchronize()
    out.free()
    del graph
    assert {name for name, _ in fake.calls} >= LOCKED
    assert unlocked == []
    assert waited_with_lock == []


def test_a_replay_is_timed_while_somebody_wants_to_know(fake: FakeDriver) -> None:
    cuda = CudaExecutor()
    buffer = cuda.empty((4,), "f32")
    with cuda.capture() as graph:
        buffer.fill(1)
    with cuda.timed_replays() as seconds:
        graph.replay()
        graph.replay()
    graph.replay()
    assert len(seconds) == 2
    fake.failing = {"cuGraphLaunch"}
    with pytest.raises(DeviceError, match="replaying a graph"), cuda.timed_replays():
        graph.replay()


def test_a_graph_beside_another_is_on_a_stream_of_its_own(fake: FakeDriver) -> None:
    """It follows what was launched before, and what comes after follows both."""
    cuda = CudaExecutor()
    own, other = fake.made["cuStreamDestroy"]
    buffer = cuda.empty((4,), "f32")
    graphs: list[Any] = []
    for value in (1, 2):
        with cuda.capture(beside=True) as graph:
            buffer.fill(value)
        graphs.append(graph)
    fake.calls.clear()
    with cuda.beside() as start:
        graphs[0].replay()
        start(graphs[1])
    told = ("cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch")
    streams = [(name, int(args[0 if name == "cuStreamWaitEvent" else 1])) for name, args in fake.calls if name in told]
    assert streams == [
        ("cuEventRecord", own), ("cuStreamWaitEvent", other), ("cuGraphLaunch", own), ("cuGraphLaunch", other),
        ("cuEventRecord", other), ("cuStreamWaitEvent", own),
    ]  # fmt: skip
    assert "cuEventDestroy" not in fake.left


def test_what_runs_beside_others(fake: FakeDriver) -> None:
    """Graphs that were captured for it; after an error the streams are in order again."""
    cuda = CudaExecutor()
    with pytest.raises(UsageError, match="inside a capture"), cuda.capture(), cuda.beside():
        pass
    with cuda.capture() as ordinary:
        pass
    fake.calls.clear()
    with pytest.raises(UsageError, match="not captured to run beside"), cuda.beside() as start:
        start(ordinary)
    assert fake.names().count("cuStreamWaitEvent") == 2


def test_memory_is_counted_in_our_own_pool(fake: FakeDriver) -> None:
    cuda = CudaExecutor()
    (pool,) = fake.made["cuMemPoolDestroy"]
    fake.calls.clear()
    assert (cuda.used_bytes(), cuda.most_used_bytes(reset=True)) == (1, 1)
    assert [args[0] for name, args in fake.calls if "Pool" in name] == [pool] * 3


@pytest.mark.parametrize(("shared", "asked"), [(1024, False), (64 * 1024, True)])
def test_a_launch_takes_block_and_shared_memory_from_the_entry(fake: FakeDriver, shared: int, *, asked: bool) -> None:
    form = ptx("", block=(32, 4, 1), shared_bytes=shared).form
    cuda = CudaExecutor()
    x, out = cuda.empty((4, 4), "f32"), cuda.empty((4, 4), "f32")
    EntryLauncher(cuda)(BUNDLE, replace(ENTRY, form=form), {"x": x, "out": out})
    (config,) = [args[0] for name, args in fake.calls if name == "cuLaunchKernelEx"]
    assert (config.blockDimX, config.blockDimY, config.blockDimZ, config.sharedMemBytes) == (32, 4, 1, shared)
    assert [args[-1] for name, args in fake.calls if name == "cuFuncSetAttribute"] == [shared] * asked


def test_blocks_that_must_run_together_are_launched_so_or_not_at_all(fake: FakeDriver) -> None:
    cuda, entry = CudaExecutor(), replace(ENTRY, form=ptx("", block=(32, 1, 1), together=1).form)
    arguments = {"x": cuda.empty((4, 4), "f32"), "out": cuda.empty((4, 4), "f32")}
    fake.values["cuOccupancyMaxActiveClusters"] = 0
    with pytest.raises(NoRoom, match="clusters must run at the same time, and this GPU has room for 0"):
        EntryLauncher(cuda)(BUNDLE, entry, arguments)
    assert "cuLaunchKernelEx" not in fake.names()
    fake.values["cuOccupancyMaxActiveClusters"] = 16
    EntryLauncher(cuda)(BUNDLE, entry, arguments)
    (config,) = [args[0] for name, args in fake.calls if name == "cuLaunchKernelEx"]
    kinds = fake.CUlaunchAttributeID
    assert [attribute.id for attribute in config.attrs] == [
        kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, kinds.CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    ]  # fmt: skip
    assert (config.attrs[0].value.clusterDim.x, config.attrs[1].value.cooperative) == (1, 1)


def test_ranks_on_one_gpu_need_room_for_the_blocks_of_all(fake: FakeDriver) -> None:
    """Else one rank's wait for those that cannot begin."""
    spec = EntrySpec("broadcast_f32", "broadcast", "py", "f32", grid=("B", "1", "1"))
    entry = replace(ENTRY, spec=spec, form=ptx("", block=(32, 1, 1), together=1).form)
    fake.values["cuOccupancyMaxActiveClusters"] = 7
    refused = pytest.raises(NoRoom, match=r"2 ranks' 4 clusters each must run at the same time.* room for 7")
    for here, outcome in ((1, nullcontext()), (2, refused)):
        cuda = CudaExecutor()
        cuda.ranks, cuda.ranks_here = 2, here
        shapes = {"parts": (2, 4), "out": (4,), "flags": (2, 2, 4), "state": (4, 2)}
        given = {name: cuda.empty(shape, "i32" if name in CHANNEL else "f32") for name, shape in shapes.items()}
        with outcome:
            EntryLauncher(cuda)(BUNDLE, entry, {**given, "rank": 0, "root": 0})


@pytest.mark.usefixtures("fake")
def test_what_was_launched_is_known_by_the_hash_of_its_cubin() -> None:
    cuda, _handed_out = used()
    assert cuda.ran == {Loaded("py", "gelu_f32", "sm_90", "cubin")}
    cuda.ran.clear()
    cuda.synchronize()
    assert cuda.ran == set()


def test_a_lost_context_is_closed_without_a_word_to_the_driver(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error that lost it must be the one that is shown, and its handles no longer exist."""
    cuda, _handed_out = used()
    ordinary = fake.called

    def called(name: str, args: tuple[Any, ...]) -> tuple[Any, Any]:
        if name == "cuLaunchKernelEx":
            return fake.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, None
        return ordinary(name, args)

    monkeypatch.setattr(fake, "called", called)
    args = {"x": cuda.empty((4, 4), "f32"), "out": cuda.empty((4, 4), "f32")}
    with pytest.raises(DeviceError, match=r"launching gelu_f32.*the CUDA context is lost"), cuda:
        EntryLauncher(cuda)(BUNDLE, ENTRY, args)
    before = len(fake.calls)
    cuda.close()
    assert cuda.closed
    assert len(fake.calls) == before
