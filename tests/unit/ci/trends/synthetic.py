"""Ten synthetic nights on an H100 and an H200, drawn from a seed: `python -m tests.unit.ci.trends.synthetic FOLDER`.

What is put in, and is to be found again:

- gelu py gets 8 % slower on both GPUs in night 6 (counted from 0), with another cubin
- linear mlir gets 12 % faster on both in night 3, with another cubin
- the H200 gets another driver in night 7, and attention py 5 % slower there with it, with the same cubins
- the tools change in night 2; no time changes with them
- softmax mlir has one bad night, 4, on the H100: 30 % slower
- layernorm mlir gets 6 % slower on the H200 in the last night
- the H100 did not run in night 5
"""

from __future__ import annotations

import hashlib
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from conformance.results.origin import Origin
from conformance.results.result import CellResult, Results
from toolchain.contract.op import cell_name
from toolchain.runtime.executor import Loaded

NIGHTS = 10
GPUS = {"NVIDIA H100 80GB HBM3": 1.25, "NVIDIA H200": 1.0}  # their times over those of the H200
H100, H200 = GPUS
US = {"gelu": 31.0, "linear": 68.0, "attention": 140.0, "softmax": 55.0, "layernorm": 9.5}
FIRST = datetime(2026, 11, 10, 2, 41, tzinfo=UTC)


def factor(op: str, source: str, gpu: str, night: int) -> float:
    """A cell's time over that of the first night."""
    match op, source, gpu:
        case "gelu", "py", _ if night >= 6:
            return 1.08
        case "linear", "mlir", _ if night >= 3:
            return 0.88
        case "attention", "py", name if night >= 7 and name == H200:
            return 1.05
        case "softmax", "mlir", name if night == 4 and name == H100:
            return 1.3
        case "layernorm", "mlir", name if night == NIGHTS - 1 and name == H200:
            return 1.06
        case _:
            return 1.0


def commit(night: int) -> str:
    return hashlib.sha256(f"commit {night}".encode()).hexdigest()[:40]


def night(at: int, gpu: str) -> Results:
    draw = random.Random(f"{at} {gpu}")
    release = "13.5.37" if at >= 2 else "13.4.92"
    rows: list[CellResult] = []
    kernels: list[Loaded] = []
    for op, us in US.items():
        for source in ("mlir", "py"):
            entry = f"{op}_bf16"
            code = f"{op} {source} {release} {at >= 6 if (op, source) == ('gelu', 'py') else at >= 3}"
            kernels.append(Loaded(source, entry, "sm_90", hashlib.sha256(code.encode()).hexdigest()))
            for scale, shape in ((1, "M=1024 N=1024"), (4, "M=4096 N=1024")):
                time = scale * us * GPUS[gpu] * factor(op, source, gpu, at) * draw.gauss(1, 0.004)
                spread = time * draw.uniform(0.002, 0.008)
                rows.append(
                    CellResult(
                        cell_name(op, source, "bf16", "sm_90"), source, op, "bf16", "sm_90", f"cuda:0 {gpu} sm_90",
                        shape, "passed", 0.01, 0.04, time, time_low_us=time - spread, time_high_us=time + spread,
                        entries=(entry,),
                    )
                )  # fmt: skip
    driver = "590.44.01" if gpu == H200 and at >= 7 else "580.159.04"
    device = {"executor": f"cuda:0 {gpu} sm_90", "kind": "cuda", "gpu": gpu, "address": "0", "target": "sm_90",
              "sms": 132, "driver": driver, "before": {}, "after": {}}  # fmt: skip
    origin = Origin(
        commit(at), "", ("tilestack", "matrix", "run"), (FIRST + timedelta(days=at)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        {"sha256": "ab" * 32, "commit": "", "changes": "", "cells": {}},
        {name: {"version": release, "sha256": release} for name in ("tileiras", "ptxas")},
        {"python": "3.12", "machine": "Linux", "packages": {"numpy": "2"}}, [device], kernels,
    )  # fmt: skip
    return Results({"seed": "1"}, rows, origin)


def write(folder: Path, nights: int = NIGHTS) -> Path:
    """Writes the nights, as the nightly job keeps them."""
    for at in range(nights):
        for number, gpu in enumerate(GPUS):
            if (gpu, at) != (H100, 5):
                path = folder / f"{at:02}" / f"results-{number}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(night(at, gpu).to_json())
    return folder


if __name__ == "__main__":
    print(f"wrote {write(Path(sys.argv[1]))}")
