"""Words: values that say themselves whether they are there, so that no barrier and no fence need stand before a read.

A word has 64 bits and is read and written whole. A *tagged* word is an f32 above a tag of 32 bits: it is there
once its tag is the one that a reader waits for. A *sum* counts its terms in the upper 16 bits, above their sum in
units of 2^-30: it is there once all terms are, and it does not depend on their order. Words order no other access.

Source: PTX ISA 9.0, "ld", "st", "red", "Memory Consistency Model".
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32

from .row import ArchOp, Asm, PtxForm, is_shared

LIMIT = 1 << 17  # attempts of a wait; each takes a trip to the memory
FRACTION = 30  # bits of a sum behind the point
COUNT = 48  # the lowest bit of the number of terms
APART = 512  # bytes from a lane's pair of words to its next one, where those of a warp's lanes lie side by side


def _remote(op: ArchOp) -> bool:
    """An address in the cluster's shared memory is a number."""
    return bool(op.args) and op.args[0].type == i32


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def _vector(names: list[str]) -> str:
    return f".v2.b64 [at], {{{names[0]}, {names[1]}}}" if len(names) == 2 else f".b64 [at], {names[0]}"


def _store(op: ArchOp) -> Asm:
    count, remote = op.number, _remote(op)
    words, values = _names("w", count), _names("v", count)
    lines = [f".reg .b64 {', '.join(words)};", f".reg .b32 {', '.join(values)};"]
    for i, (word, value) in enumerate(zip(words, values, strict=True)):
        lines += [f"mov.b32 {value}, ${i + 2};", f"mov.b64 {word}, {{$1, {value}}};"]
    where = "cluster.shared::cluster" if remote else "gpu.global"
    lines.append(f"st.relaxed.{where}{_vector(words).replace('at', '$0')};")
    return _block(lines), ("r" if remote else "l") + ",r" + ",f" * count


def _add(_: ArchOp) -> Asm:
    lines = [
        ".reg .b64 w;", ".reg .f32 v;", f"mul.f32 v, $1, {_power(FRACTION)};", "cvt.rni.s64.f32 w, v;",
        f"add.s64 w, w, {1 << COUNT};", "red.relaxed.gpu.global.add.u64 [$0], w;",
    ]  # fmt: skip
    return _block(lines), "l,f"


def _power(exponent: int) -> str:
    """A power of two as PTX writes an f32."""
    return f"0f{127 + exponent << 23:08X}"


def _wait(op: ArchOp) -> Asm:
    """Reads until each word has the tag."""
    values = _names("v", op.number)
    parts = [f"mov.b64 {{t{i}, v{i}}}, w{i};" for i in range(op.number)]
    done = [f"mov.b32 ${i}, {value};" for i, value in enumerate(values)]
    return _loop(op, parts, done, f".reg .b32 {', '.join(values)};")


def _wait_sum(op: ArchOp) -> Asm:
    """Reads until each word has the number of terms. A negative sum borrows from it."""
    parts = list[str]()
    done = [
        ".reg .b64 terms;",
        ".reg .f32 v;",
        f"cvt.u64.u32 terms, ${op.number + 2};",
        f"shl.b64 terms, terms, {COUNT};",
    ]
    for i in range(op.number):
        parts += [f"mov.b64 {{low, t{i}}}, w{i};", f"add.u32 t{i}, t{i}, 32768;", f"shr.u32 t{i}, t{i}, 16;"]
        done += [f"sub.s64 w{i}, w{i}, terms;", f"cvt.rn.f32.s64 v, w{i};", f"mul.f32 ${i}, v, {_power(-FRACTION)};"]
    return _loop(op, parts, done, ".reg .b32 low;")


def _loop(op: ArchOp, parts: list[str], done: list[str], registers: str) -> Asm:
    """`parts`: make each word's tag `t` of the word `w`; `done`: the results of the words. The lanes leave the loop
    together, by a vote: else the compiler prepares for lanes that are apart, at every shuffle behind it."""
    count, shared = op.number, bool(op.args) and is_shared(op.args[0].type)
    address, tag = f"${count + 1}", f"${count + 2}"
    where, apart = "cluster.shared::cta" if shared else "gpu.global", APART if "across" in op.name else 16
    loads = [
        f"ld.relaxed.{where}.v2.b64 {{w{i}, w{i + 1}}}, [{address}+{apart * i // 2}];"
        if count > 1 else f"ld.relaxed.{where}.b64 w{i}, [{address}];"
        for i in range(0, count, 2)
    ]  # fmt: skip
    tests = [f"setp.ne.b32 late, t0, {tag};", *(f"setp.ne.or.b32 late, t{i}, {tag}, late;" for i in range(1, count))]
    lines = [
        ".reg .pred late, again;", f".reg .b64 {', '.join(_names('w', count))};",
        f".reg .b32 {', '.join(_names('t', count))}, left;", registers, f"mov.u32 left, {LIMIT};", "again_${:uid}:",
        *loads, *parts, *tests, "vote.sync.any.pred late, late, 0xffffffff;", "sub.u32 left, left, 1;",
        "setp.ne.and.b32 again, left, 0, late;", "@again bra again_${:uid};", *done, f"selp.u32 ${count}, 1, 0, late;",
    ]  # fmt: skip
    return _block(lines), ",".join(["=f"] * count + ["=r", "r" if shared else "l", "r"])


def _block(lines: list[str]) -> str:
    return "{\n" + "\n".join(lines) + "\n}"


ROWS: dict[str, PtxForm] = {
    "word.store": PtxForm(
        _store,
        "Writes `n` tagged words side by side: to global memory, or by an address of `cluster.map` to the shared "
        "memory of a block of the cluster.",
        "address, tag, f32 for each word", since=90, numbers=(1, 2),
    ),
    "word.wait": PtxForm(
        _wait,
        "Reads `n` tagged words side by side until all have a tag. The last result is 1 if that has taken too many "
        "attempts.",
        "address, tag -> f32 for each word, 0 or 1", since=90, numbers=(1, 2, 4, 8),
    ),
    "word.wait_across": PtxForm(
        _wait,
        "As `word.wait`, of `n` words in pairs, each 512 bytes behind the last, so that a warp's lie side by side.",
        "address, tag -> f32 for each word, 0 or 1", since=90, numbers=(8, 16),
    ),
    "word.wait_sum_across": PtxForm(
        _wait_sum, "As `word.wait_sum`, of `n` sums in pairs, each 512 bytes behind the last.",
        "address, number of terms -> f32 for each word, 0 or 1", since=90, numbers=(8, 16),
    ),
    "word.add": PtxForm(
        _add, "Adds a term to a sum in global memory, rounded to a multiple of 2^-30.", "address, f32", since=90
    ),
    "word.wait_sum": PtxForm(
        _wait_sum,
        "Reads `n` sums side by side until all have a number of terms. The last result is 1 if that has taken too many "
        "attempts.",
        "address, number of terms -> f32 for each word, 0 or 1", since=90, numbers=(1, 2),
    ),
}  # fmt: skip
