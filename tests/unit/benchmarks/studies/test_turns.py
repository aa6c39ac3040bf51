from __future__ import annotations

from benchmarks.studies.turns import turns


def test_turns_are_compared_side_by_side() -> None:
    looked, other, ratio = turns("kernels_mlir", "nano", "f32", 4, 3)
    assert looked.name == "forward nano mlir f32 B=1 T=4, waits looked for"
    assert other.name.endswith(", not looked for") and ratio.name.endswith(", ratio")
    assert all(m.samples == 3 and m.low > 0 for m in (looked, other, ratio))
