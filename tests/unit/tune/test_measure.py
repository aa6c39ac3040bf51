"""The search, with a worker that answers from a table: its requests, the rows it keeps, how it continues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolchain.errors import UsageError, WrongTarget
from tune.catalogue import Catalogue
from tune.measure import Run
from tune.measured import OWN, Launched, Measured
from tune.spaces import shape_name
from tune.worker import Lost, Machine, Outcome, Refused, Shape, Task

from .conftest import FEW, H200, MANY, bundle_of, candidate, compiled_to


class FakeWorker:
    """Answers `times[symbol]`: microseconds, an outcome, or an error to raise. `asked` is what it was asked."""

    def __init__(self) -> None:
        self.machine = H200
        self.times: dict[str, Any] = {OWN: 10.0, "a": 5.0, "b": 7.0, "c": 6.0}
        self.unprepared: set[str] = set()
        self.asked: list[tuple[str, str, float | None]] = []
        self.shape = ""

    def describe(self) -> Machine:
        return self.machine

    def prepare(self, shape: Shape) -> str | None:
        name = shape_name(shape.dims)
        if name in self.unprepared:
            raise Refused("no memory")
        before, self.shape = self.shape, name
        return None if before == name else "something to compare with"

    def measure(self, task: Task) -> Outcome:
        symbol = task.symbol or OWN
        self.asked.append((self.shape, symbol, task.best_us))
        answer = self.times[symbol]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Outcome) else Outcome("ok", us=answer, entry=f"entry {symbol}")


Search = Callable[..., bool]


@pytest.fixture
def worker() -> FakeWorker:
    return FakeWorker()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def search(worker: FakeWorker, catalogue: Catalogue, tmp_path: Path, said: list[str]) -> Search:
    """Runs a new search over the folder's bundles at each call."""

    def run(
        catalogue: Catalogue = catalogue, cubin: str = "cubin", launched: Launched | None = None, **options: Any
    ) -> bool:
        launched = launched or compiled_to(tmp_path, cubin)
        measured = Measured.load(tmp_path / "measured.json", "sm_90")
        made = Run(catalogue, launched, measured, worker, said.append, **options)  # pyright: ignore[reportArgumentType]
        return made.run()

    return run


def rows(tmp_path: Path) -> dict[tuple[str, str], str]:
    measured = Measured.load(tmp_path / "measured.json", "sm_90")
    return {(row.symbol, row.shape): row.status for row in measured.rows.values()}


def test_every_entrant_is_measured_on_every_shape_after_the_sources_own(
    search: Search, worker: FakeWorker, tmp_path: Path, said: list[str]
) -> None:
    assert search()
    one, many = shape_name(FEW.shapes[0]), shape_name(MANY.shapes[0])
    assert [(symbol, best) for shape, symbol, best in worker.asked if shape == one] == [
        (OWN, None),  # never dropped
        ("a", 10.0),
        ("b", 5.0),
        ("c", 5.0),
    ]
    assert [symbol for shape, symbol, _ in worker.asked if shape == many] == [OWN, "a", "b"]
    assert set(rows(tmp_path).values()) == {"ok"} and len(rows(tmp_path)) == 11
    assert "gelu bf16 few M=1 N=256 (py): 5 us entry a, own 10 us; 4 ok" in said


def test_what_is_done_is_not_done_again(search: Search, worker: FakeWorker, tmp_path: Path) -> None:
    search()
    written = (tmp_path / "measured.json").read_text()
    worker.asked.clear()
    assert search()
    assert worker.asked == [] and (tmp_path / "measured.json").read_text() == written


def test_a_stopped_search_goes_on_where_it_was(search: Search, worker: FakeWorker, said: list[str]) -> None:
    assert not search(stop_after_s=-1.0)
    assert worker.asked == [] and "stopped after" in said[-1]

    class Interrupting(dict[str, Any]):
        def __getitem__(self, symbol: str) -> Any:
            if symbol == "c":
                raise KeyboardInterrupt
            return super().__getitem__(symbol)

    times = worker.times
    worker.times = Interrupting(times)
    with pytest.raises(KeyboardInterrupt):
        search()
    worker.times = times
    worker.asked.clear()
    assert search()
    assert worker.asked[0] == (shape_name(FEW.shapes[0]), "c", 5.0), "the best so far is known"
    assert len(worker.asked) == 11 - 3


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Lost("its process ended", hung=False), "crashed"),
        (Lost("no answer", hung=True), "hung"),
        (Outcome("wrong", "off by 2"), "wrong"),
        (Outcome("dropped", us=50.0), "dropped"),
        (Outcome("error", "the context is lost", lost=True), "error"),
        (Refused("ZeroDivisionError"), "error"),
    ],
)
def test_what_goes_wrong_is_a_row_and_the_search_goes_on(
    search: Search, worker: FakeWorker, tmp_path: Path, answer: Any, status: str
) -> None:
    worker.times["a"] = answer
    assert search()
    found = rows(tmp_path)
    one, sixteen = (shape_name(dims) for dims in FEW.shapes)
    assert found["a", one] == status and found["b", one] == found["c", sixteen] == "ok"
    assert ("a", sixteen) not in found, "it cannot win any more"
    assert found["a", shape_name(MANY.shapes[0])] == status, "another contest"
    worker.asked.clear()
    worker.times["a"] = 4.0
    assert search()
    again = [symbol for _, symbol, _ in worker.asked]
    assert again == (["a"] * 3 if status == "error" else []), "an error may have been the machine's"


def test_without_arguments_none_of_a_shape_is_measured(
    search: Search, worker: FakeWorker, tmp_path: Path, said: list[str]
) -> None:
    one = shape_name(FEW.shapes[0])
    worker.unprepared = {one}
    assert not search(), "an exit code says so, and what is said last"
    assert said[-1] == "gelu bf16 few (py): 4 measurements are missing: run it again"
    assert {status for (_, shape), status in rows(tmp_path).items() if shape == one} == {"unprepared"}
    assert len(worker.asked) == 7 and f"  preparing {one}: no memory" in said
    worker.unprepared.clear()
    worker.asked.clear()
    assert search()
    assert {shape for shape, _, _ in worker.asked} == {one} and len(worker.asked) == 4


def test_an_error_of_the_sources_own_leaves_the_search_unfinished(
    search: Search, worker: FakeWorker, said: list[str]
) -> None:
    worker.times[OWN] = Outcome("error", "no memory")
    assert not search()
    assert said[-2:] == [
        f"gelu bf16 {name} (py): {missing} measurements are missing: run it again"
        for name, missing in (("few", 2), ("many", 1))
    ]
    worker.times[OWN] = 10.0
    worker.asked.clear()
    assert search() and {symbol for _, symbol, _ in worker.asked} == {OWN}


def test_what_was_compiled_anew_is_measured_anew(search: Search, worker: FakeWorker, said: list[str]) -> None:
    search()
    worker.asked.clear()
    assert search(cubin="another cubin")
    assert [symbol for _, symbol, _ in worker.asked] == ["a", "b", "c", "a", "b", "c", "a", "b"]
    assert "8 earlier measurements are of other code: they count no more" in said


def test_another_search_in_the_folder_keeps_what_was_measured(
    search: Search, worker: FakeWorker, catalogue: Catalogue, tmp_path: Path, said: list[str]
) -> None:
    """One search after another goes to a folder: what was measured in the first counts when it comes again."""
    search()
    worker.times["d"] = 8.0
    other = Launched("sm_90", bundle_of(tmp_path / "other", "d"), bundle_of(tmp_path / "own", "own entry"))
    assert search(replace(catalogue, candidates=(candidate("d"),)), launched=other)
    assert not any("other code" in line for line in said) and len(rows(tmp_path)) == 11 + 3
    worker.asked.clear()
    assert search() and worker.asked == []


def test_another_gpu_is_refused(search: Search, worker: FakeWorker, tmp_path: Path) -> None:
    worker.machine = replace(H200, gpu="A100", target="sm_80")
    with pytest.raises(WrongTarget, match="A100 is sm_80; the variants were compiled for sm_90"):
        search()
    worker.machine = H200
    search()
    worker.machine = replace(H200, gpu="GH200")
    with pytest.raises(UsageError, match=rf"{tmp_path}/measured\.json was measured on .*H200.*, this is .*GH200"):
        search()


def test_a_file_that_is_none(search: Search, tmp_path: Path) -> None:
    for content, message in (
        ("{", "is damaged"),
        ('{"format": 1}', "KeyError"),
        ('{"format": 0, "target": "x"}', "has f"),
    ):
        (tmp_path / "measured.json").write_text(content)
        with pytest.raises(UsageError, match=message):
            search()
