"""Known defects of the native stacks: the versions that have them, and a report for each."""

from __future__ import annotations

import pytest

from toolchain.knobs import ROOT
from toolchain.pinned.issues import REPORT, issues, known, of_name
from toolchain.pinned.stacks import stacks


def test_a_defect_is_of_one_cuda_tile_with_a_series_of_llvm():
    (found,) = known("13.3.2", "23.1.4")
    assert found.name == "dense-i1"
    assert of_name((found,), "dense-i1") is found
    assert of_name((found,), "other") is None
    assert known("13.3.2", "23") == (found,)
    assert known("13.3.2", "57109befac92") == (found,), "a commit, whose series is not known"
    for other in (("13.1.3", "22.1.8"), ("13.3.2", "22.1.8"), ("13.3.3", "23.1.4"), (None, "23.1.4")):
        assert known(*other) == ()


@pytest.mark.parametrize("name", [row.name for row in issues()])
def test_each_is_of_a_stack_that_we_have_and_has_a_report(name: str):
    issue = of_name(issues(), name)
    assert issue is not None
    pairs = {(stack.cuda_tile, stack.series) for stack in stacks().stacks.values()}
    assert (issue.cuda_tile, issue.llvm) in pairs, "no stack has it any more: take it out"
    page, _, heading = REPORT.partition(", ")
    assert f"## {heading}\n" in (ROOT / page).read_text()
    assert f"### {name}\n" in (ROOT / page).read_text()
