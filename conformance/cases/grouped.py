"""Cases of attention with rotated positions and several heads of queries for each of keys."""

from __future__ import annotations

from .case import Case, case

SPLIT: tuple[Case, ...] = (
    case("rope_append", "one position of several sequences", B=3, T=1, G=2, Q=3, D=32, E=16, P=16, W=20),
    case("rope_append", "a prompt, more heads than one tile", in_place="q", B=2, T=7, G=1, Q=6, D=64, E=32, P=12, W=12),
    case("rope_append", "the widest head, one head of queries", B=1, T=5, G=2, Q=1, D=128, E=64, P=7, W=7),
    case("rope_append", "SmolLM2, a long context", gpu_only=True, B=2, T=300, G=3, Q=3, D=64, E=32, P=8192, W=8192),
    case("norm_rope_append", "one position of several sequences", B=3, T=1, G=2, Q=3, D=32, E=16, P=16, W=20),
    case("norm_rope_append", "Qwen3's heads, in place", in_place="q", B=2, T=5, G=2, Q=2, D=128, E=64, P=12, W=12),
    case("norm_rope_append", "more heads than one tile", B=1, T=3, G=1, Q=5, D=64, E=32, P=7, W=7),
    case("grouped_attention", "one query, one key", B=1, T=1, S=1, G=2, Q=3, D=32),
    case("grouped_attention", "several tiles of keys and queries, with remainders", B=2, T=70, S=70, G=2, Q=3, D=64),
    case("grouped_attention", "continuing a cache, more heads than one tile", B=2, T=7, S=150, G=1, Q=6, D=64),
    case("grouped_attention", "the widest head, one head of queries", B=1, T=70, S=70, G=1, Q=1, D=128),
    case("grouped_attention", "loaded element by element", misaligned=True, B=1, T=20, S=75, G=2, Q=2, D=64),
    case("grouped_attention", "loaded element by element", misaligned=True, B=1, T=20, S=35, G=1, Q=4, D=128),
    case("grouped_attention", "more sequences than a group, continuing caches", B=9, T=5, S=40, G=1, Q=3, D=32),
    case("grouped_attention", "SmolLM2, its context", gpu_only=True, B=1, T=8192, S=8192, G=3, Q=3, D=64),
    *(
        case("grouped_decode_attention", why, misaligned=odd, B=b, P=p, G=g, Q=q, D=d, Z=z, TWO=2)
        for why, odd, b, p, g, q, d, z in (
            ("sequences of different lengths, some spans empty", False, 4, 300, 2, 3, 64, 3),
            ("spans of 512 in several tiles", False, 3, 1100, 1, 3, 64, 3),
            ("the new position is the first of its span, more heads than one tile", False, 3, 257, 1, 17, 64, 3),
            ("the new position is the last of its span, the widest head", False, 3, 256, 1, 2, 128, 2),
            ("the widest head, long spans", False, 2, 600, 1, 1, 128, 2),
            ("the narrowest head", False, 3, 200, 2, 4, 32, 2),
            ("the narrowest head, long spans", False, 2, 600, 1, 5, 32, 2),
            ("loaded element by element", True, 3, 200, 1, 3, 64, 2),
            ("loaded element by element", True, 2, 200, 1, 3, 128, 2),
            ("loaded element by element, long spans", True, 2, 520, 1, 3, 64, 2),
            ("loaded element by element, long spans", True, 1, 520, 1, 3, 128, 2),
        )
    ),
    *(
        case(
            "rope_decode_attention",
            why,
            misaligned=odd,
            B=b,
            P=p,
            G=g,
            Q=q,
            D=d,
            E=d // 2,
            W=p,
            Z=z,
            TWO=2,
        )
        for why, odd, b, p, g, q, d, z in (
            ("sequences of different lengths, some spans empty", False, 4, 300, 2, 3, 64, 3),
            ("the new position is the first of its span, as many heads as a tile has", False, 3, 257, 1, 8, 64, 3),
            ("the new position is the last of its span, the widest head", False, 3, 256, 2, 2, 128, 2),
            ("loaded element by element", True, 3, 200, 1, 3, 32, 2),
            ("loaded element by element", True, 3, 200, 1, 3, 64, 2),
            ("loaded element by element", True, 2, 200, 1, 3, 128, 2),
        )
    ),
    case(
        "rope_decode_attention",
        "SmolLM2",
        gpu_only=True,
        B=8,
        P=1024,
        G=3,
        Q=3,
        D=64,
        E=32,
        W=8192,
        Z=8,
        TWO=2,
    ),
)

UNSPLIT: tuple[Case, ...] = (
    case("grouped_decode_attention", "SmolLM2", gpu_only=True, B=8, P=8192, G=3, Q=3, D=64, Z=16, TWO=2),
    case(
        "grouped_decode_attention_unsplit",
        "sequences of different lengths, one of them new",
        B=4,
        P=300,
        G=2,
        Q=3,
        D=64,
    ),
    case("grouped_decode_attention_unsplit", "the new position is the last of its tile", B=2, P=128, G=1, Q=17, D=32),
    case("grouped_decode_attention_unsplit", "the widest head", B=3, P=129, G=1, Q=1, D=128),
    case("grouped_decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, G=1, Q=4, D=64),
    case("grouped_decode_attention_unsplit", "SmolLM2", gpu_only=True, B=64, P=1024, G=3, Q=3, D=64),
)
