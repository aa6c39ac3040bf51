"""Flags as the PTX ISA writes them; tests/compile has ptxas read all."""

from __future__ import annotations

from toolchain.cute.nvgpu.flags import SPINS

from .written import written


def test_a_count_is_added_to_with_a_release_that_other_gpus_see() -> None:
    assert written("flag.add", "lr")[0] == "red.release.sys.global.add.u32 [$0], $1;"


def test_a_wait_acquires_and_compares_counts_that_wrap_around() -> None:
    lines = written("flag.wait", "lrr", "r")[0].splitlines()
    begin, end = lines.index("again_${:uid}:"), lines.index("@again bra again_${:uid};")
    assert "ld.acquire.sys.global.b32 seen, [$1];" in lines[begin:end]
    assert lines.index("sub.s32 seen, seen, $2;") < lines.index("setp.lt.s32 late, seen, 0;") < end


def test_a_wait_ends_after_some_attempts_and_after_one_for_who_has_given_up() -> None:
    lines = written("flag.wait", "lrr", "r")[0].splitlines()
    assert f"selp.b32 left, 1, {SPINS}, gone;" in lines and "setp.ne.b32 gone, $3, 0;" in lines
    assert lines[-2] == "selp.u32 $0, 1, 0, late;"
