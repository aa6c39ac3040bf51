"""Flags: counts in memory that several GPUs reach. Whoever sees a count sees what was written before it was added to.

`flag.add` releases and `flag.wait` acquires, both at the scope of the system. They order a thread's own accesses and
those that it has seen: of a block its others behind a barrier, of TMA what it has waited for. What TMA reads next needs
a proxy fence of global memory behind the wait.

Source: PTX ISA 9.0, "red", "ld", "Memory Consistency Model", "Proxies".
"""

from __future__ import annotations

from .row import ArchOp, Asm, PtxForm, fixed

SPINS = 1 << 22  # attempts of a wait: some three seconds, as a wait in Tile IR takes


def _wait(_: ArchOp) -> Asm:
    """A difference is compared, because counts wrap around. Who has given up before asks once."""
    lines = [
        ".reg .pred late, again, gone;", ".reg .b32 seen, left;", "setp.ne.b32 gone, $3, 0;",
        f"selp.b32 left, 1, {SPINS}, gone;", "again_${:uid}:", "ld.acquire.sys.global.b32 seen, [$1];",
        "sub.s32 seen, seen, $2;", "setp.lt.s32 late, seen, 0;", "sub.u32 left, left, 1;",
        "setp.ne.and.b32 again, left, 0, late;", "@again bra again_${:uid};", "selp.u32 $0, 1, 0, late;",
    ]  # fmt: skip
    return "{\n" + "\n".join(lines) + "\n}", "=r,l,r,r"


ROWS: dict[str, PtxForm] = {
    "flag.add": PtxForm(
        fixed("red.release.sys.global.add.u32 [$0], $1;", "l,r"),
        "Adds to a count that other GPUs see, behind all that the thread has written and seen.",
        "address, i32", since=90,
    ),
    "flag.wait": PtxForm(
        _wait,
        "Reads a count until it is at least a number. The result is 1 if that has taken too many attempts; with a last "
        "operand that is not 0 one is enough.",
        "address, i32, i32 -> 0 or 1", since=90,
    ),
}  # fmt: skip
