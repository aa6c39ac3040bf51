"""Words as the PTX ISA writes them; tests/compile has ptxas read all."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from toolchain.cute.nvgpu.words import LIMIT

from .written import written


@pytest.mark.parametrize(
    ("operands", "n", "ptx"),
    [
        ("lrf", 1, "st.relaxed.gpu.global.b64 [$0], w0;"),
        ("lrff", 2, "st.relaxed.gpu.global.v2.b64 [$0], {w0, w1};"),
        ("rrff", 2, "st.relaxed.cluster.shared::cluster.v2.b64 [$0], {w0, w1};"),
    ],
)
def test_words_go_to_global_memory_or_to_the_cluster(operands: str, n: int, ptx: str) -> None:
    text, constraints = written("word.store", operands, n=n)
    assert ptx in text and "mov.b64 w0, {$1, v0};" in text  # the tag is the low half
    assert constraints == ",".join(operands)


@pytest.mark.parametrize(
    ("operands", "n", "loads"),
    [
        ("lr", 1, ["ld.relaxed.gpu.global.b64 w0, [$2];"]),
        ("sr", 4, ["ld.relaxed.cluster.shared::cta.v2.b64 {w0, w1}, [$5+0];",
                   "ld.relaxed.cluster.shared::cta.v2.b64 {w2, w3}, [$5+16];"]),
    ],
)  # fmt: skip
def test_a_wait_reads_all_words_again_until_they_are_there(operands: str, n: int, loads: list[str]) -> None:
    lines = written("word.wait", operands, "f" * n + "r", n=n)[0].splitlines()
    begin, end = lines.index("again_${:uid}:"), lines.index("@again bra again_${:uid};")
    assert [line for line in lines[begin:end] if line.startswith("ld.")] == loads
    assert f"mov.u32 left, {LIMIT};" in lines[:begin]
    assert sum(line.startswith("setp.ne") for line in lines[begin:end]) == n + 1


def test_pairs_of_words_may_be_512_bytes_apart() -> None:
    lines = written("word.wait_sum_across", "lr", "f" * 8 + "r", n=8)[0].splitlines()
    loads = [line.rpartition("+")[2] for line in lines if line.startswith("ld.")]
    assert loads == ["0];", "512];", "1024];", "1536];"]


def test_a_sum_counts_its_terms_above_a_sum_that_may_be_negative() -> None:
    added = written("word.add", "lf")[0]
    assert "mul.f32 v, $1, 0f4E800000;" in added and f"add.s64 w, w, {1 << 48};" in added
    lines = written("word.wait_sum", "lr", "ffr", n=2)[0].splitlines()
    assert "add.u32 t1, t1, 32768;" in lines and "shr.u32 t1, t1, 16;" in lines
    assert "mul.f32 $1, v, 0f30800000;" in lines


@pytest.mark.parametrize(
    ("name", "n"), [("word.wait", 3), ("word.wait_sum", 4), ("word.store", 8), ("word.wait_across", 4)]
)
def test_only_some_numbers_of_words_lie_side_by_side(name: str, n: int) -> None:
    with pytest.raises(VerifyException, match="needs its number"):
        written(name, "lr", "f" * n + "r", n=n)
