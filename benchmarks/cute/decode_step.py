"""A decode step of GPT-2 124M in one CuTe kernel: `python -m benchmarks.cute.decode_step compile FOLDER` on any
machine, then `… run FOLDER [--output FILE]` on a GPU.

Each variant is checked against float64 before it is timed, and after, when its logits must have the same bits. A time
is the median of launches in a CUDA graph. A variant with marks writes the clocks of its warps beside its cubin.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from conformance.compare import benchmark_bound
from toolchain import command
from toolchain.errors import UsageError
from toolchain.runtime.driver import load

from .decode_case import make, reference

ARCH = "sm_90a"
LAUNCHES, REPLAYS = 20, 30
POINTS = 16


def variants(of: Any) -> dict[str, Any]:
    """By name. `of`: a `Step`."""
    return {
        "clusters_12": of(),
        "any_flying": of(flying=0),
        "clusters_14": of(clusters=14, units=(24, 48)),
        "clusters_15": of(clusters=15, units=(24, 32), flying=2),
        "each_adds": of(shared_sum=False),
        "marks": of(marks=True),
    }


def compile_all(folder: Path) -> None:
    """A cubin and a JSON for each variant."""
    from toolchain.compiling.stages import compile_ptx
    from toolchain.contract.sources import packages

    plan, module = (importlib.import_module(f"{packages()['cute']}.decode.{part}") for part in ("plan", "step"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, step in variants(plan.Step).items():
        kernel = module.decode_step(step)
        (folder / f"{name}.cubin").write_bytes(compile_ptx(kernel.ptx(ARCH).encode(), ARCH))
        more = {key: getattr(step, key) for key in ("threads", "blocks", "warps", "words")}
        said = asdict(step) | more | {"shared_bytes": kernel.shared_bytes}
        (folder / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n")


def run_all(folder: Path, output: Path | None, only: list[str]) -> int:
    """Checks and times all, prints their rows and writes JSON. Returns 1 if one of them failed. Raises UsageError where
    a variant is not in the folder."""
    names = only or sorted(path.stem for path in folder.glob("*.json"))
    missing = [name for name in names if not (folder / f"{name}.cubin").is_file()]
    if missing or not names:
        raise UsageError(
            f"{folder} has no cubin of {', '.join(missing) or 'any variant'}",
            hint=f"python -m benchmarks.cute.decode_step compile {folder}",
        )
    from ..peers.pytorch import torch  # only a GPU needs it

    print(torch.cuda.get_device_name(), flush=True)
    case, wanted, arrays = None, None, dict[str, Any]()
    rows: list[dict[str, Any]] = []
    for name in names:
        step = SimpleNamespace(**json.loads((folder / f"{name}.json").read_text()))
        if case is None:
            begun = time.perf_counter()
            case = make(step, token=1234, position=step.positions - 1)
            wanted = reference(case)
            arrays = {key: _on_gpu(torch, array) for key, array in case.arrays.items()}
            torch.cuda.synchronize()
            print(f"made in {time.perf_counter() - begun:.1f} s", flush=True)
        assert wanted is not None
        try:
            rows.append({"variant": name} | _one(torch, folder / f"{name}.cubin", step, wanted, arrays))
        except (RuntimeError, OSError) as error:  # the other variants are of interest all the same
            rows.append({"variant": name, "failed": f"{type(error).__name__}: {error}"})
        print(json.dumps(rows[-1]), flush=True)
    if output:
        said = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}
        output.write_text(json.dumps(said, indent=1) + "\n")
    return int(any("failed" in row for row in rows))


def _on_gpu(torch: Any, array: Any) -> Any:
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.name == "bfloat16":
        return torch.from_numpy(flat.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(flat).cuda()


def _one(torch: Any, cubin: Path, step: Any, wanted: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    mine = dict(arrays)
    for key, count, kind in (
        ("launches", step.blocks, torch.int32), ("sums", step.words, torch.int64),
        ("errors", step.blocks * step.warps, torch.int32),
    ):  # fmt: skip
        mine[key] = torch.zeros(count, dtype=kind, device="cuda")
    if step.marks:
        mine["marks"] = torch.zeros(
            step.blocks * step.layers * (step.warps + 1) * POINTS, dtype=torch.int64, device="cuda"
        )
    kernel = Launcher(cubin, step, list(mine.values()))
    row: dict[str, Any] = {"clusters_fit": kernel.clusters_fit}
    if kernel.clusters_fit < step.clusters:
        raise RuntimeError(f"{kernel.clusters_fit} of {step.clusters} clusters fit")
    for _ in range(2):
        kernel.launch(torch.cuda.current_stream().cuda_stream)
        torch.cuda.synchronize()
        row |= _check(wanted, mine)
    first = mine["logits"].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            kernel.launch(torch.cuda.current_stream().cuda_stream)
    times = list[float]()
    for replay in range(REPLAYS + 3):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        if replay >= 3:
            times.append(events[0].elapsed_time(events[1]) * 1000 / LAUNCHES)
    row |= _check(wanted, mine)
    if not torch.equal(first, mine["logits"]):
        raise RuntimeError("another launch has other bits")
    row |= {"us": round(statistics.median(times), 2), "least": round(min(times), 2), "most": round(max(times), 2)}
    if step.marks:
        shape = step.blocks, step.layers, step.warps + 1, POINTS
        np.save(cubin.with_suffix(".npy"), mine["marks"].cpu().numpy().reshape(shape))
    return row


def _check(wanted: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Raises RuntimeError for a wrong result."""
    late = int(arrays["errors"].abs().sum())
    if late:
        raise RuntimeError(f"{late} waits took too long")
    logits, right = arrays["logits"].double().cpu().numpy(), wanted["logits"]
    error = float(np.abs(logits - right).max() / np.abs(right).max())
    if not error <= benchmark_bound("decode_step", "bf16") or logits.argmax() != right.argmax():
        raise RuntimeError(f"error {error:.2g}, argmax {logits.argmax()} for {right.argmax()}")
    return {"error": float(f"{error:.2g}")}


class Launcher:
    """The kernel of a cubin with its arguments, launched cooperatively: all blocks run at once, or none."""

    def __init__(self, cubin: Path, step: Any, arrays: list[Any]) -> None:
        driver: Any = load()
        self.driver, self.step = driver, step
        self.module = self._ok(driver.cuModuleLoadData(cubin.read_bytes()))
        self.function = self._ok(driver.cuModuleGetFunction(self.module, b"decode_step"))
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._ok(driver.cuFuncSetAttribute(self.function, most, step.shared_bytes))
        values = list[Any]()
        for array in arrays:
            values += [ctypes.c_uint64(array.data_ptr()), ctypes.c_int32(array.numel()), ctypes.c_int32(1)]
        self.keep = arrays, values
        self.pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.clusters_fit = self._ok(driver.cuOccupancyMaxActiveClusters(self.function, self._config(0)))

    def _config(self, stream: int) -> Any:
        d = self.driver
        config = d.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = self.step.blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = self.step.threads, 1, 1
        config.sharedMemBytes, config.hStream = self.step.shared_bytes, stream
        cluster = d.CUlaunchAttribute()
        cluster.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = 8, 1, 1
        together = d.CUlaunchAttribute()
        together.id = d.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        together.value.cooperative = 1
        config.attrs, config.numAttrs = [cluster, together], 2
        return config

    def launch(self, stream: int) -> None:
        """Launches it once."""
        self._ok(self.driver.cuLaunchKernelEx(self._config(stream), self.function, ctypes.addressof(self.pointers), 0))

    def _ok(self, result: Any) -> Any:
        status, *values = result
        if int(status):
            raise RuntimeError(f"{status!r}")
        return values[0] if values else None


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute.decode_step", description=__doc__)
    parser.add_argument("do", choices=("compile", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    if asked.do == "compile":
        compile_all(asked.folder)
        return 0
    return run_all(asked.folder, asked.output, asked.only)


if __name__ == "__main__":
    raise SystemExit(command.run(main, set_up="on a GPU it needs torch and cuda-bindings, see docs/benchmarks.md"))
