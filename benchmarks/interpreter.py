"""How fast the CPU interpreter is: microseconds per operation, and the GPT-2 forward.

    python benchmarks/interpreter.py                       # operations, then GPT-2 124M, B=1 T=64, bf16, source mlir
    python benchmarks/interpreter.py --source kernels_py --dtype f32 --tokens 16 --config nano

The forward is the public path: the source's bytecode in a bundle, a launcher, the CPU executor, sanitizing and not.
Times are the best of the repeats: what the machine can do when nothing else runs.
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gpt.config import preset
from gpt.model import GPT
from gpt.weights import random_weights
from toolchain import bundle
from toolchain.runtime import Launcher, open_executor
from toolchain.tileir import text
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared

REPEATS = 3
STEPS = 2000  # of the loop that an operation is timed in
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
}
HEAD = """
!tensor = !cuda_tile.tensor_view<64x64xf32, strides=[64,1]>
!half_tensor = !cuda_tile.tensor_view<64x64xbf16, strides=[64,1]>
!view = !cuda_tile.partition_view<tile=(64x64), !tensor>
!half_view = !cuda_tile.partition_view<tile=(64x64), !half_tensor>
cuda_tile.module @m {
entry @k(%p: tile<ptr<f32>>, %h: tile<ptr<bf16>>, %steps: tile<i32>) {
  %before = make_token : token
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
  for %i in (%zero to %steps, step %one) : tile<i32> {
    """
TAIL = """
    continue
  }
  return
}
}
"""


def best(run: Callable[[], object]) -> float:
    """Seconds, the fastest of some runs after one to warm up."""
    run()
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def loop_seconds(body: str, sanitize: bool) -> float:
    """The time of STEPS steps of a loop over `body`, without checking for races, which depends on the kernel."""
    prepared = Prepared(text.parse(f"{HEAD}{body}{TAIL}", filename="benchmark"))
    args = [Pointer(Allocation(np.ones(64 * 64, np.float32))), Pointer(Allocation(np.ones(64 * 64, np.uint16)))]
    return best(lambda: prepared.launch("k", [*args, STEPS], (1, 1, 1), sanitize))


def operations() -> None:
    print(f"{'operation':26}{'us':>8}{'us, sanitized':>15}")
    empty = {sanitize: loop_seconds("", sanitize) for sanitize in (False, True)}
    for name, body in OPERATIONS.items():
        # A store in a loop without a token from step to step would race with itself: only its plain time is shown.
        modes = (False,) if name.startswith("store") else (False, True)
        times = [(loop_seconds(body, s) - empty[s]) / STEPS * 1e6 for s in modes]
        print(f"{name:26}" + "".join(f"{t:>{w}.2f}" for t, w in zip(times, (8, 15), strict=False)))


def forward(source_module: str, config_name: str, dtype: str, tokens: int) -> None:
    source = importlib.import_module(source_module).SOURCE
    config = preset(config_name)
    entries = [spec for spec in source.entries() if spec.dtype == dtype]
    start = time.perf_counter()
    compiled = [bundle.Compiled(spec, source.bytecode(spec), "13.3", {}) for spec in entries]
    print(f"\n{len(entries)} entries of {source.name} to bytecode: {time.perf_counter() - start:.2f} s")
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (1, tokens)).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        made = bundle.write(Path(folder) / "bundle", compiled, {})
        for sanitize in (True, False):
            executor = open_executor("cpu", sanitize=sanitize)
            model = GPT(config, random_weights(config, 0), Launcher(made, source.name, executor), dtype)
            seconds = best(lambda model=model: model.forward(ids).numpy())
            how = "sanitizing" if sanitize else "not sanitizing"
            print(f"{config_name} forward, {source.name} {dtype}, B=1 T={tokens}, {how}: {seconds:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="kernels_mlir", help="the package of a kernel source (%(default)s)")
    parser.add_argument("--config", default="gpt2", help="a model size (%(default)s)")
    parser.add_argument("--dtype", default="bf16", help="%(default)s")
    parser.add_argument("--tokens", type=int, default=64, help="T (%(default)s)")
    options = parser.parse_args()
    operations()
    forward(options.source, options.config, options.dtype, options.tokens)


if __name__ == "__main__":
    main()
