from __future__ import annotations

import json
from typing import Any

import pytest

from toolchain.contract.entries import DEFAULT, committed
from toolchain.contract.policy import Policy, TileCost, rounds
from toolchain.errors import UsageError

TABLE = committed().policies["sm_90"].to_json()


@pytest.mark.parametrize(("columns", "expected"), [(8448, 1), (8449, 2), (0, 0)])
def test_a_round_is_a_tile_on_each_multiprocessor(columns: int, expected: int) -> None:
    assert rounds(132, 300, columns, (128, 192, 1)) == expected  # three tiles high, 44 wide


def test_the_cheapest_tile_is_chosen_by_cost_and_rounds() -> None:
    wide, narrow = (128, 384, 96), (128, 128, 34)
    cost = TileCost(132, (wide, narrow))
    assert cost.unmet(128 * 132, 384) is None  # one round of 96, against three of 34
    assert cost.unmet(128, 384) == "tiles of 128 x 128 are cheaper than of 128 x 384"  # 96 against 34
    assert TileCost(132, (narrow,)).unmet(128, 384) is None


def test_of_tiles_that_cost_the_same_the_first_is_taken() -> None:
    assert TileCost(1, ((1, 2, 2), (1, 1, 1))).unmet(1, 2) is None


def test_rounds_may_be_limited() -> None:
    cost = TileCost(132, ((64, 128, 1),), rounds=1)
    assert cost.unmet(64 * 22, 768) is None
    assert cost.unmet(64 * 22 + 1, 768) == "tiles of 64 x 128 take more than 1 rounds of 132"


def test_tiles_of_one_source_take_the_place_of_those_of_all() -> None:
    own, other = [64, 64, 2], [64, 64, 3]
    policy = Policy.from_table({**TABLE, "tiles": {**TABLE["tiles"], "a": [other], "a_cute": [own]}}, "here")
    assert policy.of("cute").tiles == {**policy.tiles, "a": (tuple(own),)}
    assert policy.of("mlir") == policy


def test_numbers_of_one_source_take_the_place_of_those_of_all() -> None:
    policy = Policy.from_table({**TABLE, "sources": {"cute": {"chunk_bytes": 7}}}, "here")
    assert (policy.of("cute").chunk_bytes, policy.of("mlir").chunk_bytes) == (7, policy.chunk_bytes)
    assert Policy.from_table(policy.to_json(), "a manifest") == policy
    for own, said in (({"sms": 1}, "unknown sms"), ({"chunk_bytes": -1}, "chunk_bytes is -1")):
        with pytest.raises(UsageError, match=f"here: sources.cute: .*{said}|{said}"):
            Policy.from_table({**TABLE, "sources": {"cute": own}}, "here")


@pytest.mark.parametrize("name", committed().policies)
def test_a_manifest_keeps_all_of_it(name: str) -> None:
    policy = committed().policies[name]
    assert Policy.from_table(json.loads(json.dumps(policy.to_json())), "a manifest") == policy


def test_the_default_depends_on_no_kernel_of_one_target() -> None:
    default = committed().policies[DEFAULT]
    assert (default.fold, default.panel_rows, dict(default.tiles)) == (None, 0, {})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sms": -1}, "here: sms is -1, not an integer from 0"),
        ({"spans": "512"}, "here: spans is '512', not a list of integers"),
        ({"spans_per_sm": 3}, "here: spans_per_sm is 3, not a positive number with a point"),
        ({"sm": 1}, "here: unknown sm"),
        ({"fold": {"rows": 1}}, "here: fold: it has no part_small_m"),
        ({"tiles": {"a": [[1, 2]]}}, r"tiles is .*, not a table of lists of \[rows, columns, cost\]"),
        ({"tiles": {"squares": []}}, "tiles.squares must name at least one tile"),
        ({"tiles": {"a": [[1, 2, 3], [1, 2, 4]]}}, "tiles.a must name at least one tile, and each once"),
        ({"tiles": {}}, "with a fold it needs tiles.squares"),
    ],
)
def test_what_is_no_policy(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Policy.from_table({**TABLE, **changed}, "here")
    with pytest.raises(UsageError, match="here: it has no sms"):
        Policy.from_table({key: value for key, value in TABLE.items() if key != "sms"}, "here")
