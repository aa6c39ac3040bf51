"""Which source is the fastest: its classes, and the measurement's turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.contract.fastest import Pick
from toolchain.errors import UsageError, WrongTarget
from tune import fastest
from tune.fastest import Class, Found, Timed
from tune.fastest_model import Passed
from tune.spaces import ShapeClass
from tune.worker import Machine, Outcome, Shape, Task

GPU = Machine("cuda", "a GPU", "sm_90", "1")
SPECS = [
    EntrySpec("gelu_mlir", "gelu", "mlir", "bf16"),
    EntrySpec("gelu_py", "gelu", "py", "bf16", where=("M <= 8",)),
    EntrySpec("gelu_cute", "gelu", "cute", "bf16", targets=("sm_80",)),
]
US = {"mlir": [3.0, 2.0], "py": [1.5, 2.5]}
FEW, MANY = {"M": 8, "N": 8}, {"M": 9, "N": 8}


class Bench:
    """Stands in for the worker's process."""

    def __init__(self, *_: object) -> None:
        self.asked: list[Any] = []
        self.left = {source: list(times) for source, times in US.items()}
        self.machine = GPU

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None: ...

    def describe(self) -> Machine:
        return self.machine

    def prepare(self, shape: Shape) -> None:
        self.asked.append(shape.dims)

    def measure(self, task: Task) -> Outcome:
        self.asked.append(task.source)
        us = self.left[task.source].pop(0)
        return Outcome("ok", us=us, low=us / 2, high=us * 2) if us else Outcome("wrong", "by 3")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    nothing, made = FileRef(Path(), ""), Bench()
    form = tile_ir(b"", "13.3").form
    bundle = Bundle(Path(), tuple(BundleEntry(spec, nothing, form, {"sm_90": nothing}) for spec in SPECS), {})
    monkeypatch.setattr(fastest, "Worker", lambda *_: made)  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(Bundle, "load", lambda _: bundle)  # pyright: ignore[reportUnknownLambdaType]
    wanted = [Class("gelu", ShapeClass("all", (), (FEW, MANY)))]
    monkeypatch.setattr(fastest, "classes", lambda: ("bf16", wanted))

    def in_passes(_: Bundle, picks: list[Pick], *__: object) -> list[Passed]:
        return [Passed("forward", pick.op, pick.shape_class, pick.source, 1.0, 2.0) for pick in picks]

    monkeypatch.setattr(fastest, "in_passes", in_passes)
    return made


def pick_of(found: Found) -> Pick:
    return Pick("gelu", "all", ("bf16",), found.rows[-1].source, (), {})


def run(folder: Path, stop_after_s: float = 99) -> bool:
    return fastest.measure(folder, "cuda", 1, stop_after_s, lambda _: None, lambda found: [pick_of(found)])


def test_sources_with_an_entry_take_turns(bench: Bench, tmp_path: Path) -> None:
    assert run(tmp_path)
    assert bench.asked == [FEW, "mlir", "py", "py", "mlir"], "at M = 9 there is one source alone"
    found = Found.load(tmp_path / fastest.FILE)
    assert (found.machine, found.dtype) == (GPU, "bf16")
    assert found.rows == (
        Timed("gelu", "all", "M=8 N=8", "mlir", "gelu_mlir", 2.0, 1.0, 6.0),
        Timed("gelu", "all", "M=8 N=8", "py", "gelu_py", 1.5, 0.75, 5.0),
    )
    assert found.passes == (Passed("forward", "gelu", "all", "py", 1.0, 2.0),)


def test_a_wrong_entry_is_no_measurement(bench: Bench, tmp_path: Path) -> None:
    bench.left["py"] = [1.0, 0.0]
    assert not run(tmp_path)
    found = Found.load(tmp_path / fastest.FILE)
    (_, py), passes = found.rows, found.passes
    assert passes == (), "a model is only measured with entries that are right"
    assert (py.us, py.why) == (None, "wrong: by 3")


def test_it_stops_in_time_and_on_another_gpu(bench: Bench, tmp_path: Path) -> None:
    assert not run(tmp_path, stop_after_s=0)
    bench.machine = dataclasses.replace(GPU, target="sm_80")
    with pytest.raises(WrongTarget, match="is sm_80; the entries were compiled for sm_90"):
        run(tmp_path)


@pytest.mark.parametrize("text", [None, "{", "{}", '{"machine": {}}'])
def test_what_is_no_measurement_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "found.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=r"found\.json (cannot be read|is damaged)"):
        Found.load(path)


def titles(wanted: Sequence[Class]) -> list[str]:
    return [each.title for each in wanted]


def test_the_classes_of_this_tree() -> None:
    dtype, wanted = fastest.classes()
    assert dtype == "bf16" and len(set(titles(wanted))) == len(wanted)
    assert {"attention many", "logits large", "linear large"} <= set(titles(wanted))
    # Those that take a launch: one, or several of which the first is meant.
    dims = {"B": 8, "T": 1024, "H": 12, "D": 64, "S": 1024}
    assert next(each.made.name for each in wanted if each.op == "attention" and each.made.holds(dims)) == "many"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ('op = "gelu"\nname = "a"\nwhere = ["M > 1"]\nshapes = [{ M = 1, N = 8 }]', "does not take its own M=1 N=8"),
        ('op = "silu"\nname = "a"\nwhere = []\nshapes = [{ M = 1, N = 8 }]', "not among `ops`"),
    ],
)
def test_a_wrong_class_is_refused(tmp_path: Path, row: str, why: str) -> None:
    path = tmp_path / "fastest.toml"
    path.write_text(f'dtype = "bf16"\nops = ["gelu"]\nwithout = []\n\n[[class]]\n{row}\n')
    with pytest.raises(UsageError, match=why):
        fastest.classes(path)
