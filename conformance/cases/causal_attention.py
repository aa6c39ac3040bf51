"""Cases of attention over whole prompts."""

from __future__ import annotations

from .case import ELEMENTS, Case, case

CASES: tuple[Case, ...] = (
    case("attention", "one query, one key", B=1, T=1, S=1, H=2, D=32),
    case("attention", "several key tiles and a remainder: the rescale matters", B=2, T=100, S=100, H=3, D=32),
    case("attention", "GPT-2's head, more than two key tiles", B=1, T=256, S=256, H=2, D=64),
    case("attention", "continuing a cache: queries start at S - T", B=2, T=7, S=150, H=2, D=64),
    case("attention", "more than 256 queries", B=2, T=300, S=300, H=2, D=64),
    case("attention", "the first query's own key is the last of a tile", B=1, T=260, S=323, H=2, D=64),
    case("attention", "weights overflow if taken relative to a near key", towering=True, B=1, T=300, S=300, H=2, D=64),
    case("attention", "the widest head", B=1, T=130, S=130, H=1, D=128),
    case("attention", "loaded element by element", misaligned=True, B=1, T=70, S=70, H=2, D=32),
    case("attention", "loaded element by element", misaligned=True, B=1, T=70, S=75, H=1, D=64),
    case("attention", "loaded element by element", misaligned=True, B=2, T=35, S=70, H=1, D=128),
    case("attention", "more sequences than a group, the last group short", B=11, T=70, S=70, H=2, D=64),
    case("attention", "more sequences than a group, continuing caches", B=9, T=5, S=40, H=1, D=32),
    case(
        "attention", "GPT-2, B=11 T=1024: many, the last group short", gpu_only=True, B=11, T=1024, S=1024, H=12, D=64
    ),
    case(
        "attention",
        "GPT-2, B=6 T=1024: weights overflow if taken relative to a near key",
        gpu_only=True,
        towering=True,
        B=6,
        T=1024,
        S=1024,
        H=12,
        D=64,
    ),
    case("attention", "GPT-2, B=4 T=1024", gpu_only=True, B=4, T=1024, S=1024, H=12, D=64),
    case("attention_to_f8", "one query, one key", B=1, T=1, S=1, H=2, D=32),
    case("attention_to_f8", "several key tiles and a remainder", B=2, T=100, S=100, H=3, D=32),
    case("attention_to_f8", "continuing a cache: queries start at S - T", B=2, T=7, S=150, H=2, D=64),
    case("attention_to_f8", "more than 256 queries", B=2, T=300, S=300, H=2, D=64),
    case("attention_to_f8", "few blocks of many keys", B=1, T=520, S=530, H=1, D=64),
    case("attention_to_f8", "some blocks of many keys", B=32, T=513, S=513, H=1, D=64),
    case("attention_to_f8", "weights that overflow at first", towering=True, B=1, T=300, S=300, H=2, D=64),
    case("attention_to_f8", "the widest head", B=1, T=130, S=130, H=1, D=128),
    *(case("attention_to_f8", ELEMENTS, misaligned=True, B=1, T=70, S=75, H=2, D=d) for d in (32, 64, 128)),
    case("attention_to_f8", "GPT-2, B=4 T=1024", gpu_only=True, B=4, T=1024, S=1024, H=12, D=64),
)
