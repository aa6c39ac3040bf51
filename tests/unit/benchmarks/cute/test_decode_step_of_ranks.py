"""What is timed of a step that ranks share. The launches themselves need GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.cute import decode_step_of_ranks
from benchmarks.cute.decode_step_of_ranks import OP, of_entry
from benchmarks.cute.kernels import SOURCE, TABLE
from conformance.cases import CASES, Case
from conformance.ops.inputs import make_inputs
from conformance.ops.ranks import upload_ranks
from conformance.ops.run import references
from gpt.config import preset, vocabulary_part
from gpt.families.one_launch import dims
from toolchain.contract.entries import load_table
from toolchain.contract.op import ops
from toolchain.errors import ConformanceError
from toolchain.runtime.peers import Peers, open_peers

SPECS = [spec for spec in load_table(TABLE).entries(SOURCE) if spec.op == OP]
SMALL = {"L": 1, "C": 64, "E": 192, "F": 64, "H": 1, "A": 64, "G": 8, "V": 32, "K": 16, "X": 8, "P": 8, "B": 8,
         "S": 256, "W": 1, "Q": 512}  # fmt: skip


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.symbol)
def test_each_entry_is_timed_with_all_sizes_that_it_has(spec: Any) -> None:
    case = of_entry(spec)
    assert spec.unmet(case.dims) is None and spec.grid_for(case.dims, 132)[0] == case.dims["B"]
    assert {dim for param in ops()[OP].params for dim in param.dims} <= case.dims.keys()
    if spec.constants["C"] == 768:
        (like,) = (each for each in CASES if each.op == OP and each.dims["P"] == 1024)
        assert {**like.dims, "B": case.dims["B"]} == case.dims


class Reference:
    """Launches that write what is right, or what `wrong` makes of it."""

    def __init__(self, case: Case, wrong: Sequence[str] = ()) -> None:
        self.inputs = make_inputs(case, "bf16", seed=1)
        self.expected = references(case, "bf16", self.inputs)
        self._wrong = wrong

    def __call__(self, buffers: Any, rank: int) -> None:
        for name, (_, rounded) in self.expected.items():
            buffers[name].copy_from(rounded[rank] * (1 + (name in self._wrong)))
        if "errors" in self._wrong:
            buffers["errors"].fill(11)
        if "met" in self._wrong:
            buffers["met"].select(0, rank).fill(rank)


def _measured(peers: Peers, *wrong: str) -> Any:
    case = Case(OP, {**of_entry(SPECS[0]).dims, **SMALL}, "")
    launch, heap = Reference(case, wrong), peers.heap(1 << 14)
    buffers = upload_ranks(case, launch.inputs, peers, heap)
    for rank, own in enumerate(buffers):
        launch(own, rank)
    return decode_step_of_ranks._checked(case, buffers, launch.expected)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [("errors", r"rank 0 waited in vain: \[11\]"), ("logits", "logits is off|outside"), ("met", "other sums")],
)
def test_what_is_wrong_is_not_timed(wrong: str, said: str) -> None:
    with open_peers(["cpu", "cpu"]) as peers:
        share, logits = _measured(peers)
        assert share <= 1 and logits.shape == (2, 1, 16) and np.isfinite(logits.astype(np.float32)).all()
        with pytest.raises(ConformanceError, match=said):
            _measured(peers, wrong)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("gpt2", ["clusters_12", "clusters_12"]),
        ("xl", ["xl_12", "xl_13"]),
        ("medium", ["medium"]),
        ("large", ["large"]),
    ],
)
def test_an_entry_is_for_the_part_of_a_models_rank(model: str, names: Sequence[str]) -> None:
    """On a GPU of 132 multiprocessors, where a model's arrays have so many blocks."""
    config = preset(model)
    for rank, name in enumerate(names):
        sizes = dims(OP, 1, config.part(rank, 2), vocabulary_part(config.vocab_size, 2), 100, 132, ranks=2)
        fitting = [spec for spec in SPECS if spec.unmet(sizes) is None]
        assert {spec.constants["C"] for spec in fitting} == {config.n_embd}
        fit = {spec.symbol.removeprefix(f"{OP}_").removesuffix("_bf16") for spec in fitting}
        assert name in fit
        assert not fit & {"clusters_6", "xl_13_even"}
