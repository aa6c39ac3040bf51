"""`tilestack tune predict`: which variant is chosen, what the table says, and that measured rows stay."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolchain.compiling.cubin import Usage
from toolchain.contract.entries import DEFAULT, Tables, TunedRow, committed, entries_of
from toolchain.contract.entry import EntrySpec
from toolchain.errors import UsageError
from toolchain.knobs import ENTRIES
from tune import predict as predicting
from tune.predict import Predictor, predict, step_bytes
from tune.spaces import Spaces, load_spaces, parse_shape

FITS = Usage("", 128, 65536, 0, 0, 1000, 0, 0, {"HMMA": 8}, {})
SOURCES = {name: entries_of(name) for name in ("py", "mlir")}
Say = Callable[[str], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the portable table alone."""
    shutil.copy(ENTRIES / "portable.toml", tmp_path)
    return tmp_path


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> Spaces:
    """Of all spaces that of linear, with two of its classes."""
    monkeypatch.setattr(predicting, "SPACES", ("linear",))
    spaces = load_spaces()
    (linear,) = (space for space in spaces.spaces if space.name == "linear")
    classes = tuple(made for made in linear.classes if made.name in {"m256", "large"})
    return Spaces(("linear",), (replace(linear, classes=classes),))


class Compiler:
    """Says what entries use, without compiling them. `asked`: the entries."""

    def __init__(self, usage: Callable[[EntrySpec], Usage | None] = lambda _: FITS) -> None:
        self.usage = usage
        self.asked: list[EntrySpec] = []

    def __call__(self, specs: Sequence[EntrySpec]) -> list[Usage | None]:
        self.asked += specs
        return [self.usage(spec) for spec in specs]


def run(folder: Path, spaces: Spaces, compiler: Compiler, target: str = "sm_80") -> list[str]:
    said: list[str] = []
    assert predict(target, spaces, SOURCES, compiler, said.append, folder) == folder / f"{target}.toml"
    return said


def enough(spec: EntrySpec) -> Usage:
    """A usage of a kernel whose shared memory holds two steps."""
    return replace(FITS, shared=2 * step_bytes(spec.constants))


def test_a_row_says_that_it_is_predicted_and_by_which_rates(folder: Path, some: Spaces) -> None:
    said = run(folder, some, Compiler(enough))
    assert said[0].startswith("linear f16, bf16 m256: linear_") and " us predicted, own " in said[0]
    row = next(row for row in Tables(folder).tuned if row.shape_class == "m256")
    assert row.predicted and row.name == "linear f16, bf16 m256 for sm_80 (mlir, py), predicted"
    below = row.table["predicted"]
    assert below["gpu"] == "NVIDIA A100 80GB SXM"
    assert below["rates"] == (
        "108 multiprocessors, 1410 MHz, 312 TFLOP/s in 16 bits, 2039 GB/s, 164 KiB of shared memory"
    )
    (shape,) = below["us"]
    assert below["own_us"][shape] >= (1 + predicting.GAIN) * below["us"][shape] * 0.99
    assert [spec.symbol for spec in row.entries("mlir")] == ["linear_sm_80_m256_f16", "linear_sm_80_m256_bf16"]


def test_the_table_has_a_policy_of_the_device(folder: Path, some: Spaces) -> None:
    run(folder, some, Compiler(enough))
    policies = Tables(folder).policies
    assert (policies["sm_80"].sms, policies["sm_80"].chunk_bytes) == (108, 40 << 20)
    assert replace(policies["sm_80"], sms=132, chunk_bytes=48 << 20) == policies[DEFAULT]
    first = (folder / "sm_80.toml").read_text()
    (folder / "sm_80.toml").write_text(first.replace("312 TFLOP/s", "31 TFLOP/s"))
    run(folder, some, Compiler(enough))
    assert (folder / "sm_80.toml").read_text() == first, "and once; what was predicted before is predicted anew"


def test_variants_that_do_not_fit_are_passed_over(folder: Path, some: Spaces) -> None:
    def usage(spec: EntrySpec) -> Usage | None:
        if spec.constants["BM"] == 128:
            return replace(enough(spec), spills=400)  # as the portable entry
        if spec.constants["BN"] == 64:
            return None
        if spec.hints["sm_80"]["num_worker_warps"] == 4:
            return replace(enough(spec), registers=255 * 3)
        return enough(spec)

    said = run(folder, some, Compiler(usage))
    (row,) = (row for row in Tables(folder).tuned if row.shape_class == "large")
    tile = row.table["constants"]
    assert (tile["BM"] * tile["BN"], row.table["hints"]["num_worker_warps"]) in {(64 * 256, 8), (256 * 128, 8)}
    assert "own_us" not in row.table["predicted"] and said[-1].endswith("own spills much")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"spills": 1}, "spills"),
        ({"serialised": 4}, "is serialised"),
        ({"tensor_core": {}}, "does without tensor cores"),
        ({"registers": 256, "shared": 170000}, "has no room"),
        ({"shared": 65535}, "holds less than two steps"),
    ],
)
def test_what_is_not_worth_a_row(changed: dict[str, Any], said: str) -> None:
    predictor = Predictor("sm_80", predicting.device_of("sm_80"), {}, lambda _: [])
    hints = {"sm_80": {"num_worker_warps": 4, "occupancy": 1}}
    spec = EntrySpec("x", "linear", "py", "bf16", {"BM": 128, "BN": 128, "BK": 64}, hints=hints)
    found = predictor.fault(spec, replace(FITS, **changed))
    assert said in found and bool(found) == bool(said)
    assert predictor.fault(spec, None) == "does not compile"


def test_a_prediction_must_promise_much(folder: Path, some: Spaces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicting, "GAIN", 100.0)
    said = run(folder, some, compiler := Compiler(enough))
    assert said == [f"linear f16, bf16 {name}: the source's own entries stay" for name in ("m256", "large")]
    assert {spec.symbol for spec in compiler.asked} == {"linear_128x128x64_bf16"}, "so nothing else is compiled"


def test_all_sources_and_dtypes_must_fit(folder: Path, some: Spaces) -> None:
    def usage(spec: EntrySpec) -> Usage:
        return replace(enough(spec), spills=int((spec.source, spec.dtype) == ("mlir", "f16")))

    said = run(folder, some, Compiler(usage))
    assert all(line.endswith("own entries stay") for line in said)


def test_what_was_measured_stays(folder: Path, some: Spaces) -> None:
    run(folder, some, Compiler(enough))
    path = folder / "sm_80.toml"
    whole = path.read_text()
    first = whole[whole.index("[[tuned]]") :].split("[[tuned]]\n")[1]
    measured = (
        '[tuned.measured]\ngpu = "A100"\ndriver = "1"\ndate = "d"\nsource = "py"\ndtype = "bf16"\nspace = "linear"\n'
        'us = { "M=256 K=768 N=2304" = 1.0 }\ntools = {}\ncode = {}\n'
    )
    assert 'class = "m256"' in first
    path.write_text(whole.replace(first, first.partition("[tuned.predicted]")[0] + measured + "\n", 1))
    said = run(folder, some, Compiler(enough))
    assert not any("m256" in line for line in said)
    assert [row.predicted for row in Tables(folder).tuned if row.shape_class == "m256"] == [False]


def test_a_target_of_which_no_rates_are_known(folder: Path, some: Spaces) -> None:
    with pytest.raises(UsageError, match="the rates of no GPU of sm_87"):
        predict("sm_87", some, SOURCES, Compiler(), print, folder)


# What is committed


def foretold() -> Iterator[TunedRow]:
    return (row for row in committed().tuned if row.predicted)


def test_the_committed_predictions_are_those_of_the_model_and_the_rates() -> None:
    assert {row.target for row in foretold()} == {"sm_80", "sm_100", "sm_120"}
    for row in foretold():
        predictor = Predictor(row.target, predicting.device_of(row.target), {}, lambda _: [])
        below, spec = row.table["predicted"], row.entries("py")[-1]
        assert (below["gpu"], below["rates"]) == (predictor.device.gpu, predictor.device.rates), row.name
        found = predictor.times_of(spec, [parse_shape(shape) for shape in below["us"]])
        assert below["us"] == {shape: float(f"{us:.3g}") for shape, us in found.items()}, row.name


def test_no_measured_number_stands_in_a_table_that_was_predicted() -> None:
    for target in ("sm_80", "sm_100", "sm_120"):
        assert committed().policies[target].fold is None
        assert committed().policies[target].sms == predicting.device_of(target).sms
        content = (ENTRIES / f"{target}.toml").read_text()
        assert "[tuned.measured]" not in content and content.startswith("# Predicted, not measured")
