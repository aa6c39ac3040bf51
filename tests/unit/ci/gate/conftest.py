"""Measurements as an H200 gives them, drawn from a seed, and bundles whose kernels nothing compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ci.gate.measurement import Measurement
from tests.unit.cubins import cubin
from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entries import entries_of

STATE = {
    "sm_clock_mhz": "1980",
    "memory_clock_mhz": "3201",
    "temperature_c": "50",
    "power_w": "300",
    "throttle": "none",
}
MakeMeasurement = Callable[..., Measurement]


@pytest.fixture
def measured() -> MakeMeasurement:
    """A measurement of a kernel that is `change` slower; `spread`: of each round's ratio."""

    def make(change: float = 0.0, spread: float = 0.005, rounds: int = 30, seed: int = 0, **other: Any) -> Measurement:
        draw = np.random.default_rng(seed)
        base = 100 * (1 + 0.03 * draw.random(rounds))  # the clock: both sides of a round feel it
        ours = base * (1 + change) * np.exp(spread * draw.standard_normal(rounds))
        fields: dict[str, Any] = {
            "case": "forward a", "source": "mlir", "ours_us": ours.tolist(), "base_us": base.tolist(),
            "states": [STATE, STATE],
        }  # fmt: skip
        return Measurement(**{**fields, **other})

    return make


MakeBundle = Callable[..., Bundle]


@pytest.fixture
def stored(tmp_path: Path) -> MakeBundle:
    """Writes a bundle of the bf16 entries of some ops from MLIR and Python, for sm_90. `codes`: the machine code of an
    entry, where it is not its name. `changed`: of an entry's spec."""

    def make(
        name: str, codes: Mapping[str, bytes] | None = None, ops: tuple[str, ...] = ("gelu",),
        changed: Callable[[Any], Any] = lambda spec: spec,
    ) -> Bundle:  # fmt: skip
        specs = [
            changed(spec)
            for source in ("mlir", "py")
            for spec in entries_of(source)
            if spec.op in ops and spec.dtype == "bf16" and spec.runs_on("sm_90")
        ]
        code = [(spec, (codes or {}).get(f"{spec.source}/{spec.symbol}", spec.symbol.encode())) for spec in specs]
        artifact = tile_ir(name.encode(), "13.4")
        rows = [Compiled(spec, artifact, {"sm_90": cubin(made, note=name)}) for spec, made in code]
        return write(tmp_path / name, rows, {"ptxas": {"version": name, "sha256": name}})

    return make
