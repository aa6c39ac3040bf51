"""Words: values that say themselves whether they are there, so that no barrier and no fence need stand before a read.

A word has 64 bits and is read and written whole. A *tagged* word is an f32 above a tag of 32 bits: it is there
once its tag is the one that a reader waits for. A *sum* counts its terms in the upper 16 bits, above their sum in
units of 2^-30: it is there once all terms are, and it does not depend on their order. Words order no other access.

Sums over several GPUs (ranks): who adds the last term of a rank's sum stores it, with a tag of 16 bits in the place of
the number of terms, to a word in the memory of each rank. There all words with the tag are added up as integers, so
that all ranks get the same bits.

Source: PTX ISA 9.0, "ld", "st", "red", "Memory Consistency Model".
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32

from .row import ArchOp, Asm, PtxForm, is_shared

LIMIT = 1 << 17  # attempts of a wait; each takes a trip to the memory
LIMIT_RANKS = 1 << 22  # of a wait for other GPUs, which may begin later: some three seconds, as flags.py has it
FRACTION = 30  # bits of a sum behind the point
COUNT = 48  # the lowest bit of the number of terms
RANKS = range(2, 9)  # GPUs that sums may be over
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


def _add_to_ranks(op: ArchOp) -> Asm:
    """The last term goes to all ranks, the own one too. The stores have a predicate: no lane leaves its warp."""
    lines = [
        ".reg .b64 w, old, all;", ".reg .f32 v;", ".reg .b32 low, terms;", ".reg .pred last;",
        f"mul.f32 v, $1, {_power(FRACTION)};", "cvt.rni.s64.f32 w, v;", f"add.s64 w, w, {1 << COUNT};",
        "atom.relaxed.gpu.global.add.u64 old, [$0], w;", "add.s64 w, w, old;", "mov.b64 {low, terms}, w;",
        "add.u32 terms, terms, 32768;", "shr.u32 terms, terms, 16;", "setp.eq.u32 last, terms, $2;",
        "sub.u32 terms, $3, $2;", "cvt.u64.u32 all, terms;", f"shl.b64 all, all, {COUNT};", "add.s64 w, w, all;",
        *(f"@last st.relaxed.sys.global.b64 [${4 + rank}], w;" for rank in range(op.number)),
    ]  # fmt: skip
    return _block(lines), ",".join(["l", "f", "r", "r"] + ["l"] * op.number)


def _wait_ranks(op: ArchOp) -> Asm:
    """Reads until both words of each rank have the tag. Who has given up before asks once. The result says which rank's
    are missing: the last one's."""
    ranks = op.number
    addresses = [f"${3 + rank}" for rank in range(ranks)]
    tag, gone = "tag", f"${4 + ranks}"
    words = [f"w{i}" for i in range(2 * ranks)]
    loads = [f"ld.relaxed.sys.global.v2.b64 {{w{2 * r}, w{2 * r + 1}}}, [{at}];" for r, at in enumerate(addresses)]
    parts = [
        line for i in range(2 * ranks)
        for line in (f"mov.b64 {{low, t{i}}}, w{i};", f"add.u32 t{i}, t{i}, 32768;", f"shr.u32 t{i}, t{i}, 16;")
    ]  # fmt: skip
    tests = [
        f"setp.ne.b32 late, t0, {tag};",
        *(f"setp.ne.or.b32 late, t{i}, {tag}, late;" for i in range(1, 2 * ranks)),
    ]
    done = [f"cvt.u64.u32 tags, {tag};", f"shl.b64 tags, tags, {COUNT};", "mov.u32 who, 0;"]
    for rank in range(ranks):
        done += [
            f"setp.ne.b32 none, t{2 * rank}, {tag};", f"setp.ne.or.b32 none, t{2 * rank + 1}, {tag}, none;",
            f"@none mov.u32 who, {rank + 1};",
        ]  # fmt: skip
    done.append("redux.sync.max.u32 $2, who, 0xffffffff;")
    for i in range(2):
        done += [f"sub.s64 w{i}, w{i}, tags;"]
        for rank in range(1, ranks):
            done += [f"sub.s64 w{2 * rank + i}, w{2 * rank + i}, tags;", f"add.s64 w{i}, w{i}, w{2 * rank + i};"]
        done += [f"cvt.rn.f32.s64 v, w{i};", f"mul.f32 ${i}, v, {_power(-FRACTION)};"]
    lines = [
        ".reg .pred late, again, gone, none;", f".reg .b64 {', '.join(words)}, tags;", ".reg .f32 v;",
        f".reg .b32 {', '.join(_names('t', 2 * ranks))}, left, low, who, {tag};",
        f"and.b32 {tag}, ${3 + ranks}, 65535;", f"setp.ne.b32 gone, {gone}, 0;",
        f"selp.b32 left, 1, {LIMIT_RANKS}, gone;", "again_${:uid}:", *loads, *parts, *tests,
        "vote.sync.any.pred late, late, 0xffffffff;", "sub.u32 left, left, 1;",
        "setp.ne.and.b32 again, left, 0, late;", "@again bra again_${:uid};", *done,
    ]  # fmt: skip
    return _block(lines), ",".join(["=f", "=f", "=r"] + ["l"] * ranks + ["r", "r"])


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
    "word.add_to_ranks": PtxForm(
        _add_to_ranks,
        "As `word.add`; with the last of the terms the sum is stored to a word of each of `n` ranks, with a tag of 16 "
        "bits in the place of the number of terms.",
        "address, f32, number of terms, tag, and an address for each rank", since=90, numbers=RANKS,
    ),
    "word.wait_ranks": PtxForm(
        _wait_ranks,
        "Reads two such words side by side of each of `n` ranks until all have a tag, and adds up those of the ranks. "
        "The last result is 0, or 1 + a rank whose word has not come in too many attempts; with a last operand that is "
        "not 0 one attempt is enough.",
        "an address for each rank, tag, i32 -> f32, f32, i32", since=90, numbers=RANKS,
    ),
}  # fmt: skip
