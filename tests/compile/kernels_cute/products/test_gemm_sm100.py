"""The GEMM for sm_100a becomes a cubin that multiplies by tcgen05 in tensor memory. It was not run."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from kernels_cute.products.gemm_sm100 import gemm
from toolchain.compiling.stages import compile_ptx
from toolchain.pinned.tools import tool


@pytest.mark.parametrize("pair", [False, True])
def test_the_cubin_has_the_instructions_of_tensor_memory(tmp_path: Path, pair: bool) -> None:
    ptx = gemm(pair=pair).ptx("sm_100a")
    # bf16 with f32 sums, N = 128 and M = 128 or 256
    assert f"{1 << 4 | 1 << 7 | 1 << 10 | 16 << 17 | 8 * (1 + pair) << 24}" in ptx
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(compile_ptx(ptx.encode(), "sm_100a"))
    code = tool("nvdisasm").run(["--print-code", str(cubin)]).stdout
    found = Counter(re.findall(r"\b(UTCHMMA|UTCBAR|LDTM|UTMALDG|UTCATOMSWS)\b", code))
    assert ("UTCHMMA.2CTA" in code) == pair
    assert found["LDTM"] == 4  # 128 columns, 32 at once
    assert found["UTCHMMA"] >= 4 and found["UTCBAR"] and found["UTMALDG"] >= 2
    assert found["UTCATOMSWS"]  # allocates columns and gives them back
