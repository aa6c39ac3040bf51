"""Compiles the study's kernels in cuTile and Tile IR text to cubins, without a GPU; times every language's compiler.

NVRTC and Triton are timed only where they are installed: `pip install triton nvidia-cuda-nvrtc`.
"""

from __future__ import annotations

import io
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolchain.errors import ToolchainError

from .nvrtc import compile_cuda
from .ops import CUTILE_ATTENTION, CUTILE_LAYERNORM, HERE, SIZE, WIDTH, Tile

TARGET, BYTECODE = "sm_90", "13.4"
CUTILE = {"layernorm": CUTILE_LAYERNORM, "attention": CUTILE_ATTENTION}
RUNS = 5


def build(folder: Path) -> None:
    """A cubin for each variant, and kernels.json with what a launch needs."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for op, variants in CUTILE.items():
        for tile in variants:
            rows.append(_write(folder, op, "cutile", tile.name, _cutile(op, tile), tile.constants.get("TQ", 1)))
        for tile in variants:
            if tile.constants.get("TQ", 64) == 64:  # the size that is written in the text
                made = _tile_ir(op, tile.hints)
                rows.append(_write(folder, op, "tile-ir", tile.name, made, tile.constants.get("TQ", 1)))
    (folder / "kernels.json").write_text(json.dumps(rows, indent=1) + "\n")


def _write(folder: Path, op: str, language: str, variant: str, bytecode: bytes, rows: int) -> dict[str, Any]:
    from toolchain.compiling.stages import assemble

    file = f"{op}-{language}-{variant}.cubin"
    (folder / file).write_bytes(assemble(bytecode, TARGET))
    print(folder / file, flush=True)
    return {"op": op, "language": language, "variant": variant, "file": file, "rows": rows}


def _tile_ir(op: str, hints: Mapping[str, int]) -> bytes:
    from toolchain.tileir.text import parse

    path = HERE / f"{op}.mlir"
    return _hinted(parse(path.read_text(), filename=str(path)), hints)


def _hinted(module: Any, hints: Mapping[str, int]) -> bytes:
    """The bytecode with compiler hints, for both languages in the same way: cuTile refuses some hints for 13.4."""
    from toolchain.tileir.bytecode.writer import write
    from toolchain.tileir.dialect.attrs import HintsAttr
    from toolchain.tileir.dialect.control import EntryOp
    from toolchain.tileir.passes.hints import HINTS

    entry = next(op for op in module.walk() if isinstance(op, EntryOp))
    if hints:
        entry.properties["optimization_hints"] = HintsAttr(((TARGET, tuple((HINTS[k], v) for k, v in hints.items())),))
    return write(module, BYTECODE)


def _cutile(op: str, tile: Tile) -> bytes:
    import cuda.tile as ct
    from cuda.tile.compilation import (
        ArrayConstraint,
        CallingConvention,
        KernelSignature,
        ScalarConstraint,
        export_kernel,
    )

    from toolchain.tileir.bytecode.reader import read

    from .kernels import cutile_kernels

    def array(rank: int, last: int) -> Any:
        return ArrayConstraint(
            ct.bfloat16, rank, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=[],
            may_alias_internally=False, stride_constant=[None] * (rank - 1) + [1], base_addr_divisible_by=16,
            stride_divisible_by=[last] * (rank - 1) + [1],
        )  # fmt: skip

    parameters = [*_ranks(op, array), ScalarConstraint(ct.float32), *tile.constants.values()]
    signature = KernelSignature(parameters, CallingConvention.cutile_python_v2(), symbol=op)
    out = io.BytesIO()
    export_kernel(
        getattr(cutile_kernels, op), [signature], out, output_format="tileir_bytecode", bytecode_version=BYTECODE
    )
    return _hinted(read(out.getvalue()), tile.hints)


def _ranks(op: str, array: Callable[[int, int], Any]) -> list[Any]:
    if op == "layernorm":
        return [array(2, WIDTH), array(1, 1), array(1, 1), array(2, WIDTH)]
    return [array(3, SIZE) for _ in range(4)]


# How long a compile takes


def _triton(op: str) -> bytes:
    import triton  # pyright: ignore[reportMissingImports]
    from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]

    from .kernels import triton_kernels

    pointers = dict.fromkeys(("x", "weight", "bias", "out", "q", "k", "v"), "*bf16")
    function = getattr(triton_kernels, op)
    scalars = {"eps": "fp32", "length": "i32", "scale_log2": "fp32"}
    constants = {"C": WIDTH, "BLOCK": 1024} if op == "layernorm" else {"D": SIZE, "BM": 128, "BN": 64}
    kinds = {**pointers, **scalars, **dict.fromkeys(constants, "constexpr")}
    signature = {name: kinds[name] for name in function.arg_names}
    source = triton.compiler.ASTSource(
        function, signature, {(function.arg_names.index(k),): v for k, v in constants.items()}
    )
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    return made.asm["cubin"]


def _assembled(bytecode: Callable[[str], bytes]) -> Callable[[str], bytes]:
    from toolchain.compiling.stages import assemble

    return lambda op: assemble(bytecode(op), TARGET)


COMPILERS: dict[str, Callable[[], Callable[[str], bytes]]] = {
    "cuda": lambda: compile_cuda,
    "triton": lambda: _triton,
    "cutile": lambda: _assembled(lambda op: _cutile(op, CUTILE[op][0])),
    "tile-ir": lambda: _assembled(lambda op: _tile_ir(op, {})),
}  # fmt: skip


def once(language: str, op: str) -> None:
    """Compiles one kernel in this process; prints the seconds."""
    start = time.perf_counter()
    cubin = COMPILERS[language]()(op)
    seconds = time.perf_counter() - start
    if not cubin.startswith(b"\x7fELF"):
        raise ToolchainError(f"{language}: {op}: what was made is no cubin")
    print(json.dumps({"seconds": round(seconds, 3), "bytes": len(cubin)}))


def seconds(say: Callable[[str], object]) -> list[dict[str, Any]]:
    """Seconds from source to cubin with imports, each in a process of its own, and without any cache."""
    rows: list[dict[str, Any]] = []
    for op in CUTILE:
        for language in COMPILERS:
            found: list[float] = []
            for _ in range(RUNS):
                words = [sys.executable, "-m", "benchmarks.studies.one_op", "once", language, op]
                ran = subprocess.run(
                    ["env", "TRITON_ALWAYS_COMPILE=1", *words], capture_output=True, text=True, check=False
                )
                if ran.returncode:
                    say(f"{op} in {language}: not run: {ran.stderr.strip().splitlines()[-1]}")
                    break
                found.append(json.loads(ran.stdout)["seconds"])
            if found:
                rows.append({"op": op, "language": language, "seconds": statistics.median(found), "runs": found})
                say(f"{op} in {language}: {statistics.median(found):.2f} s of {found}")
    return rows
