from __future__ import annotations

from ci.gate.slowed import slowed_grid


def test_a_grid_gets_more_blocks_and_a_walk_over_tiles_fewer() -> None:
    assert slowed_grid(["cdiv(N, BN)", "M", "1"], 10) == ["cdiv(N, BN)", "cdiv((M) * 110, 100)", "1"]
    walks = slowed_grid(["min(SMS * 1 // 1, cdiv(M, BM))", "1", "1"], 5)
    assert walks == ["min((SMS * 100 // 105) * 1 // 1, cdiv(M, BM))", "1", "1"]
