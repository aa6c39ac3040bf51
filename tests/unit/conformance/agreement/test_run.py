"""What is compared, and how: the results of a case that differ, and the interpreter beside what GPUs gave."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from conformance.agreement.cases import Case, candidates
from conformance.agreement.page import PAGE, Measured, by_operation, measured, page
from conformance.agreement.run import Agreement, again, compare, on_interpreter
from conformance.agreement.values import operands
from toolchain.errors import SourceError

F32 = Case("addf", "", ("f32", "f32"), "f32", "addf %0, %1 : tile<4096xf32>")
FEW = 4  # one case in so many is tried
EQUAL = {name: row.gpu for run in measured() for name, row in run.rows.items() if not row.unequal}


def test_what_the_verifier_refuses_is_no_case() -> None:
    assert candidates()["absf f32"].module
    with pytest.raises(SourceError):
        _ = candidates()["absf f8E5M2"].module


def test_operands_are_the_same_each_time_and_defined() -> None:
    by_name = candidates()
    one, other = operands(by_name["divi signed i32"])
    again = operands(by_name["divi signed i32"])
    assert (one == again[0]).all() and (other == again[1]).all()
    assert (other != 0).all() and not ((one == np.iinfo(np.int32).min) & (other == -1)).any()
    (floats,) = operands(by_name["ftoi signed f32->i8"])
    assert np.isfinite(floats).all() and np.trunc(floats).min() >= -128 and np.trunc(floats).max() == 127


@pytest.mark.parametrize(
    ("gpu", "cpu", "nans", "one_nan", "ulps"),
    [
        (0x3F800001, 0x3F800000, 0, 0, 1), (0x80000001, 0x00000001, 0, 0, 2), (0x7FFFFFFF, 0x7FC00000, 1, 0, 0),
        (0x7FFFFFFF, 0x3F800000, 0, 1, 0), (0x80000000, 0x00000000, 0, 0, 0),
    ],
)  # fmt: skip
def test_how_two_results_differ(gpu: int, cpu: int, nans: int, one_nan: int, ulps: int) -> None:
    there, here = (np.array([bits, 0x40000000], np.uint32).view(np.float32) for bits in (gpu, cpu))
    row = compare(F32, [there, there], there, here)
    assert (row.unequal, row.nans, row.one_nan, row.ulps) == (1, nans, one_nan, ulps)
    assert row.examples[0][-2:] == (f"{gpu:08x}", f"{cpu:08x}")


@pytest.mark.parametrize("name", sorted(EQUAL)[::FEW])
def test_the_interpreter_gives_what_gpus_gave(name: str) -> None:
    case = candidates()[name]
    found = on_interpreter(case, operands(case))
    assert EQUAL[name] == hashlib.sha256(found.tobytes()).hexdigest()


def test_a_result_that_has_a_gpus_bits_now_is_equal() -> None:
    case = candidates()["absf f16"]
    digest = hashlib.sha256(on_interpreter(case, operands(case)).tobytes()).hexdigest()
    mended, other = Agreement(case.name, 3, digest, ulps=2), Agreement(case.name, 3, "another", ulps=2)
    assert again([mended, other], {case.name: case}) == [Agreement(case.name, 0, digest), other]


def test_an_operation_is_equal_where_all_gpus_are() -> None:
    def run(**unequal: int) -> Measured:
        rows = {name: Agreement(name, n, "") for name, n in ((key.replace("_", " "), n) for key, n in unequal.items())}
        return Measured("a GPU", "CUDA 13.0", {}, rows)

    found = by_operation([run(absf_f32=0, absf_f16=0, ceil_f32=0), run(absf_f32=0, absf_f16=2, absf_bf16=0)])
    assert found == {"absf": (2, 3), "ceil": (1, 1)}


def test_the_page_is_of_the_runs() -> None:
    runs = measured()
    assert runs and page(runs) == PAGE.read_text()
