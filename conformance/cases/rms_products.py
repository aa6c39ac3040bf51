"""Cases of products that give, or take, the sums of squares of their rows."""

from __future__ import annotations

from .case import Case, case

GPT2: tuple[Case, ...] = (
    case("linear_residual_squares", "odd in every size", M=7, K=33, N=65, Z=1, L=7),
    case(
        "linear_residual_squares", "odd; several parts, one without columns; L is above M", M=40, K=33, N=200, Z=5, L=64
    ),
    case(
        "linear_residual_squares",
        "parts of several tiles, in place",
        in_place="residual",
        M=100,
        K=128,
        N=704,
        Z=3,
        L=128,
    ),
    *(
        case("linear_residual_squares", why, in_place="residual", sixteen=True, M=m, K=k, N=64 * z, Z=z, L=rows)
        for why, m, k, z, rows in (
            ("at most 8 rows, a K of three tiles, the last short", 5, 704, 2, 8),
            ("at most 16 rows, a K of three tiles, the last short", 11, 704, 3, 16),
            ("three row tiles, the last short, a K of three tiles", 130, 576, 2, 192),
        )
    ),
    case(
        "linear_residual_squares", "one tile per part, in place", in_place="residual", M=600, K=128, N=256, Z=2, L=640
    ),
    case("linear_residual_squares", "GPT-2 as at 1024 rows, odd rows", M=1001, K=64, N=768, Z=6, L=1024),
    case("linear_residual_squares", "one split-N tile per part", M=520, K=128, N=384, Z=2, L=576),
    case(
        "linear_residual_squares", "GPT-2 at 2048 rows, in place", in_place="residual", M=2000, K=64, N=768, Z=4, L=2048
    ),
    *(
        case(
            "linear_residual_squares",
            why,
            in_place="residual",
            sixteen=True,
            M=m,
            K=k,
            N=192 * z,
            Z=z,
            L=-(-m // 64) * 64,
        )
        for why, m, k, z in (
            *(("persistent", 3100, 64, z) for z in (3, 4)),
            *(("many rows", 6200, 64, z) for z in (3, 4)),
            *(("very many rows", 16400, 64, z) for z in (1, 4)),
            *(("very many rows, a longer K", 16400, 1088, z) for z in (1, 4)),
        )
    ),
    *(
        case(
            "linear_residual_squares",
            f"parts of {width} columns",
            in_place="residual",
            sixteen=True,
            M=m,
            K=128,
            N=n,
            Z=z,
            L=-(-m // 64) * 64,
        )
        for width, m, n, z in (
            (256, 520, 704, 3),
            (256, 6200, 512, 2),
            (224, 520, 640, 3),
            (160, 520, 576, 4),
            (160, 1600, 320, 2),
            (160, 3100, 320, 2),
            (128, 2900, 320, 3),
            (96, 400, 768, 8),
            (32, 300, 768, 24),
        )
    ),
    case("linear_residual_squares", "GPT-2's long K, odd rows", gpu_only=True, M=1001, K=3072, N=768, Z=6, L=1024),
    case("linear_residual_squares", "GPT-2's long K, 2048 rows", gpu_only=True, M=2047, K=3072, N=768, Z=4, L=2048),
    *(
        each
        for op in ("rms_linear", "rms_linear_gelu")
        for each in (
            case(op, "odd in every size", M=7, K=33, N=65, Z=1, L=7),
            case(op, "odd; more parts than are read at once; L is above M", M=40, K=33, N=70, Z=5, L=64),
            case(op, "few rows", M=100, K=128, N=192, Z=2, L=128),
            case(op, "persistent, more parts than are read at once", M=600, K=64, N=448, Z=6, L=640),
            case(op, "more rows, few columns", sixteen=True, M=1600, K=64, N=192, Z=4, L=1600),
            *(
                case(
                    op,
                    f"a shape for which tiles of {wide} columns take least time",
                    sixteen=True,
                    M=1000,
                    K=64,
                    N=n,
                    Z=7,
                    L=1024,
                )
                for wide, n in {384: 6080, 320: 4736, 256: 4032, 192: 3008}.items()
            ),
        )
    ),
    *(
        case(op, why, sixteen=True, M=m, K=64, N=n, Z=z, L=-(-m // 64) * 64)
        for op, n, why, m, z in (
            ("rms_linear", 2304, "GPT-2 as at 1024 rows, odd rows", 1001, 6),
            ("rms_linear", 2304, "GPT-2, as at 2048 rows", 1601, 4),
            ("rms_linear", 2304, "GPT-2, as at 4096 rows", 3100, 4),
            ("rms_linear", 2304, "GPT-2, as at 32768 rows", 16400, 4),
            ("rms_linear_gelu", 3072, "GPT-2, as at 32768 rows", 16400, 4),
            *(("rms_linear", 2304, "GPT-2, few rows in one round", m, 24) for m in (150, 250, 400)),
            *(("rms_linear_gelu", 3072, "GPT-2, few rows in one round", m, 24) for m in (150, 300, 350, 440)),
        )
    ),
    *(
        case("rms_linear_gelu", why, sixteen=True, M=m, K=k, N=128, Z=z, L=rows)
        for why, m, k, z, rows in (
            ("at most 8 rows, a K of three tiles, the last short", 5, 704, 11, 8),
            ("at most 16 rows, a K of three tiles, as many parts as are read at once", 11, 768, 16, 16),
            ("three row tiles, the last short, a K of three tiles", 130, 576, 9, 192),
            ("few rows, a K of more than three tiles", 100, 832, 13, 128),
        )
    ),
    case("rms_linear_gelu", "GPT-2 as at 1024 rows, with its K", sixteen=True, M=1001, K=768, N=3072, Z=6, L=1024),
    case("rms_linear_gelu", "GPT-2 as at 2048 rows, with its K", sixteen=True, M=1601, K=768, N=3072, Z=4, L=1664),
    case("rms_linear_gelu", "a longer K", gpu_only=True, sixteen=True, M=1601, K=832, N=3072, Z=4, L=1664),
    case("rms_linear", "GPT-2 as at 8192 rows, with its K", sixteen=True, M=6145, K=768, N=2304, Z=4, L=6208),
)

SMOLLM2: tuple[Case, ...] = (
    case("rms_swiglu", "odd in every size", M=7, K=33, N=65, Z=3, L=7),
    *(
        case("rms_swiglu", why, sixteen=True, M=m, K=k, N=n, Z=z, L=rows)
        for why, m, k, n, z, rows in (
            ("one row, a K of three tiles, the last short", 1, 576, 192, 18, 1),
            ("few rows, as many parts as are read at once", 11, 768, 64, 32, 64),
            ("several row tiles, the last short", 130, 576, 192, 18, 192),
            ("persistent: several tiles a block, the last group short", 600, 192, 320, 1, 640),
        )
    ),
    case("rms_swiglu", "SmolLM2, odd rows", gpu_only=True, sixteen=True, M=1001, K=576, N=1536, Z=3, L=1024),
    *(
        case("rms_linear", why, sixteen=True, M=m, K=k, N=192, Z=z, L=rows)
        for why, m, k, z, rows in (
            ("one row, a K of three tiles, the last short", 1, 576, 18, 1),
            ("few rows, as many parts as are read at once", 11, 768, 32, 64),
            ("several row tiles, the last short", 130, 576, 18, 192),
        )
    ),
    *(
        case("linear_residual_squares", why, sixteen=True, in_place="residual", M=m, K=k, N=192, Z=6, L=rows)
        for why, m, k, rows in (
            ("one row, narrow parts, a K of three tiles, the last short", 1, 576, 1),
            ("the same, a K of three wide tiles", 1, 1536, 1),
            ("few rows, a K of three tiles, the last short", 11, 576, 64),
            ("few rows, a K of three wide tiles", 11, 1536, 64),
            ("several row tiles, the last short", 130, 1536, 192),
        )
    ),
)
