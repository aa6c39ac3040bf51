"""A search of two made-up contests, and a worker that answers from a table instead of launching."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolchain.bundles.bundle import Bundle, Compiled, write
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from tune.catalogue import Candidate, Catalogue, Contest
from tune.measured import OWN, EntryMeasurement, Launched, Measured
from tune.spaces import Spaces, load_spaces, shape_name
from tune.worker import Machine, Outcome

SPACES = """\
model = ["gelu"]

[classes.rows.few]
where = ["M <= 16"]
shapes = [{ M = 1 }, { M = 16 }]

[classes.rows.many]
where = ["M > 16"]
shapes = [{ M = 64 }]
keep = ["BN > 64"]

[[space]]
name = "gelu"
op = "gelu"
dtypes = ["bf16"]
constants = { BN = [64, 128, 256] }
hints = { occupancy = [1, 2] }
keep = ["BN * occupancy <= 256"]
aligned = ["x", "out"]
multiples = { N = 64 }
grid = ["min(SMS * occupancy, cdiv(N, BN))", "M", "1"]
shapes = [{ N = 256 }]
classes = "rows"
"""
H200 = Machine("cuda", "NVIDIA H200", "sm_90", "580.1")
FEW = Contest("gelu", "bf16", "few", ("M <= 16",), ({"M": 1, "N": 256}, {"M": 16, "N": 256}))
MANY = Contest("gelu", "bf16", "many", ("M > 16",), ({"M": 64, "N": 256},))

WriteSpaces = Callable[..., Path]
Fill = Callable[[Mapping[str, list[Any]]], Measured]


@pytest.fixture
def write_spaces(tmp_path: Path) -> WriteSpaces:
    """Writes the spaces, `old` replaced by `new`."""

    def run(old: str = "", new: str = "") -> Path:
        assert old in SPACES
        path = tmp_path / "spaces.toml"
        path.write_text(SPACES.replace(old, new))
        return path

    return run


@pytest.fixture
def spaces(write_spaces: WriteSpaces) -> Spaces:
    return load_spaces(write_spaces())


def spec(symbol: str, source: str = "py") -> EntrySpec:
    return EntrySpec(
        symbol, "gelu", source, "bf16", {"BN": 64}, grid=("cdiv(N, BN)", "M", "1"),
        hints={"sm_90": {"occupancy": 2}}, targets=("sm_90",),
    )  # fmt: skip


def candidate(symbol: str, *classes: str, source: str = "py") -> Candidate:
    return Candidate("gelu", classes or ("few", "many"), spec(symbol, source), "compiled")


@pytest.fixture
def catalogue() -> Catalogue:
    """Two contests; entrants a, b and c, and one that is pruned."""
    pruned = Candidate("gelu", ("few", "many"), spec("spilling"), "pruned", "9 spills to memory")
    entrants = (candidate("a"), candidate("b"), candidate("c", "few"))
    return Catalogue("sm_90", {"tileiras": "t" * 64}, (FEW, MANY), (*entrants, pruned))


def bundle_of(folder: Path, *symbols: str, cubin: str = "cubin") -> Bundle:
    """A bundle of entries with bytes that are not real cubins."""
    made = [Compiled(spec(s), tile_ir(b"bytecode", "13.3"), {"sm_90": f"{cubin} of {s}".encode()}) for s in symbols]
    return write(folder, made, {})


def compiled_to(folder: Path, cubin: str = "cubin") -> Launched:
    """Write the bundles of a search, replacing older ones. `cubin`: the code; a different one makes different
    variants."""
    variants = bundle_of(folder / "bundle", "a", "b", "c", cubin=cubin)
    return Launched("sm_90", variants, bundle_of(folder / "own", "own entry"))


@pytest.fixture
def launched(tmp_path: Path) -> Launched:
    return compiled_to(tmp_path)


@pytest.fixture
def fill(tmp_path: Path, launched: Launched) -> Fill:
    """Measurements by symbol: microseconds or a status for each of `few`'s two shapes and then `many`'s one."""

    def run(times: Mapping[str, list[Any]]) -> Measured:
        measured = Measured(tmp_path / "measured.json", "sm_90", H200, "2026-01-02")
        places = [(contest, dims) for contest in (FEW, MANY) for dims in contest.shapes]
        for symbol, found in times.items():
            for (contest, dims), value in zip(places, found, strict=False):
                if value is None:
                    continue
                outcome = Outcome(value) if isinstance(value, str) else Outcome("ok", us=value, entry=symbol)
                file = launched.file("py", contest.op, contest.dtype, symbol)
                measured.add(EntryMeasurement.of("py", contest, symbol, dims, file, outcome))
        return measured

    return run


__all__ = ["FEW", "H200", "MANY", "OWN", "bundle_of", "candidate", "compiled_to", "shape_name", "spec"]
