"""Attention of one token to a cache in 8-bit floats, in CuTe: the instructions of its entries as machine code."""

from __future__ import annotations

import re

import pytest

from kernels_cute import SOURCE
from tests.compile.compiled import ptxas_says
from tests.compile.conftest import MakeArtifact
from toolchain.contract.entry import EntrySpec

ENTRIES = [spec for spec in SOURCE.entries() if spec.kernel == "cache_f8"]


@pytest.mark.parametrize("spec", ENTRIES, ids=lambda spec: spec.symbol)
def test_an_entry_reads_in_vectors_and_spills_nothing(spec: EntrySpec, artifact: MakeArtifact) -> None:
    made = artifact(spec)
    ptx, c = made.payload.decode(), spec.constants
    loads = re.findall(r"ld\.global\.L1::no_allocate\.L2::128B\.(v\d)\.b32", ptx)
    own, wide = c["STEP"] // 8, c["D"] == 128
    keys, values, scales = own * (2 if wide else 1), own * 2, 2
    if stages := c.get("STAGES", 0):
        at_once = spec.op == "decode_attention_unsplit_f8"  # its first copies begin before the wait
        copies = [found.start() for found in re.finditer(r"cp\.async\.cg\.shared\.global\.L2::128B", ptx)]
        assert not loads and len(copies) == (stages + at_once) * (keys + values // (1 if wide else 2) + scales)
        assert (copies[0] < ptx.index("griddepcontrol.wait")) == at_once
    else:
        assert loads.count("v2") == (0 if wide else values) + (scales if own == 2 else 0)
        assert loads.count("v4") == keys + (values if wide else 0) + (0 if own == 2 else scales)
    assert ptx.count("mma.sync") == c["STEP"] // 16 * c["D"] // 16 * 2  # keys, values: half a head's numbers a product
    assert (made.form.block, made.form.waits) == ((32 * c["WARPS"], 1, 1), True)
    assert "0 bytes spill stores, 0 bytes spill loads" in ptxas_says(ptx)
