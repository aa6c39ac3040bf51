"""Runs every case on both executors and compares the bits of the results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toolchain.caching.cache import Cache
from toolchain.compiling import stages
from toolchain.contract.targets import BYTECODE
from toolchain.errors import ToolFailed
from toolchain.pinned.tools import pinned_fingerprint
from toolchain.runtime.modules import get_function, load_module
from toolchain.runtime.packing import Packed
from toolchain.tileir.bytecode import write
from toolchain.tileir.interpreter import Allocation, Pointer, Prepared

from .cases import BLOCKS, FLOATS, Case
from .values import NUMPY, Array, operands

if TYPE_CHECKING:
    from toolchain.runtime.cuda import CudaExecutor

EXAMPLES = 4  # elements that a row shows where the results differ
GRID = (BLOCKS, 1, 1)
_POISON = 0xA5  # in every byte of a result before the launch


@dataclass(frozen=True)
class Agreement:
    """One case on a GPU and on the interpreter.

    `unequal`: elements whose bits differ. Of these: `nans`, where both are NaN, of other bits; `one_nan`, where only
    one is. `ulps`: of the others the largest distance of the two results, counted in representable numbers; 0 for
    integers. `gpu`: sha256 of the GPU's result. `examples`: operands, the GPU's result, the interpreter's, as bits in
    hexadecimal."""

    name: str
    unequal: int
    gpu: str
    nans: int = 0
    one_nan: int = 0
    ulps: int = 0
    examples: Sequence[Sequence[str]] = ()


def compile_cases(cases: Sequence[Case], target: str, cache: Cache, jobs: int) -> dict[str, str]:
    """Puts the cubin of each case into the cache. Returns why tileiras refuses those that it does, by name."""
    refused: dict[str, str] = {}

    def compile_one(case: Case) -> None:
        try:
            cubin(case, target, cache)
        except ToolFailed as error:
            refused[case.name] = f"{error.version} exits with {error.returncode}"

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, cases))
    return refused


def cubin(case: Case, target: str, cache: Cache) -> bytes:
    """From the cache, or compiled. Raises ToolFailed, and ToolchainError where there is no compiler."""
    code = write(case.module, BYTECODE)
    name = stages.cubin_key("tile-ir", code, pinned_fingerprint("tileiras"), target)
    return cache.get_or_make(name, lambda: stages.assemble(code, target))


def on_interpreter(case: Case, given: Sequence[Array]) -> Array:
    """The result, (COUNT,) of its dtype."""
    out = _poisoned(case)
    memory = [Pointer(Allocation(array), 0) for array in (*given, out)]
    Prepared(case.module).launch("k", memory, GRID, sanitize=False)
    return out


def on_gpu(case: Case, given: Sequence[Array], gpu: CudaExecutor, image: bytes) -> Array:
    """The same on a GPU. Raises DeviceError."""
    out = _poisoned(case)
    function = get_function(gpu, load_module(gpu, image, f"loading {case.name}"), "k", 0, f"looking for {case.name}")
    buffers = [gpu.allocate(array.nbytes) for array in (*given, out)]
    for buffer, array in zip(buffers, (*given, out), strict=True):
        gpu.run("cuMemcpyHtoDAsync", buffer.address, array.ctypes.data, array.nbytes, gpu.stream)
    packed = Packed([buffer.address.to_bytes(8, "little") for buffer in buffers])
    gpu.launch(gpu.launch_config(GRID, (1, 1, 1), 0), (function, packed.address), case.name)
    gpu.run("cuMemcpyDtoHAsync", out.ctypes.data, buffers[-1].address, out.nbytes, gpu.stream)
    gpu.synchronize()
    for buffer in buffers:
        buffer.free()
    return out


def compare(case: Case, given: Sequence[Array], gpu: Array, cpu: Array) -> Agreement:
    """How far two results of a case are from each other."""
    digest = hashlib.sha256(gpu.tobytes()).hexdigest()
    bits = f"u{gpu.itemsize}"
    unequal = np.flatnonzero(gpu.view(bits) != cpu.view(bits))
    if not len(unequal):
        return Agreement(case.name, 0, digest)
    one, other = gpu[unequal], cpu[unequal]
    nan = [_is_nan(case, array) for array in (one, other)]
    both, single, numbers = nan[0] & nan[1], nan[0] ^ nan[1], ~(nan[0] | nan[1])
    ulps = _ulps(one[numbers], other[numbers]) if case.result in FLOATS and numbers.any() else 0
    # What says most first: a number beside a NaN, other numbers, other bits of NaN.
    order = np.argsort(np.where(single, 0, np.where(numbers, 1, 2)), kind="stable")
    shown = unequal[order[:EXAMPLES]]
    examples = tuple(
        tuple(f"{int(array.view(f'u{array.itemsize}')[at]):0{2 * array.itemsize}x}" for array in (*given, gpu, cpu))
        for at in shown
    )
    return Agreement(case.name, len(unequal), digest, int(both.sum()), int(single.sum()), ulps, examples)


def _is_nan(case: Case, array: Array) -> Array:
    return np.isnan(array.astype(np.float64)) if case.result in FLOATS else np.zeros(len(array), bool)


def _ulps(one: Array, other: Array) -> int:
    return int(max(abs(int(a) - int(b)) for a, b in zip(_place(one), _place(other), strict=True)))


def _place(array: Array) -> Array:
    """The number of each float in the order of all floats of its dtype."""
    bits = 8 * array.itemsize
    raw = array.view(f"u{array.itemsize}").astype(object)
    sign = 1 << (bits - 1)
    return np.array([-(x & (sign - 1)) if x & sign else x for x in raw], object)


def _poisoned(case: Case) -> Array:
    kind = NUMPY[case.result]
    return np.full(BLOCKS * 4096 * kind.itemsize, _POISON, np.uint8).view(kind)


def run_all(
    cases: Sequence[Case], gpu: CudaExecutor, cache: Cache, say: Callable[[str], None], keep: Path | None = None
) -> list[Agreement]:
    """Each case on both executors. `keep`: a folder for the GPU's results that differ."""
    found: list[Agreement] = []
    for number, case in enumerate(cases, 1):
        given = operands(case)
        there = on_gpu(case, given, gpu, cubin(case, gpu.gpu.target, cache))
        found.append(compare(case, given, there, on_interpreter(case, given)))
        if found[-1].unequal:
            say(f"{number} of {len(cases)}: {case.name}: {found[-1].unequal} differ")
            if keep is not None:
                np.save(keep / f"{number}.npy", there.view(f"u{there.itemsize}"))
    return found


def again(rows: Sequence[Agreement], cases: Mapping[str, Case]) -> list[Agreement]:
    """The rows of a run after a change of the interpreter. A result that has the recorded digest now is equal to the
    GPU's. How far another one is from it only a new run can tell, so its row stays."""

    def now(row: Agreement) -> Agreement:
        if not row.unequal:
            return row
        found = on_interpreter(cases[row.name], operands(cases[row.name]))
        return Agreement(row.name, 0, row.gpu) if hashlib.sha256(found.tobytes()).hexdigest() == row.gpu else row

    return [now(row) for row in rows]


def dump(path: Path, gpu: str, driver: str, refused: Mapping[str, str], rows: Sequence[Agreement]) -> None:
    """Writes what a GPU gave, as JSON with a line for each case."""
    head = json.dumps({"gpu": gpu, "driver": driver, "refused": dict(refused)}, indent=1).removesuffix("\n}")
    lines = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
    path.write_text(f'{head},\n "rows": [\n{lines}\n ]\n}}\n')
