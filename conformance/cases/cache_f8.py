"""Cases of a cache in 8-bit floats."""

from __future__ import annotations

from .case import ELEMENTS, Case, case

CASES: tuple[Case, ...] = (
    case("kv_append_f8", "one position, the narrowest head", B=2, T=1, H=3, D=32, P=16),
    case("kv_append_f8", "a prompt, odd", B=2, T=9, H=2, D=64, P=27),
    case("kv_append_f8", "the widest head", B=1, T=5, H=1, D=128, P=7),
    *(
        each
        for op in ("rope_append_f8", "norm_rope_append_f8")
        for each in (
            case(op, "one position of several sequences", B=3, T=1, G=2, Q=3, D=32, E=16, P=16, W=20),
            case(op, "a prompt, in place", in_place="q", B=2, T=7, G=1, Q=6, D=64, E=32, P=12, W=12),
            case(op, "the widest head", B=1, T=5, G=2, Q=1, D=128, E=64, P=7, W=7),
        )
    ),
    *(
        case("grouped_decode_attention_f8", why, B=b, P=p, G=g, Q=q, D=d, Z=z, TWO=2)
        for why, b, p, g, q, d, z in (
            ("sequences of different lengths, some spans empty", 4, 300, 2, 3, 64, 3),
            ("spans of 512 in several tiles", 3, 1100, 1, 3, 64, 3),
            ("the new position is the first of its span, more heads than one tile", 3, 257, 1, 17, 64, 3),
            ("the new position is the last of its span, the widest head", 3, 256, 1, 2, 128, 2),
            ("the widest head, long spans", 2, 600, 1, 1, 128, 2),
            ("the narrowest head", 3, 200, 2, 4, 32, 2),
            ("the narrowest head, long spans", 2, 600, 1, 5, 32, 2),
        )
    ),
    *(
        case("grouped_decode_attention_f8", ELEMENTS, misaligned=True, B=2, P=p, G=1, Q=3, D=d, Z=2, TWO=2)
        for p in (200, 600)
        for d in (64, 128)
    ),
    *(
        case("grouped_decode_attention_f8", "a head of keys for each of queries", B=b, P=p, G=2, Q=1, D=64, Z=2, TWO=2)
        for b, p in ((1, 200), (3, 200), (3, 600))
    ),
    case("grouped_decode_attention_f8", "few heads of queries, long spans", B=2, P=600, G=1, Q=3, D=64, Z=2, TWO=2),
    case("grouped_decode_attention_f8", "many heads of queries, long spans", B=2, P=600, G=1, Q=5, D=64, Z=2, TWO=2),
    *(case("kv_append_f8", ELEMENTS, misaligned=True, B=2, T=3, H=1, D=d, P=9) for d in (64, 128)),
    *(case("kv_from_f8", ELEMENTS, misaligned=True, B=1, S=70, G=1, D=d) for d in (64, 128)),
    case("grouped_decode_attention_f8", "SmolLM2", gpu_only=True, B=8, P=8192, G=3, Q=3, D=64, Z=16, TWO=2),
    *(
        case("grouped_decode_attention_f8", "GPT-2", gpu_only=True, B=64, P=1024, G=12, Q=1, D=64, Z=z, TWO=2)
        for z in (2, 8)
    ),
    *(
        case("decode_attention_unsplit_f8", why, gpu_only=True, B=b, P=p, H=h, D=64)
        for why, b, p, h in (
            ("sequences of different lengths, one of them new", 4, 300, 3),
            ("fewer positions than warps", 3, 8, 2),
            ("GPT-2, B=64 P=1024", 64, 1024, 12),
        )
    ),
    *(case("kv_from_f8", f"odd, heads of {d}", B=2, S=75, G=3, D=d) for d in (32, 64, 128)),
)
