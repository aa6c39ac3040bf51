"""Attention of one token to a cache in bf16, in CuTe: the instructions of its entries as machine code."""

from __future__ import annotations

import re

import pytest

from kernels_cute import SOURCE
from tests.compile.compiled import ptxas_says
from tests.compile.conftest import MakeArtifact
from toolchain.contract.entry import EntrySpec

ENTRIES = [spec for spec in SOURCE.entries() if spec.kernel == "cache_bf16"]


@pytest.mark.parametrize("spec", ENTRIES, ids=lambda spec: spec.symbol)
def test_an_entry_fetches_ahead_of_the_wait_and_spills_nothing(spec: EntrySpec, artifact: MakeArtifact) -> None:
    made = artifact(spec)
    ptx, c = made.payload.decode(), spec.constants
    wait = ptx.index("griddepcontrol.wait")
    copies = [found.start() for found in re.finditer(r"cp\.async\.cg\.shared\.global\.L2::128B", ptx)]
    of_step = c["STEP"] * 2 * 8 // 32
    assert [at < wait for at in copies] == [True] * (c["STAGES"] * of_step) + [False] * ((c["STAGES"] + 1) * of_step)
    assert ptx.count("mma.sync") == c["STEP"] // 16 * 8  # keys, values: a quarter of a head's numbers a product
    assert (made.form.block, made.form.waits) == ((32 * c["WARPS"], 1, 1), True)
    assert "0 bytes spill stores, 0 bytes spill loads" in ptxas_says(ptx)
