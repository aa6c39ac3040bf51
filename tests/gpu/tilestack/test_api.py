"""`import tilestack` on a GPU: arrays of every library, their streams, and an operator of PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilestack as ts
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import Executor

pytestmark = pytest.mark.needs("gpu")
SHAPE = (5, 1500)


@pytest.fixture(scope="module")
def gelu(bundle: Bundle) -> ts.Kernel:
    return ts.load(bundle.root, entry="mlir/gelu_any_f32")


def exact(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = x.astype(np.float64)
    return wide * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))


def close(found: Any, x: np.ndarray[Any, Any]) -> bool:
    return float(np.abs(np.asarray(found) - exact(x)).max()) < 1e-5


def inputs() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal(SHAPE, np.float32)


def test_numpy_arrays_are_copied_there_and_back(gelu: ts.Kernel) -> None:
    x, out = inputs(), np.zeros((2, *SHAPE), np.float32)[:, :, ::-1][1]
    gelu(x, out)
    assert close(out, x)
    with pytest.raises(ts.LaunchError, match="the same array"):  # gelu's entries rely on two
        gelu(x, x)


@pytest.mark.needs("interpreter")
def test_the_interpreter_where_there_is_a_gpu(gelu: ts.Kernel) -> None:
    x = inputs()[:1, :100].copy()
    out = np.zeros_like(x)
    gelu(x, out, on="cpu")
    assert close(out, x)


@pytest.mark.needs("torch")
def test_tensors_are_neither_copied_nor_waited_for(gelu: ts.Kernel) -> None:
    """The launch follows what PyTorch has on its current stream, and precedes what comes after it there."""
    import torch

    x = inputs()
    source, side = torch.from_numpy(x).pin_memory(), torch.cuda.Stream()
    for cycles in (1, 1_000_000_000):  # the first time PyTorch loads what it launches, and waits for it
        out = torch.full(SHAPE, float("nan"), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(cycles)  # half a second: a launch elsewhere would read what is not there yet
            given = torch.zeros(SHAPE, device="cuda") + source.to("cuda", non_blocking=True)
            gelu(given, out)
            waited = side.query()
            twice = 2 * out
        side.synchronize()
        assert close(twice.cpu() / 2, x)
    assert not waited


@pytest.mark.needs("torch")
def test_a_launch_is_captured_by_pytorchs_graph(gelu: ts.Kernel) -> None:
    import torch

    given, out = torch.zeros(SHAPE, device="cuda"), torch.zeros(SHAPE, device="cuda")
    gelu(given, out)  # a module is not loaded inside a capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gelu(given, out)
    x = inputs()
    given.copy_(torch.from_numpy(x))
    graph.replay()
    assert close(out.cpu(), x)


@pytest.mark.needs("torch")
def test_tensors_on_the_cpu_and_mixed_with_others(gelu: ts.Kernel) -> None:
    import torch

    x = inputs()
    out = torch.zeros(SHAPE)
    gelu(torch.from_numpy(x), out)
    assert close(out, x)
    there = torch.zeros(SHAPE, device="cuda")
    gelu(x, there)
    assert close(there.cpu(), x)
    with pytest.raises(ts.LaunchError, match="x is on cuda:0, and the launch on the CPU"):
        gelu(there, out, on="cpu")


@pytest.mark.needs("torch")
def test_what_a_tensor_must_fulfil(gelu: ts.Kernel) -> None:
    import torch

    x = torch.zeros(SHAPE, device="cuda")
    with pytest.raises(ts.LaunchError, match=r"argument 0 \(x\) has stride 5 in dimension 1.*compiled for 1"):
        gelu(torch.zeros(SHAPE[::-1], device="cuda").T, x)
    with pytest.raises(ts.LaunchError, match=r"argument 1 \(out\) is f16.*must be of f32"):
        gelu(x, x.half())


@pytest.mark.needs("torch")
def test_an_operator_runs_in_a_compiled_function(gelu: ts.Kernel) -> None:
    import torch

    operator = gelu.as_torch_op("tilestack_tests::gelu", outputs={"out": torch.empty_like})
    x = torch.from_numpy(inputs()).cuda()
    torch.library.opcheck(operator, (x,))
    compiled = torch.compile(lambda x: operator(x) + 1, fullgraph=True, backend="aot_eager")
    assert close(compiled(x).cpu() - 1, inputs())


@pytest.mark.needs("cupy")
def test_arrays_of_cupy_on_its_current_stream(gelu: ts.Kernel) -> None:
    import cupy

    x = inputs()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        given, out = cupy.asarray(x), cupy.zeros(SHAPE, np.float32)
        gelu(given, out)
        found = out.get(stream=stream)
    assert close(found, x)


@pytest.mark.needs("torch")
def test_any_library_with_dlpack(gelu: ts.Kernel) -> None:
    import torch

    class Other:
        def __init__(self, tensor: Any) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> object:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.tensor.__dlpack_device__()

    x = inputs()
    out = torch.zeros(SHAPE, device="cuda")
    gelu(Other(torch.from_numpy(x).cuda()), Other(out))
    assert close(out.cpu(), x)


@pytest.mark.needs("toolchain", "torch")
def test_a_kernel_is_compiled_when_it_is_first_launched(tmp_path: Any) -> None:
    import torch

    from tests.unit.tilestack.api.conftest import SCALED

    (tmp_path / "scaled.mlir").write_text(SCALED)
    x = torch.arange(12.0, device="cuda").reshape(3, 4)
    out = torch.zeros_like(x)
    ts.load(tmp_path / "scaled.mlir")[3](x, 3.0, out)
    assert torch.equal(out, 3 * x)


def test_buffers_of_our_own_executors(gelu: ts.Kernel, cuda: Executor) -> None:
    """Their stream waits for no other, so the launch has ended when the call returns."""
    x = inputs()
    given, out = cuda.from_numpy(x), cuda.empty(SHAPE, "f32")
    out.fill(0)
    gelu(given, out)
    assert close(out.numpy(), x)


@pytest.mark.needs("torch")
def test_an_entry_in_cute(bundle: Bundle) -> None:
    """The first that the bundle has a cubin of: on Hopper it copies by tensor maps, which the launch makes."""
    import torch

    entries = bundle.entries_of("cute", "linear", "bf16")
    kernel = ts.load(bundle.root, entry=f"cute/{next(e.spec.symbol for e in entries if e.cubins)}")
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(size, device="cuda").bfloat16() for size in ((300, 264), (264, 392), (392,)))
    out = torch.empty(300, 392, device="cuda", dtype=torch.bfloat16)
    given = {"x": x, "weight": weight, "bias": bias, "out": out}
    for _ in range(2):
        kernel(*(given[parameter.name] for parameter in kernel.parameters))
    wanted = x.double() @ weight.double() + bias.double()
    assert ((out.double() - wanted).abs() / (1 + wanted.abs())).max() < 2**-7  # a bf16 has 8 bits
