from __future__ import annotations

import pytest

from toolchain.cute.atoms.tcgen05 import Tcgen05Atom, find_tcgen05
from toolchain.errors import UsageError


def test_a_name_says_all_of_an_atom() -> None:
    for name in ("tcgen05.m128n256k16.f32.bf16", "tcgen05_pair.m256n64k32.f32.e4m3", "tcgen05.m64n8k8.f32.tf32"):
        assert find_tcgen05(name).name == name
    assert find_tcgen05("tcgen05.m64n8k32.f16.e2m1").kind == "f8f6f4"


def test_the_descriptor_is_that_of_the_ptx_manual() -> None:
    # bits 4-5: dtype of D; 7-9, 10-12: of A and B; 15, 16: transposed; 17-22: N / 8; 24-28: M / 16
    word = Tcgen05Atom(128, 256, "bf16").descriptor("km")
    fields = {"d": word >> 4 & 3, "a": word >> 7 & 7, "b": word >> 10 & 7, "ta": word >> 15 & 1, "tb": word >> 16 & 1}
    assert fields == {"d": 1, "a": 1, "b": 1, "ta": 0, "tb": 1}
    assert (word >> 17 & 63, word >> 24 & 31) == (32, 8)
    assert Tcgen05Atom(64, 8, "f16", "f16").descriptor() == 1 << 17 | 4 << 24


def test_a_thread_reads_a_row() -> None:
    layout = Tcgen05Atom(128, 64, "bf16").c_layout
    assert [layout((5, value)) for value in range(3)] == [5, 133, 261]
    with pytest.raises(UsageError, match="row in each lane"):
        _ = Tcgen05Atom(64, 64, "bf16").c_layout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tcgen05.m128n8k16.f32.bf16", "no N of 8 for M of 128\n.*16 to 256 in steps of 16"),
        ("tcgen05.m256n64k16.f32.bf16", "no tile of 256 rows here\n.*M of 64, 128"),
        ("tcgen05.m128n64k16.f16.bf16", "no accumulator of f16 for bf16"),
        ("tcgen05.m128n64k16.f32.s8", "no operands of s8"),
        ("tcgen05.m128n64k8.f32.bf16", "K is 256 bits"),
        ("wgmma.m64n64k16.f32.bf16", "no tcgen05 atom"),
    ],
)
def test_what_the_hardware_lacks_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        find_tcgen05(name)


def test_a_wrong_major_is_refused() -> None:
    with pytest.raises(UsageError, match="side by side"):
        Tcgen05Atom(128, 64, "bf16").descriptor("kn")
