"""The cases that the interpreter runs by default."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.cases import CASES, Case
from conformance.jobs.jobs import JobContext
from conformance.ops.inputs import make_inputs
from conformance.ops.run import OpRows, upload
from conformance.ops.smallest import cheapest, cost, features, layouts, op_jobs, reference_cost, smallest
from toolchain.bundles.bundle import Bundle, BundleEntry, FileRef
from toolchain.contract.artifact import ptx, tile_ir
from toolchain.contract.entry import EntrySpec
from toolchain.runtime import CpuExecutor, DeviceBuffer

NOTHING = FileRef(Path(), "")
SIZES = {"M": 100, "K": 64, "N": 96}


def entry(symbol: str, *where: str, **constants: int) -> EntrySpec:
    return EntrySpec(symbol, "linear", "py", "f32", constants=constants, where=where)


def bundle(*specs: EntrySpec) -> Bundle:
    return Bundle(Path(), tuple(BundleEntry(spec, NOTHING, tile_ir(b"", "13.3").form, {}) for spec in specs), {})


def case(**dims: int) -> Case:
    return Case("linear", SIZES | dims, "")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_layouts_are_those_of_the_arrays(dtype: str) -> None:
    """Then the entry that is chosen beforehand is the one that runs."""
    executor = CpuExecutor()
    for one in (c for c in CASES if not c.gpu_only and cost(c) < 3e6 and dtype in c.dtypes()):
        virtual, real = layouts(one, dtype, executor), upload(one, make_inputs(one, dtype, 1), executor)
        found = {name: buffer.layout for name, buffer in virtual.items() if isinstance(buffer, DeviceBuffer)}
        assert found == {name: buffer.layout for name, buffer in real.items()}, one


def test_what_a_case_can_show() -> None:
    spec = entry("linear", BM=64, BN=32, BK=32, GROUP=8)
    shown = features(spec, case())
    assert {("M", "more than", 1), ("M", "remainder"), ("N", "more than", 2), ("K", "more than", 1)} <= shown
    assert not {("M", "more than", 2), ("N", "remainder"), ("K", "more than", 2)} & shown
    assert ("misaligned", True) in features(spec, Case("linear", SIZES, "", misaligned=True))


def test_a_cost_goes_by_the_products() -> None:
    """K counts once, or long products would seem to take longer than all else."""
    large = {"M": 1000, "N": 1000, "K": 1000}
    assert cost(case(**large | {"K": 2000})) == pytest.approx(2 * cost(case(**large)), rel=0.02)
    logits = {"M": 1000, "C": 1000, "V": 1000}
    assert cost(Case("logits", logits, "")) == pytest.approx(1e9, rel=0.05)


def test_the_cheapest_cases_that_show_everything() -> None:
    shows = {0: frozenset("a"), 1: frozenset("ab"), 2: frozenset("bc"), 3: frozenset("abc")}
    assert cheapest(shows, {0: 1, 1: 2, 2: 3, 3: 9}) == [0, 2]
    assert cheapest(shows, {0: 9, 1: 1, 2: 3, 3: 9}) == [1, 2]
    assert cheapest(shows, {0: 1, 1: 2, 2: 9, 3: 3}) == [3]  # it makes the cheaper ones needless
    assert cheapest({5: frozenset()}, {5: 1}) == [5]


def test_each_entry_has_a_case() -> None:
    cases = [case(M=4), case(), case(M=128, K=4096), case(M=5)]
    found = smallest(bundle(entry("few", "M <= 8", BM=8), entry("any", BM=64, BK=64)), CpuExecutor(), cases, ["py"])
    run = {(number, symbol) for (number, dtype, _), symbols in found.items() for symbol in symbols if dtype == "f32"}
    assert run == {(0, "few"), (1, "any"), (2, "any")}  # M = 5 shows what M = 4 does; K = 4096 has several steps


def test_a_case_that_nothing_takes_keeps_its_row() -> None:
    cases = [case(M=4), case()]
    found = smallest(bundle(entry("few", "M <= 8", BM=8)), CpuExecutor(), cases, ["py"])
    only = [job.rows.only for job in op_jobs(cases, ["f32"], found) if isinstance(job.rows, OpRows)]
    assert only == [{("f32", "py"): frozenset({"few"})}, {("f32", "py"): frozenset()}]


def test_a_source_that_borrows_has_no_row_of_what_it_lacks() -> None:
    few = replace(entry("few", "M <= 8", BM=8), source="cute")
    found = smallest(bundle(few), CpuExecutor(), [case(M=4), case()], ["cute"])
    assert {number for number, *_ in found} == {0}


def test_an_entry_that_no_interpreter_runs_has_one_case() -> None:
    """Its row says so; a reference would be computed for nothing."""
    cases = [case(M=129), case(), case(M=257, K=4096)]
    portable = bundle(entry("linear", BM=64, BN=32, BK=32))
    (made,) = portable.entries
    form = ptx("", block=(128, 1, 1)).form
    found = smallest(Bundle(Path(), (replace(made, form=form),), {}), CpuExecutor(), cases, ["py"])
    assert [key for key, symbols in found.items() if symbols] == [(1, "f32", "py")]
    assert [key for key, symbols in smallest(portable, CpuExecutor(), cases, ["py"]).items() if symbols] == [
        (2, "f32", "py")
    ]


def test_on_a_gpu_a_job_costs_what_its_references_do() -> None:
    """Scores of all heads count, whatever their dimensions are called, and not the length of a cache alone."""
    attention = Case("attention", {"B": 1, "T": 1000, "S": 1000, "H": 6, "D": 64}, "")
    grouped = Case("grouped_attention", {"B": 1, "T": 1000, "S": 1000, "G": 2, "Q": 3, "D": 64}, "")
    paged = Case("paged_attention", {"B": 1, "T": 1000, "G": 2, "Q": 3, "D": 64, "R": 10, "PAGE": 100, "L": 10}, "")
    for one in (grouped, paged):
        assert reference_cost(one) == pytest.approx(reference_cost(attention), rel=0.2)
    (longest,) = sorted(op_jobs(CASES, ["f16"], None, "cuda"), key=lambda job: -job.cost)[:1]
    assert longest.shape == "B=1 T=8192 S=8192 G=3 Q=3 D=64"


def test_what_the_bundle_lacks_makes_no_job() -> None:
    jobs = op_jobs(CASES, ["f32", "bf16"], None, lacks={("gelu", "f32")})
    assert {d for job in jobs if job.op == "gelu" for d in job.dtypes} == {"bf16"}
    assert "f32" in {d for job in jobs if job.op == "softmax" for d in job.dtypes}


def test_a_whole_step_has_a_row_that_says_it_was_not_run() -> None:
    spec = EntrySpec("step", "decode_step", "cute", "bf16")
    found = Bundle(Path(), (BundleEntry(spec, NOTHING, ptx("", block=(32, 1, 1)).form, {}),), {})
    executor, whole = CpuExecutor(), [one for one in CASES if one.op == "decode_step"]
    wanted = smallest(found, executor, whole, ["cute", "mlir"])
    assert wanted == {(number, "bf16", "cute"): frozenset() for number in range(len(whole))}
    (job, *_) = op_jobs(whole, ["bf16"], wanted)
    site = JobContext(found, executor, ["cute", "mlir"], 0, nullcontext())
    assert [(row.status, row.detail) for row in job.rows(site)] == [("not run", "too slow for the interpreter")]
