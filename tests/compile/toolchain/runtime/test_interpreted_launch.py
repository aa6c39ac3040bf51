"""From a kernel to numbers on the CPU: exported bytecode, a bundle of it, launches through the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cuda.tile as ct
import numpy as np
import pytest
from cuda.tile import compilation

from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.errors import LaunchError, SanitizerError
from toolchain.runtime import Executor, Launcher, open_executor

pytestmark = pytest.mark.needs("toolchain")


def layernorm(x: Any, weight: Any, bias: Any, out: Any, eps: float, width: ct.Constant[int]) -> None:
    n = ct.bid(0)
    row = ct.load(x, index=(n, 0), shape=(1, width))
    centred = row - ct.sum(row, axis=1, keepdims=True) / width
    variance = ct.sum(centred * centred, axis=1, keepdims=True) / width
    scale = ct.load(weight, index=(0,), shape=(width,))
    shift = ct.load(bias, index=(0,), shape=(width,))
    ct.store(out, index=(n, 0), tile=centred / ct.sqrt(variance + eps) * scale + shift)


def array(rank: int) -> compilation.ArrayConstraint:
    return compilation.ArrayConstraint(
        ct.float32, rank, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
        stride_constant=(None,) * (rank - 1) + (1,),
    )  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder: Path = tmp_path_factory.mktemp("interpreted")
    spec = EntrySpec("layernorm_f32", "layernorm", "test", "f32", {"BC": 64}, where=("C <= BC",), grid=("N", "1", "1"))
    parameters = [array(2), array(1), array(1), array(2), compilation.ScalarConstraint(ct.float32), 64]
    signature = compilation.KernelSignature(
        parameters, compilation.CallingConvention.cutile_python_v2(), symbol=spec.symbol
    )
    file = folder / "layernorm.tilebc"
    compilation.export_kernel(
        ct.kernel(layernorm), [signature], str(file), output_format="tileir_bytecode", bytecode_version="13.3"
    )
    return write(folder / "bundle", [Compiled(spec, tile_ir(file.read_bytes(), "13.3"), {})], {})


@pytest.fixture
def cpu() -> Executor:
    return open_executor("cpu")


def arguments(cpu: Executor, width: int = 64) -> dict[str, Any]:
    random = np.random.default_rng(3)
    wide = cpu.from_numpy(random.standard_normal((5, 100)).astype(np.float32))
    weight, bias = (cpu.from_numpy(random.standard_normal(width).astype(np.float32)) for _ in range(2))
    out = cpu.empty((5, 100), "f32")
    out.fill(np.nan)
    return {"x": wide.slice(1, 8, 8 + width), "weight": weight, "bias": bias, "out": out.slice(1, 4, 4 + width)}


def wanted(args: dict[str, Any], eps: float) -> np.ndarray:
    x, weight, bias = (args[name].numpy().astype(np.float64) for name in ("x", "weight", "bias"))
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * weight + bias


@pytest.mark.parametrize("eps", [1e-5, 0.5])
def test_views_and_scalars_reach_the_kernel(bundle: Bundle, cpu: Executor, eps: float) -> None:
    args = arguments(cpu)
    Launcher(bundle, "test", cpu)("layernorm", "f32", **args, eps=eps)
    assert np.abs(args["out"].numpy() - wanted(args, eps)).max() < 1e-5


def test_a_graph_launches_again_on_new_input(bundle: Bundle, cpu: Executor) -> None:
    args = arguments(cpu)
    with cpu.capture() as graph:
        Launcher(bundle, "test", cpu)("layernorm", "f32", **args, eps=1e-5)
    assert np.isnan(args["out"].numpy()).all()
    args["x"].copy_from(np.random.default_rng(4).standard_normal((5, 64)).astype(np.float32))
    graph.replay()
    assert np.abs(args["out"].numpy() - wanted(args, 1e-5)).max() < 1e-5


def test_the_sanitizer_sees_what_the_entry_did_not_declare(bundle: Bundle, cpu: Executor) -> None:
    with pytest.raises(SanitizerError, match="layernorm_f32"):  # the kernel loads its whole tile without padding
        Launcher(bundle, "test", cpu)("layernorm", "f32", **arguments(cpu, width=48), eps=1e-5)


def test_a_width_that_no_entry_takes(bundle: Bundle, cpu: Executor) -> None:
    with pytest.raises(LaunchError, match="C <= BC does not hold"):
        Launcher(bundle, "test", cpu)("layernorm", "f32", **arguments(cpu, width=80), eps=1e-5)
