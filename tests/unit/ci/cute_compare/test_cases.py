from __future__ import annotations

import itertools
import random
from collections import Counter

from ci.cute_compare.cases import OPERATIONS, Case, groups
from ci.cute_compare.known import Known, settled
from ci.cute_compare.operands import injection
from toolchain.cute.layout import Basis, Layout, composition, size


def drawn(seed: int, count: int) -> list[Case]:
    return [case for group in itertools.islice(groups(random.Random(seed), share=0.02), count) for case in group]


def test_the_same_seed_gives_the_same_cases() -> None:
    assert list(map(str, drawn(7, 20))) == list(map(str, drawn(7, 20)))
    assert list(map(str, drawn(7, 20))) != list(map(str, drawn(8, 20)))


def test_every_operation_and_every_kind_of_number_is_drawn() -> None:
    cases = drawn(0, 300)
    assert {case.operation for case in cases} == set(OPERATIONS)
    kinds = Counter(kind for case in cases for kind in case.kinds)
    assert all(kinds[kind] > 100 for kind in ("size 1", "stride 0", "negative", "E<i>", "?")), kinds


def test_a_layout_for_a_left_inverse_maps_no_two_indices_alike() -> None:
    draw = random.Random(0)
    for made in (injection(draw) for _ in range(50)):
        assert len(set(made.offsets())) == size(made)


def test_the_algebra_computes_with_numbers_that_it_does_not_know() -> None:
    outer = Layout((Known.of(8), 16), (1, Known.of(10)))
    made = composition(outer, Layout((16, 8), (Basis(1, (1,)), Basis(Known.of(2), (0,)))))
    assert str(made) == "(16,8):(?10,?2)"
    assert settled(made.stride) == (10, 2)


def test_arithmetic_of_known_numbers() -> None:
    seven = Known.of(7)
    made = (seven + 2, 2 + seven, seven - 9, 9 - seven, seven * 3, seven // 2, 30 // seven, seven % 4, 30 % seven)
    assert settled(made) == (9, 9, -2, 2, 21, 3, 4, 3, 2)
    assert settled((seven.minimum(3), (seven - 12) // 2, (seven - 12) % 2)) == (3, -2, -1)  # towards 0
    assert (seven * 0, seven // 1) == (0, seven)
