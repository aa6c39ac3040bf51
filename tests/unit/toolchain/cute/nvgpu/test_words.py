"""Words as the PTX ISA writes them; tests/compile has ptxas read all."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from toolchain.cute.nvgpu.words import LIMIT, LIMIT_RANKS

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


def test_who_adds_the_last_term_tells_all_ranks() -> None:
    text, constraints = written("word.add_to_ranks", "lfrrll", n=2)
    lines = text.splitlines()
    assert "atom.relaxed.gpu.global.add.u64 old, [$0], w;" in lines and "setp.eq.u32 last, terms, $2;" in lines
    stores = [line for line in lines if ".sys." in line]
    assert stores == [f"@last st.relaxed.sys.global.b64 [${at}], w;" for at in (4, 5)]
    assert constraints == "l,f,r,r,l,l"


def test_a_wait_for_ranks_adds_up_integers_and_says_who_is_late() -> None:
    text, constraints = written("word.wait_ranks", "lllrr", "ffr", n=3)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("ld.")] == [
        f"ld.relaxed.sys.global.v2.b64 {{w{2 * rank}, w{2 * rank + 1}}}, [${3 + rank}];" for rank in range(3)
    ]
    assert sum(line.startswith("add.s64") for line in lines) == 4 and "redux.sync.max.u32 $2, who, 0xffffffff;" in lines
    assert f"selp.b32 left, 1, {LIMIT_RANKS}, gone;" in lines and "setp.ne.b32 gone, $7, 0;" in lines
    assert constraints == "=f,=f,=r,l,l,l,r,r"
