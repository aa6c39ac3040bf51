from __future__ import annotations

from math import inf

import numpy as np

from benchmarks.serving.load import MOST_NEW, mixed


def test_a_load_has_the_shortest_and_the_longest_prompt() -> None:
    load = mixed(256, 20.0, 100, longest=4096)
    lengths = [len(each.tokens) for each in load]
    assert (min(lengths), max(lengths), len(load)) == (1, 4096, 256)
    some = [length for length in lengths if length > 8]
    assert 130 < np.median(some) < 270  # each octave as often: half lie below the geometric mean of 9 and 4096
    assert {min(each.count for each in load), max(each.count for each in load)} == {1, MOST_NEW}
    assert all(0 <= token < 100 for each in load for token in each.tokens)


def test_a_rate_changes_the_times_alone() -> None:
    slow, fast, at_once = (mixed(200, rate, 50, longest=64) for rate in (10.0, 20.0, inf))
    assert [each.tokens for each in slow] == [each.tokens for each in fast] == [each.tokens for each in at_once]
    assert [each.at_s for each in slow] == [2 * each.at_s for each in fast]
    assert {each.at_s for each in at_once} == {0.0}
    assert 15 < slow[-1].at_s < 25
