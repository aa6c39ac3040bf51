"""Chains of launches, each of which reads what one before it wrote: the same bits whether they overlap or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from conformance.cells import borrows_from
from toolchain.bundles.bundle import Bundle
from toolchain.runtime import GPU, DeviceBuffer, Executor, Launcher
from toolchain.runtime.cuda import CudaExecutor
from toolchain.runtime.layout import NUMPY

pytestmark = pytest.mark.needs("gpu")
LENGTH, REPEATS = 50, 10
SHAPES = [(1, 40), (1, 768), (37, 200), (400, 1024)]  # of the activations (M, C)


class Arrays:
    """Activations `a` and `b` (M, C), matrices `v` and `w` (C, C), vectors (C), back to back in one allocation: where
    C is 40 they share cache lines."""

    def __init__(self, executor: Executor, dtype: str, m: int, c: int) -> None:
        self.executor = executor
        shapes = {"weight": (c,), "a": (m, c), "bias": (c,), "b": (m, c), "v": (c, c), "w": (c, c)}
        nbytes = {name: int(np.prod(shape)) * NUMPY[dtype].itemsize for name, shape in shapes.items()}
        assert all(n % 16 == 0 for n in nbytes.values())
        memory, at = executor.allocate(sum(nbytes.values())), 0
        random = np.random.default_rng(c)
        self.values = {name: random.standard_normal(shape).astype(NUMPY[dtype]) for name, shape in shapes.items()}
        self.named: dict[str, DeviceBuffer] = {}
        for name, shape in shapes.items():
            self.named[name] = executor.view(memory, at, shape, dtype)
            at += nbytes[name]

    def __getitem__(self, name: str) -> DeviceBuffer:
        return self.named[name]

    def reset(self) -> None:
        for name, value in self.values.items():
            self.named[name].copy_from(value)

    def read(self) -> list[bytes]:
        return [array.numpy().tobytes() for array in self.named.values()]


def step(launcher: Launcher, dtype: str, on: Arrays, n: int) -> None:
    """Launch `n` of a chain in which each reads the activation that the one before it wrote."""
    x, out = (on["a"], on["b"]) if n % 2 == 0 else (on["b"], on["a"])
    if n % 5 == 0:
        launcher("layernorm", dtype, x=x, weight=on["weight"], bias=on["bias"], out=out, eps=1e-5)
    elif n % 5 == 2:
        launcher("gelu", dtype, x=x, out=out)
    elif n % 5 == 4:
        launcher("linear_residual", dtype, x=x, weight=on["w"], bias=on["bias"], residual=x, out=out)
    else:
        launcher("linear", dtype, x=x, weight=on["w"], bias=on["bias"], out=out)


def step_with_new_weights(launcher: Launcher, dtype: str, on: Arrays, n: int) -> None:
    """Launch `n` of a chain of threes: the first makes a matrix that the third may read before it waits."""
    old, new = (on["v"], on["w"]) if n // 3 % 2 == 0 else (on["w"], on["v"])
    if n % 3 == 0:
        launcher("layernorm", dtype, x=old, weight=on["weight"], bias=on["bias"], out=new, eps=1e-5)
    elif n % 3 == 1:
        launcher("layernorm", dtype, x=on["a"], weight=on["bias"], bias=on["weight"], out=on["b"], eps=1e-5)
    else:
        launcher("linear", dtype, x=on["b"], weight=new, bias=on["bias"], out=on["a"])


Step = Callable[[Launcher, str, Arrays, int], None]


def chain(launcher: Launcher, dtype: str, on: Arrays, one: Step) -> bool:
    """Launch a chain. True if any launch began before the previous one ended."""
    executor, ahead = launcher.executor, False
    assert isinstance(executor, CudaExecutor)
    for n in range(LENGTH):
        one(launcher, dtype, on, n)
        ahead = ahead or len(executor._written or ()) > 1
    return ahead


@pytest.mark.parametrize("one", [step, step_with_new_weights])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_launches_that_overlap_give_the_same_bits(
    cuda: Executor, bundle: Bundle, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], dtype: str, one: Step
) -> None:
    on = Arrays(cuda, dtype, *shape)
    for source in bundle.sources:
        other = borrows_from(source)
        overlapping = Launcher(bundle, source, cuda, borrows_from=other)
        waits = overlapping.select("gelu", dtype, x=on["a"], out=on["b"]).form.waits
        on.reset()
        with monkeypatch.context() as patch:
            patch.setattr(GPU, "overlaps", False)
            assert not chain(Launcher(bundle, source, cuda, borrows_from=other), dtype, on, one)
        wanted = on.read()
        assert all(np.isfinite(on[name].numpy().astype(np.float32)).all() for name in on.named)

        for _ in range(REPEATS):
            on.reset()
            ahead = chain(overlapping, dtype, on, one)
            assert other or ahead == (cuda.gpu.overlaps and waits)  # of a source that borrows some kernels do not wait
            assert on.read() == wanted, source

        with cuda.capture() as graph:
            chain(overlapping, dtype, on, one)
        for _ in range(REPEATS):
            on.reset()
            graph.replay()
            assert on.read() == wanted, source
