"""Measures the CPU interpreter: its start, microseconds per operation, and the forward pass of GPT-2."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import ml_dtypes
import numpy as np

from gpt.config import preset
from gpt.model import GPT
from gpt.parameters.weights import random_weights
from toolchain.bundles import bundle
from toolchain.caching.cache import Cache
from toolchain.compiling import pipeline
from toolchain.contract.sources import load_source
from toolchain.contract.targets import BYTECODE
from toolchain.knobs import ROOT, cache_dir
from toolchain.runtime import Launcher, open_executor
from toolchain.tileir import bytecode, text
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared
from toolchain.tileir.loading import modules_of
from toolchain.tileir.text import print_module

from .measurement import Measurement

STEPS = 2000  # iterations of the loop that times an operation
OPERATIONS = {
    "addi, scalar": "%r = addi %i, %one : tile<i32>",
    "cmpi, scalar": "%r = cmpi less_than %i, %one, signed : tile<i32> -> tile<i1>",
    "addf 64x64 f32": "%r = addf %a, %b : tile<64x64xf32>",
    "addf 64x64 bf16": "%r = addf %ah, %bh : tile<64x64xbf16>",
    "exp 64x64 f32": "%r = exp %a : tile<64x64xf32>",
    "ftof 64x64 f32 -> bf16": "%r = ftof %a : tile<64x64xf32> -> tile<64x64xbf16>",
    "mmaf 64x64x64 bf16": "%r = mmaf %ah, %bh, %a : tile<64x64xbf16>, tile<64x64xbf16>, tile<64x64xf32>",
    "reduce 64x64 f32": """%r = reduce %a dim=1 identities=[0.0 : f32] : tile<64x64xf32> -> tile<64xf32>
        (%x: tile<f32>, %y: tile<f32>) { %s = addf %x, %y : tile<f32>  yield %s : tile<f32> }""",
    "load_view 64x64 bf16": "%r, %t = load_view_tko weak %vh[%zero, %zero] : !half_view, tile<i32> -> "
    "tile<64x64xbf16>, token",
    "store_view 64x64 f32": "%t = store_view_tko weak %a, %v[%zero, %zero] token = %before : tile<64x64xf32>, "
    "!view, tile<i32> -> token",
    "load_ptr 4096 f32": "%r, %t = load_ptr_tko weak %ps : tile<4096xptr<f32>> -> tile<4096xf32>, token",
    "store_ptr 4096 f32": "%t = store_ptr_tko weak %ps, %flat token = %before : tile<4096xptr<f32>>, tile<4096xf32> "
    "-> token",
    "atomic_rmw 4096 f32, add": "%r, %t = atomic_rmw_tko relaxed device %ps, addf, %flat token = %before : "
    "tile<4096xptr<f32>>, tile<4096xf32> -> tile<4096xf32>, token",
    "atomic_cas 4096 f32": "%r, %t = atomic_cas_tko relaxed device %ps, %flat, %flat token = %before : "
    "tile<4096xptr<f32>>, tile<4096xf32> -> tile<4096xf32>, token",
    "ftoi 64x64 f32 -> i32": "%r = ftoi %a signed : tile<64x64xf32> -> tile<64x64xi32>",
    "scan 64x64 f32": """%r = scan %a dim=1 reverse=false identities=[0.0 : f32] : tile<64x64xf32> -> tile<64x64xf32>
        (%x: tile<f32>, %y: tile<f32>) { %s = addf %x, %y : tile<f32>  yield %s : tile<f32> }""",
}
HEAD = """
!tensor = !cuda_tile.tensor_view<64x64xf32, strides=[64,1]>
!half_tensor = !cuda_tile.tensor_view<64x64xbf16, strides=[64,1]>
!view = !cuda_tile.partition_view<tile=(64x64), !tensor>
!half_view = !cuda_tile.partition_view<tile=(64x64), !half_tensor>
cuda_tile.module @m {
entry @k(%p: tile<ptr<f32>>, %h: tile<ptr<bf16>>, %steps: tile<i32>) {
  %start = make_token : token
  %zero = constant <i32: 0> : tile<i32>
  %one = constant <i32: 1> : tile<i32>
  %tensor = make_tensor_view %p, shape = [64, 64], strides = [64, 1] : !tensor
  %half = make_tensor_view %h, shape = [64, 64], strides = [64, 1] : !half_tensor
  %v = make_partition_view %tensor : !view
  %vh = make_partition_view %half : !half_view
  %ah, %t0 = load_view_tko weak %vh[%zero, %zero] : !half_view, tile<i32> -> tile<64x64xbf16>, token
  %bh, %t1 = load_view_tko weak %vh[%zero, %zero] : !half_view, tile<i32> -> tile<64x64xbf16>, token
  %a = ftof %ah : tile<64x64xbf16> -> tile<64x64xf32>
  %b = ftof %bh : tile<64x64xbf16> -> tile<64x64xf32>
  %flat = reshape %a : tile<64x64xf32> -> tile<4096xf32>
  %count = iota : tile<4096xi32>
  %p1 = reshape %p : tile<ptr<f32>> -> tile<1xptr<f32>>
  %all = broadcast %p1 : tile<1xptr<f32>> -> tile<4096xptr<f32>>
  %ps = offset %all, %count : tile<4096xptr<f32>>, tile<4096xi32> -> tile<4096xptr<f32>>
  %end = for %i in (%zero to %steps, step %one) : tile<i32> iter_values(%before = %start) -> (token) {
    """
TAIL = """
    continue %AFTER : token
  }
  return
}
}
"""


def seconds(
    run: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:  # fmt: skip
    """The time of each run, after one run to warm up: the wall's, or that of another clock."""
    run()
    times: list[float] = []
    for _ in range(repeats):
        start = clock()
        run()
        times.append(clock() - start)
    return times


def _loop(body: str, sanitize: bool, repeats: int) -> list[float]:
    """Seconds of the processor of a loop of STEPS steps over `body`. One that writes is also checked for races."""
    tail = TAIL.replace("%AFTER", "%t" if "%before" in body else "%before")
    kernel = Prepared(text.parse(f"{HEAD}{body}{tail}", filename="benchmark"))
    ones = np.full(64 * 64, 0x3F80, np.uint16)  # of bf16; subnormal numbers would take longer
    args = [Pointer(Allocation(np.ones(64 * 64, np.float32))), Pointer(Allocation(ones))]
    return seconds(lambda: kernel.launch("k", [*args, STEPS], (1, 1, 1), sanitize), repeats, time.process_time)


def operations(repeats: int) -> Iterator[Measurement]:
    """Microseconds of each operation, with and without the sanitizer: the time of a loop over it, minus that of an
    empty loop; and of the numpy calls that it cannot do without."""
    empty = {sanitize: min(_loop("", sanitize, repeats)) for sanitize in (False, True)}
    calls = _numpy()
    for name, body in OPERATIONS.items():
        for sanitize in (False, True):
            times = [(t - empty[sanitize]) / STEPS * 1e6 for t in _loop(body, sanitize, repeats)]
            yield Measurement.of(f"{name}{', sanitized' if sanitize else ''}", "us", times)
        if name in calls:
            times = [t / STEPS * 1e6 for t in seconds(_repeated(calls[name]), repeats, time.process_time)]
            yield Measurement.of(f"{name}, numpy's own", "us", times)


def _repeated(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(STEPS):
            call()

    return run


def _numpy() -> dict[str, Callable[[], object]]:
    """The numpy calls that an operation cannot do without, by its name."""
    a = np.ones((64, 64), np.float32)
    half, flat, index = a.astype(ml_dtypes.bfloat16), a.reshape(-1), np.arange(64 * 64)
    sums = np.zeros_like(flat)

    def halves() -> object:
        parts = a.T
        while len(parts) > 1:
            parts = parts[: len(parts) // 2] + parts[len(parts) // 2 :]
        return parts

    def distances() -> object:
        parts, distance = a.T, 1
        while distance < 64:
            parts = np.concatenate((parts[:distance], parts[:-distance] + parts[distance:]))
            distance *= 2
        return parts

    def scatter() -> None:
        flat[index] = flat

    def update() -> None:
        sums[index] = sums.take(index) + flat

    def swap() -> None:
        old = sums.take(index)
        sums[index] = np.where(old == flat, flat, old)

    return {
        "addf 64x64 f32": lambda: a + a, "addf 64x64 bf16": lambda: (a + a).astype(half.dtype).astype(a.dtype),
        "exp 64x64 f32": lambda: np.exp(a, dtype=np.float64).astype(a.dtype),
        "ftof 64x64 f32 -> bf16": lambda: a.astype(half.dtype).astype(a.dtype), "mmaf 64x64x64 bf16": lambda: a @ a + a,
        "reduce 64x64 f32": halves, "scan 64x64 f32": distances, "load_view 64x64 bf16": lambda: half.astype(a.dtype),
        "store_view 64x64 f32": lambda: np.copyto(a, a), "load_ptr 4096 f32": lambda: flat.take(index),
        "store_ptr 4096 f32": scatter, "ftoi 64x64 f32 -> i32": lambda: np.trunc(a).astype(np.int32),
        "atomic_rmw 4096 f32, add": update, "atomic_cas 4096 f32": swap,
    }  # fmt: skip


def starting(repeats: int) -> Iterator[Measurement]:
    """Importing in a new process, and making a kernel of bytecode ready to run."""
    for what, module in (("tilestack", "tilestack"), ("the interpreter", "toolchain.tileir.interpreter")):
        program = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
        runs = [
            subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(repeats)
        ]
        yield Measurement.of(f"import of {what}", "ms", [float(run.stdout) * 1e3 for run in runs])
    path = ROOT / "kernels_mlir" / "layernorm.mlir"
    (module,) = modules_of(path.read_bytes(), str(path), path)
    lines, data = len(print_module(module).splitlines()), bytecode.write(module, BYTECODE)

    def prepare() -> None:
        made = Prepared(bytecode.read(data))
        for symbol in made.symbols:
            made.kernel(symbol)

    times = [1e3 * t for t in seconds(prepare, repeats)]
    yield Measurement.of(f"prepare {path.name}, {lines} lines", "ms", times)


def forward(module: str, config_name: str, dtype: str, tokens: int, repeats: int) -> Iterator[Measurement]:
    """The forward pass as a user runs it: a bundle, a launcher and the CPU executor, with and without the sanitizer."""
    with forwards(module, config_name, dtype, tokens, (True, False)) as (name, runs):
        for said, run in zip((", sanitized", ""), runs, strict=True):
            yield Measurement.of(f"{name}{said}", "s", seconds(run, repeats))


@contextmanager
def forwards(
    module: str, config_name: str, dtype: str, tokens: int, sanitized: Sequence[bool]
) -> Generator[tuple[str, list[Callable[[], object]]]]:
    """A name, and calls that run a forward pass each, of a model of its own, with or without the sanitizer."""
    source, config = load_source(module), preset(config_name)
    entries = [spec for spec in source.entries() if spec.dtype == dtype]
    cache = Cache(cache_dir())
    compiled = [bundle.Compiled(spec, pipeline.exported(module, spec, cache), {}) for spec in entries]
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (1, tokens)).astype(np.int32)
    weights = random_weights(config, 0)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        made = bundle.write(Path(folder) / "bundle", compiled, {})
        runs: list[Callable[[], object]] = []
        for sanitize in sanitized:
            executor = stack.enter_context(open_executor("cpu", sanitize=sanitize))
            model = GPT(config, weights, Launcher(made, source.name, executor), dtype)
            runs.append(lambda model=model: model.forward(ids).numpy())
        yield f"forward {config_name} {source.name} {dtype} B=1 T={tokens}", runs
