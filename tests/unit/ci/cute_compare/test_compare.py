from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ci.cute_compare.cases import Case
from ci.cute_compare.compare import compare
from ci.cute_compare.cpp import Raw
from ci.cute_compare.known import Known
from ci.cute_compare.verdict import ANOTHER, BOTH, DIFFERENT, OURS, ROUNDED, SAME, THEIRS, UNKEPT, verdict
from toolchain.cute.layout import Basis, Layout

COALESCE = Case("coalesce", (Layout.parse("(4,2):(1,4)"),))
DIVIDE = Case("logical_divide", (Layout.parse("(6,8):(1,6)"), Layout.parse("4:1")))


@pytest.mark.parametrize(
    ("case", "mine", "theirs", "said"),
    [
        (COALESCE, Raw(8, 1), Raw((4, 1, 2), (1, 7, 4)), SAME),
        (COALESCE, Raw((2, 2), (0, 0)), Raw(4, 0), SAME),
        (COALESCE, Raw(8, 1), Raw((4, 2), (1, 5)), DIFFERENT),
        (COALESCE, Raw(8, 1), Raw(9, 1), DIFFERENT),
        (COALESCE, Raw(1, 9), Raw((), ()), SAME),
        (COALESCE, Raw(4, Basis(1, (0,))), Raw(4, Basis(1, (1,))), DIFFERENT),
        (COALESCE, None, Raw(8, 1), OURS),
        (COALESCE, Raw(8, 1), None, THEIRS),
        (COALESCE, None, None, BOTH),
        (DIVIDE, Raw((4, 16), (1, 4)), Raw((4, 12), (1, 4)), ROUNDED),
        (DIVIDE, Raw((4, 16), (1, 4)), Raw((4, 12), (1, 8)), DIFFERENT),
        (Case("right_inverse", (Layout.parse("(2,8):(1,1)"),)), Raw(2, 1), Raw(8, 2), ANOTHER),
        (Case("right_inverse", (Layout.parse("(2,8):(1,1)"),)), Raw(2, 1), Raw(8, 1), DIFFERENT),
        (Case("cosize", (Layout(4, 1),)), 4, 5, DIFFERENT),
        (Case("crd2idx", (3, Layout(4, 1))), (0, 3), Basis(3, (1,)), SAME),
        (Case("crd2idx", (0, Layout(4, 1))), (0, (0, 0)), 0, SAME),
    ],
)  # fmt: skip
def test_a_verdict(case: Case, mine: Any, theirs: Any, said: str) -> None:
    assert verdict(case, mine, theirs) == said


def test_a_condition_on_a_number_that_is_not_known_is_the_callers() -> None:
    inner = Layout(4, 3)  # steps of 3 do not fit a mode of 8
    unknown = Case("composition", (Layout((Known.of(8), 8), (8, 1)), inner))
    assert (
        verdict(
            unknown,
            Raw(4, 24),
            Raw(4, 5),
        )
        == UNKEPT
    )
    kept = Case("composition", (Layout((Known.of(9), 8), (8, 1)), Layout(3, 3)))
    assert verdict(kept, Raw(3, 24), Raw(3, 5)) == DIFFERENT
    divided = Case("logical_divide", (Layout((Known.of(30), 4), (1, Known.of(50))), Layout(8, 1)))
    assert verdict(divided, Raw((8, 15), (1, 8)), Raw((8, 16), (1, 4))) == UNKEPT
    joined = Case("logical_divide", (Layout((Known.of(4), Known.of(8)), (2, Known.of(8))), Layout(3, 1)))
    mine = Raw(((3, 1), ((2, 1), (1, 8))), ((2, 8), ((6, 8), (12, 16))))  # told its numbers, the layout is 32:2
    assert verdict(joined, mine, Raw(((3, 1), (2, 8)), ((2, 8), (6, 8)))) == UNKEPT


class Fake:
    """CuTe's side that gives the results it was told, and others to a case that comes alone."""

    def __init__(self, together: list[Any], alone: Any) -> None:
        self.together, self.alone, self.asked = together, alone, list[int]()

    def results(self, cases: Sequence[Case], folder: Path) -> list[Any]:  # noqa: ARG002 - of the compiler
        self.asked.append(len(cases))
        return self.together if len(self.asked) == 1 else [self.alone]


@pytest.mark.parametrize(("alone", "said"), [(None, THEIRS), (Raw(8, 2), DIFFERENT)])
def test_a_difference_is_asked_for_once_more(tmp_path: Path, alone: Any, said: str) -> None:
    fake = Fake([Raw(8, 1), Raw(8, 2)], alone)
    found = list(compare([COALESCE, COALESCE], fake, tmp_path))
    assert [finding.said for finding in found] == [SAME, said]
    assert fake.asked == [2, 1]
    assert str(found[1]).startswith(f"{said}: coalesce((4,2):(1,4)): ours 8:1")
