"""Cases of a cache in pages."""

from __future__ import annotations

from .case import Case, case

CASES: tuple[Case, ...] = (
    case("paged_append", "one position of several sequences", B=3, T=1, H=2, D=32, R=8, PAGE=64, L=2),
    case("paged_append", "prompts that end a page and begin one", B=2, T=67, H=1, D=64, R=5, PAGE=64, L=2),
    case("paged_append", "the widest head, larger pages", B=2, T=3, H=2, D=128, R=3, PAGE=128, L=1),
    *(
        case(op, why, in_place=place, B=b, T=t, G=g, Q=q, D=d, E=d // 2, R=r, PAGE=64, L=n, W=200)
        for op in ("paged_rope_append", "paged_norm_rope_append")
        for why, place, b, t, g, q, d, r, n in (
            ("one position of several sequences", "", 3, 1, 2, 3, 32, 8, 2),
            ("a prompt over two pages, in place, more heads than one tile", "q", 1, 67, 1, 6, 64, 4, 2),
            ("the widest head, one head of queries", "", 2, 3, 2, 1, 128, 3, 1),
        )
    ),
    case("paged_rope_append", "SmolLM2", gpu_only=True, B=64, T=1, G=3, Q=3, D=64, E=32, R=1025, PAGE=64, L=16, W=8192),
    *(
        case("paged_attention", why, misaligned=odd, B=b, T=t, G=g, Q=q, D=d, R=r, PAGE=page, L=n)
        for why, odd, b, t, g, q, d, r, page, n in (
            ("one query, one key, one head", False, 1, 1, 1, 1, 32, 2, 64, 1),
            ("several texts, more heads than one tile", False, 4, 16, 2, 6, 64, 20, 64, 4),
            ("several tiles of queries and a remainder, larger pages", False, 2, 37, 1, 3, 64, 6, 128, 2),
            ("the narrowest head", False, 3, 16, 1, 4, 32, 10, 64, 3),
            ("the widest head", False, 2, 21, 1, 2, 128, 7, 64, 3),
            ("loaded element by element", True, 2, 18, 1, 3, 64, 5, 64, 2),
        )
    ),
    case(
        "paged_attention",
        "SmolLM2, chunks of prompts",
        gpu_only=True,
        B=32,
        T=16,
        G=3,
        Q=3,
        D=64,
        R=4097,
        PAGE=64,
        L=128,
    ),
    *(
        case("paged_decode_attention", why, misaligned=odd, B=b, T=1, G=g, Q=q, D=d, R=r, PAGE=page, L=n, Z=z, TWO=2)
        for why, odd, b, g, q, d, r, page, n, z in (
            ("texts of different lengths, some spans empty", False, 4, 2, 3, 64, 40, 64, 9, 3),
            ("more heads than one tile, larger pages", False, 3, 1, 17, 64, 9, 128, 2, 1),
            ("the widest head", False, 3, 1, 2, 128, 16, 64, 5, 2),
            ("the narrowest head", False, 3, 2, 1, 32, 16, 64, 5, 2),
            ("loaded element by element", True, 2, 1, 3, 64, 11, 64, 5, 2),
        )
    ),
    case(
        "paged_decode_attention",
        "SmolLM2",
        gpu_only=True,
        B=64,
        T=1,
        G=3,
        Q=3,
        D=64,
        R=4097,
        PAGE=64,
        L=64,
        Z=16,
        TWO=2,
    ),
)
