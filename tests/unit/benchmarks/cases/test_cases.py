from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cases.cases import (
    CASES,
    DECODE,
    DEFAULT_GROUPS,
    FORWARD,
    GROUPS,
    LARGER,
    LLAMA,
    SCALING,
    DecodeCase,
    ForwardCase,
    OpCase,
)
from benchmarks.cases.options import Options
from gpt.config import LLAMAS
from toolchain.contract.op import ops


def test_names_are_unique_and_groups_known() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    assert {case.group for case in CASES} == set(GROUPS)


def test_the_model_is_measured_at_these_sizes() -> None:
    sizes = [(case.batch, case.length) for case in FORWARD]
    assert sizes == [(1, 64), (1, 1024), (8, 256), (16, 256), (8, 1024), (32, 1024)]
    assert [(case.batch, case.positions) for case in DECODE] == [(1, 1024), (8, 1024), (64, 1024)]


def test_smollm2_is_measured_at_these_sizes_if_asked_for() -> None:
    forward = [case for case in LLAMA if isinstance(case, ForwardCase)]
    decode = [case for case in LLAMA if isinstance(case, DecodeCase)]
    assert [(case.batch, case.length) for case in forward] == [(1, 64), (1, 1024), (8, 256), (8, 1024), (1, 8192)]
    assert {(case.batch, case.positions) for case in decode} == {(b, p) for b in (1, 8, 64) for p in (1024, 8000)}
    assert len(forward) + len(decode) == len(LLAMA)
    assert all(case.config is LLAMAS["smollm2"] for case in LLAMA)
    assert [case.name for case in LLAMA if case.compiled] == [
        "llama smollm2 B=1 T=1024 bf16", "llama smollm2 B=1 P=1024 bf16",
    ]  # fmt: skip
    assert set(GROUPS) - set(DEFAULT_GROUPS) == {"llama"}
    assert Options.only == DEFAULT_GROUPS


def test_scaling_fits_its_models() -> None:
    assert {case.axis for case in SCALING} == {"T", "B", "size"}
    assert all(case.length <= case.config.n_ctx for case in SCALING)
    assert not any(case.compiled for case in SCALING)
    assert max(case.length for case in SCALING) == 8192


def test_the_larger_models_are_measured_with_their_norms_as_launches_too() -> None:
    models = [case for case in LARGER if isinstance(case, ForwardCase)]
    assert {(case.model, case.batch, case.length) for case in models} == {
        (name, *size) for name in ("medium", "large", "xl") for size in ((1, 1024), (8, 256), (8, 1024))
    }
    pairs = list(zip(models[::2], models[1::2], strict=True))
    assert all(replace(plain, folded=False) == launches and plain.folded is None for plain, launches in pairs)


@pytest.mark.parametrize(
    ("folded", "name"),
    [
        (None, "forward xl B=1 T=8 bf16"),
        (True, "forward xl B=1 T=8 folded bf16"),
        (False, "forward xl B=1 T=8 unfolded bf16"),
    ],
)
def test_whether_norms_are_folded_is_part_of_the_name(folded: bool | None, name: str) -> None:
    assert ForwardCase("xl", 1, 8, folded=folded).name == name


@pytest.mark.parametrize("case", [c for c in CASES if isinstance(c, OpCase)], ids=lambda case: case.name)
def test_an_op_case_names_what_the_op_takes(case: OpCase) -> None:
    """If an op's signature gains a size, its case must name it, or its program must know it."""
    wanted = {name for param in ops()[case.op].params for name in param.dims}
    if case.op == "decode_attention":  # launched by a program of its own
        wanted &= set("BPHD")
    assert wanted == set(case.dims)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_work(case: OpCase) -> None:
    work = case.work()
    assert work.nbytes > 10**6
    assert work.flops >= 0
    assert case.shape in case.name
