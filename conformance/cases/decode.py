"""Cases of GPT-2's decoding: its cache, attention to it, and a whole step."""

from __future__ import annotations

from collections.abc import Mapping

from .case import Case, case

# The sizes of GPT-2's step as one launch; U hidden units of a weight lie side by side.
STEP = {
    "L": 12, "C": 768, "E": 2304, "F": 3072, "H": 12, "D": 64, "V": 50304, "X": 1024, "N": 1, "TWO": 2, "B": 132,
    "S": 36864 + 2 * 132, "W": 12,
}  # fmt: skip
STEP_TEXTS = {"G": 48, "U": 64, "N": 8, "S": 8 * 36864}
STEP_F8 = {"G": 192, "U": 16, "I": 288, "J": 384, "EIGHT": 8}
STEP_OPS: Mapping[str, Mapping[str, int]] = {
    "decode_step": {"G": 384, "U": 8},
    "decode_step_texts": STEP_TEXTS,
    "decode_step_weight_f8": STEP_F8,
    "decode_step_weight_f8_logits": {**STEP_F8, "K": 6288},
    "decode_step_cache_f8": {"G": 384, "U": 8},
    "decode_step_weight_f8_cache_f8": STEP_F8,
    "decode_step_weight_f8_logits_cache_f8": {**STEP_F8, "K": 6288},
    "decode_step_texts_weight_f8": {**STEP_F8, **STEP_TEXTS},
    "decode_step_texts_weight_f8_logits": {**STEP_F8, **STEP_TEXTS, "K": 6288},
}
# Two ranks share the model. Each has half of its heads, of its hidden units and of its tokens.
STEP_OF_RANKS = {
    **STEP, "E": 1152, "F": 1536, "H": 6, "A": 384, "G": 192, "U": 8, "K": 25152, "S": 36864, "R": 2, "Q": 6144,
}  # fmt: skip

CASES: tuple[Case, ...] = (
    case("kv_append", "one position", B=2, T=1, H=3, D=32, P=16),
    case("kv_append", "a prompt, odd", B=2, T=100, H=2, D=64, P=128),
    case("kv_append", "the widest head", B=1, T=5, H=1, D=128, P=7),
    case("decode_attention", "sequences of different lengths, some spans empty", B=4, P=300, H=3, D=32, Z=3, TWO=2),
    case("decode_attention", "GPT-2's head, spans of 512 in several tiles", B=4, P=1100, H=2, D=64, Z=3, TWO=2),
    case("decode_attention", "the widest head, one span", B=2, P=65, H=1, D=128, Z=1, TWO=2),
    case("decode_attention", "spans of 512", B=3, P=600, H=2, D=32, Z=2, TWO=2),
    case("decode_attention", "spans of 128", B=3, P=300, H=2, D=64, Z=3, TWO=2),
    case("decode_attention", "the new position is the first of its span", B=3, P=257, H=1, D=64, Z=3, TWO=2),
    case("decode_attention", "the new position is the last of its span", B=3, P=256, H=1, D=32, Z=2, TWO=2),
    case("decode_attention", "the new position is the first of its long span", B=3, P=513, H=1, D=64, Z=2, TWO=2),
    case("decode_attention", "the new position is the last of its long span", B=2, P=512, H=1, D=64, Z=1, TWO=2),
    case("decode_attention", "more blocks than multiprocessors", B=9, P=256, H=16, D=32, Z=2, TWO=2),
    case("decode_attention", "more blocks than multiprocessors", B=9, P=256, H=16, D=64, Z=2, TWO=2),
    case("decode_attention", "the widest head, spans of 512 in several tiles", B=4, P=700, H=1, D=128, Z=2, TWO=2),
    case("decode_attention", "loaded element by element", misaligned=True, B=3, P=200, H=2, D=32, Z=2, TWO=2),
    case("decode_attention", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=64, Z=2, TWO=2),
    case("decode_attention", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=128, Z=2, TWO=2),
    case("decode_attention", "GPT-2, B=8 P=1024", gpu_only=True, B=8, P=1024, H=12, D=64, Z=8, TWO=2),
    case("decode_attention_unsplit", "sequences of different lengths, one of them new", B=4, P=300, H=3, D=64),
    case("decode_attention_unsplit", "the narrowest head", B=4, P=300, H=3, D=32),
    case("decode_attention_unsplit", "the widest head", B=3, P=200, H=1, D=128),
    case("decode_attention_unsplit", "the new position is the first of its tile", B=3, P=129, H=2, D=64),
    case("decode_attention_unsplit", "the new position is the last of its tile", B=2, P=128, H=2, D=64),
    case("decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, H=2, D=32),
    case("decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=64),
    case("decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=128),
    case("decode_attention_unsplit", "GPT-2, B=64 P=1024", gpu_only=True, B=64, P=1024, H=12, D=64),
    case("merge_attention", "one span", B=1, H=2, Z=1, D=32, TWO=2),
    case("merge_attention", "a whole tile of spans", B=2, H=1, Z=8, D=32, TWO=2),
    case("merge_attention", "fewer spans than one tile, some empty", B=2, H=3, Z=5, D=64, TWO=2),
    case("merge_attention", "spans of several tiles", B=2, H=3, Z=11, D=32, TWO=2),
    case("merge_attention", "more spans than one tile, some empty", B=2, H=3, Z=19, D=64, TWO=2),
    case("merge_attention", "the widest head", B=2, H=1, Z=4, D=128, TWO=2),
    case("merge_attention", "loaded element by element", misaligned=True, B=2, H=2, Z=9, D=32, TWO=2),
    case("merge_attention", "loaded element by element", misaligned=True, B=1, H=2, Z=3, D=64, TWO=2),
    case("merge_attention", "loaded element by element", misaligned=True, B=2, H=1, Z=2, D=128, TWO=2),
    case(
        "merge_linear_residual_squares",
        "odd columns; several parts, one without columns; the last tile of spans short",
        B=2,
        H=3,
        Z=19,
        D=32,
        TWO=2,
        K=96,
        N=200,
        P=5,
    ),
    case("merge_linear_residual_squares", "one part of several tiles", B=1, H=2, Z=8, D=64, TWO=2, K=128, N=75, P=1),
    case("merge_linear_residual_squares", "the widest head, one span", B=3, H=2, Z=1, D=128, TWO=2, K=256, N=64, P=2),
    *(
        case(
            "merge_linear_residual_squares",
            why,
            sixteen=True,
            in_place="residual",
            B=1,
            H=h,
            Z=z,
            D=64,
            TWO=2,
            K=64 * h,
            N=192,
            P=6,
        )
        for why, h, z in (
            ("one row: fewer spans than one tile, the last tile of heads short", 9, 5),
            ("one row: the most heads, a whole tile of spans", 12, 8),
            ("one row: spans of several tiles, some empty", 9, 37),
        )
    ),
    *(
        Case(op, {**STEP, **more, "P": places, "N": min(more.get("N", 1), texts)}, why, gpu_only=True)
        for op, more in STEP_OPS.items()
        for why, places, texts in (
            ("GPT-2, the last place of its context", 1024, 8),
            ("GPT-2, a shorter cache", 200, 3),
        )
    ),
    Case("decode_step_of_ranks", {**STEP_OF_RANKS, "P": 1024}, "GPT-2 on two ranks, the last place", gpu_only=True),
    Case("decode_step_of_ranks", {**STEP_OF_RANKS, "P": 200}, "GPT-2 on two ranks, a shorter cache", gpu_only=True),
)
