"""benchmarks/studies/stages.py: a stage takes away what it says, and nothing else."""

import itertools
from dataclasses import asdict, replace

import pytest

from benchmarks.studies.stages import FINAL, HINTS, WATERFALL, WITHOUT, Stage
from toolchain.contract.entry import EntrySpec

TUNED = EntrySpec(
    "tuned", "linear", "mlir", "bf16", constants={"BM": 128, "GROUP": 8}, aligned=("x",), multiples={"K": 64},
    hints={"sm_90": {"occupancy": 2, "num_worker_warps": 8}}, targets=("sm_90",),
)  # fmt: skip
PORTABLE = EntrySpec("portable", "linear", "mlir", "bf16", aligned=("x",))
ANY = EntrySpec("any", "linear", "mlir", "bf16")
ALL = [TUNED, PORTABLE, ANY]


def test_the_final_stage_changes_nothing():
    assert FINAL.entries(ALL) == ALL


def test_the_waterfall_begins_with_nothing_and_ends_with_everything():
    assert WATERFALL[0].entries(ALL) == [ANY]
    words = {"name", "does"}
    assert {k: v for k, v in asdict(WATERFALL[-1]).items() if k not in words} == {
        k: v for k, v in asdict(FINAL).items() if k not in words
    }


def test_each_step_of_the_waterfall_is_one_choice():
    for before, after in itertools.pairwise(WATERFALL):
        changed = [key for key, value in asdict(after).items() if value != asdict(before)[key]]
        assert len(changed) == 3, changed  # its name, its words, and the choice


def test_each_stage_without_a_choice_lacks_only_that():
    for stage in WITHOUT[1:]:
        changed = [key for key, value in asdict(stage).items() if value != asdict(FINAL)[key]]
        assert len(changed) == 3, changed


@pytest.mark.parametrize(
    ("stage", "symbols"),
    [
        (replace(FINAL, tuned=False), ["portable", "any"]),
        (replace(FINAL, aligned=False), ["any"]),
        (replace(FINAL, divisible=False), ["tuned", "portable", "any"]),
    ],
)  # fmt: skip
def test_entries_are_left_out_by_what_they_assume(stage: Stage, symbols: list[str]):
    assert [spec.symbol for spec in stage.entries(ALL)] == symbols


def test_hints_groups_and_divisors_are_taken_from_an_entry():
    stage = replace(FINAL, hints=HINTS[1:], grouped=False, divisible=False)
    (spec, *_) = stage.entries(ALL)
    assert spec.hints == {"sm_90": {"occupancy": 2}}
    assert spec.constants == {"BM": 128, "GROUP": 1}
    assert spec.multiples == {"K": 8}


def test_stages_that_only_run_the_model_differently_share_a_bundle():
    assert replace(FINAL, gelu=False, graph=False, padded=False, folded=False).bundle == FINAL.bundle
    assert replace(FINAL, overlap=False).bundle != FINAL.bundle
