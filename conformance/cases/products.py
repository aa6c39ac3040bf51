"""Cases of products of matrices."""

from __future__ import annotations

from .case import Case, case

LINEAR: tuple[Case, ...] = (
    case("linear", "smaller than any tile in every size", M=1, K=48, N=144),
    case("linear", "odd in every size: no alignment anywhere", M=7, K=33, N=65),
    case("linear", "GPT-2 QKV, several row tiles with a remainder", M=100, K=768, N=2304),
    case("linear", "few rows, as decoding has them", M=9, K=128, N=192),
    case("linear", "few rows, a K of three tiles, the last short", M=16, K=704, N=128),
    case("linear", "at most 8 rows, a K of three tiles, the last short", M=5, K=704, N=128),
    case("linear", "more rows, a K of three tiles", M=33, K=768, N=128),
    case("linear", "three row tiles, the last short, a K of three tiles", M=130, K=576, N=192),
    case("linear", "more than one row tile, a K of more than three tiles", M=70, K=832, N=192),
    case("linear", "few rows, a K of more than three tiles", M=9, K=832, N=192),
    case("linear", "persistent: each block makes several tiles, the last group of rows is short", M=600, K=64, N=320),
    case("linear", "persistent, split-N tiles; the last one holds only a piece of its first part", M=520, K=128, N=448),
    case("linear", "persistent, few columns", M=600, K=64, N=192),
    *(
        case(op, f"a shape for which tiles of {width} columns take least time", sixteen=True, M=1000, K=64, N=n)
        for op, widths in (
            ("linear", {384: 6080, 320: 4736, 256: 4032, 192: 3008}),
            ("linear_gelu", {384: 6080, 320: 4736, 256: 4032, 192: 3008}),
            ("linear_residual", {320: 4736, 256: 4032, 192: 3008, 160: 2496}),
        )
        for width, n in widths.items()
    ),
    case("linear", "a long K", sixteen=True, M=1000, K=8192, N=3008),
    case("linear", "GPT-2 QKV, B=8 T=256", gpu_only=True, M=2048, K=768, N=2304),
    case("linear", "GPT-2 QKV, odd rows", gpu_only=True, M=1001, K=768, N=2304),
    case("linear", "GPT-2 medium's width, odd rows", gpu_only=True, M=1001, K=1024, N=832),
    case("linear", "GPT-2 large's width, odd rows", gpu_only=True, M=1001, K=1280, N=832),
    case("linear", "GPT-2 XL's width, odd rows", gpu_only=True, M=1001, K=1600, N=832),
    case("linear", "very many rows", gpu_only=True, M=16500, K=64, N=384),
    case("linear_gelu", "odd in every size", M=7, K=33, N=65),
    case("linear_gelu", "few rows, as decoding has them", M=9, K=128, N=192),
    case("linear_gelu", "few rows, a K of three tiles, the last short", M=16, K=704, N=128),
    case("linear_gelu", "at most 8 rows, a K of three tiles, the last short", M=5, K=704, N=128),
    case("linear_gelu", "more rows, a K of three tiles", M=33, K=768, N=128),
    case("linear_gelu", "three row tiles, the last short, a K of three tiles", M=130, K=576, N=192),
    case("linear_gelu", "more than one row tile, a K of more than three tiles", M=70, K=832, N=192),
    case("linear_gelu", "few rows, a K of more than three tiles", M=9, K=832, N=192),
    case("linear_gelu", "persistent", M=520, K=64, N=256),
    case("linear_gelu", "persistent, split-N tiles", M=520, K=64, N=448),
    case("linear_gelu", "persistent, few columns", M=600, K=64, N=192),
    case("linear_gelu", "GPT-2 MLP, odd rows", M=100, K=768, N=3072),
    case("linear_gelu", "GPT-2 MLP, more odd rows", gpu_only=True, M=1001, K=768, N=3072),
    case("linear_gelu", "GPT-2 medium's width, odd rows", gpu_only=True, M=1001, K=1024, N=832),
    case("linear_gelu", "GPT-2 large's width, odd rows", gpu_only=True, M=1001, K=1280, N=832),
    case("linear_gelu", "GPT-2 XL's width, odd rows", gpu_only=True, M=1001, K=1600, N=832),
    case("linear_gelu", "very many rows", gpu_only=True, M=16500, K=64, N=768),
    case("linear_residual", "odd in every size", M=7, K=33, N=65),
    case("linear_residual", "few rows, as decoding has them", M=9, K=128, N=192),
    case("linear_residual", "few rows, a K of three tiles, in place", in_place="residual", M=16, K=704, N=96),
    case("linear_residual", "at most 8 rows, a K of three tiles, in place", in_place="residual", M=5, K=704, N=128),
    case("linear_residual", "at most 16 rows, whole columns of tiles", in_place="residual", M=11, K=704, N=128),
    case("linear_residual", "more rows, a K of three tiles", M=33, K=768, N=96),
    case("linear_residual", "four row tiles, in place", in_place="residual", M=194, K=576, N=96),
    case("linear_residual", "few rows, a K of more than three tiles", M=9, K=832, N=192),
    case("linear_residual", "persistent, and as the model runs it", in_place="residual", M=520, K=64, N=256),
    case("linear_residual", "a round of tiles of 192 columns", in_place="residual", gpu_only=True, M=2000, K=72, N=768),
    case("linear_residual", "persistent, split-N tiles, in place", in_place="residual", M=520, K=64, N=448),
    case("linear_residual", "persistent, few columns, in place", in_place="residual", M=600, K=64, N=192),
    case(
        "linear_residual",
        "persistent, split-N tiles with equal parts",
        sixteen=True,
        in_place="residual",
        M=1000,
        K=64,
        N=1984,
    ),
    case("linear_residual", "GPT-2 MLP projection: the longest K", M=100, K=3072, N=768),
    case("linear_residual", "one row, a K within one tile, in place", in_place="residual", M=1, K=768, N=96),
    case(
        "linear_residual", "a K that is not a multiple of the step, in place", in_place="residual", M=1, K=1600, N=1600
    ),
    case("linear_residual", "GPT-2, odd rows", gpu_only=True, in_place="residual", M=1001, K=768, N=768),
    case("linear_residual", "GPT-2's long K, odd rows", gpu_only=True, in_place="residual", M=1001, K=3072, N=768),
    case(
        "linear_residual", "GPT-2 medium's width, odd rows", gpu_only=True, in_place="residual", M=1001, K=1024, N=832
    ),
    case("linear_residual", "GPT-2 large's width, odd rows", gpu_only=True, in_place="residual", M=1001, K=1280, N=832),
    case("linear_residual", "GPT-2 XL's width, odd rows", gpu_only=True, in_place="residual", M=1001, K=1600, N=832),
    case("linear_residual", "GPT-2 medium's long K", gpu_only=True, in_place="residual", M=1001, K=4096, N=832),
    case("linear_residual", "GPT-2 large's long K", gpu_only=True, in_place="residual", M=1001, K=5120, N=832),
    case("linear_residual", "GPT-2 XL's long K", gpu_only=True, in_place="residual", M=1001, K=6400, N=832),
    case("linear_residual", "very many rows", gpu_only=True, in_place="residual", M=16500, K=64, N=384),
    case("linear_residual", "very many rows, a longer K", gpu_only=True, in_place="residual", M=16500, K=1088, N=192),
)

SPLIT_K: tuple[Case, ...] = (
    case("linear_split_k", "odd in every size, the last part shorter", M=3, K=333, N=65, Z=3),
    case("linear_split_k", "a part with nothing in it", M=2, K=130, N=64, Z=5),
    case("linear_split_k", "parts of three tiles, the last part shorter", M=5, K=1472, N=128, Z=2),
    case("linear_split_k", "parts of three tiles, the last part shorter, at most 16 rows", M=11, K=1472, N=128, Z=2),
    case("linear_split_k", "parts of three tiles, the last part shorter, more rows", M=20, K=1472, N=64, Z=2),
    case("linear_split_k", "short parts, few rows", M=5, K=1024, N=64, Z=4),
    case("linear_split_k", "short parts, more rows", M=20, K=1024, N=64, Z=4),
    case("linear_split_k", "parts of three tiles, three row tiles, the last short", M=130, K=1536, N=64, Z=2),
    case("linear_split_k", "parts of five tiles of 64, more rows", M=40, K=640, N=96, Z=2),
    case("linear_split_k", "GPT-2 MLP projection, few rows", M=5, K=3072, N=768, Z=4),
    case("linear_split_k", "GPT-2 MLP projection, more rows", M=40, K=3072, N=768, Z=4),
)

LOGITS: tuple[Case, ...] = (
    case("logits", "an odd vocabulary, one row", M=1, C=48, V=257),
    case("logits", "few rows, as decoding has them", M=9, C=128, V=192),
    case("logits", "several row tiles with a remainder", M=100, C=128, V=192),
    case("logits", "persistent", M=520, C=64, V=256),
    case("logits", "persistent, split-N tiles", M=520, C=64, V=448),
    case("logits", "many rows", M=6200, C=64, V=448),
    case("logits", "persistent, GPT-2's width", M=520, C=768, V=448),
    case("logits", "many rows, GPT-2's width", M=6200, C=768, V=448),
    case("logits", "GPT-2's padded vocabulary, odd rows", gpu_only=True, M=301, C=64, V=50304),
    case("logits", "very many rows", gpu_only=True, M=16500, C=64, V=768),
    case("logits", "GPT-2's vocabulary, not a multiple of anything", M=3, C=768, V=50257),
    case("logits", "a narrow model's large vocabulary, few rows", sixteen=True, M=3, C=576, V=32768),
)

MATMUL: tuple[Case, ...] = (
    *(
        each
        for op, place in (("matmul", ""), ("matmul_residual", "residual"), ("swiglu", ""))
        for each in (
            case(op, "odd in every size: no alignment anywhere", M=7, K=33, N=65),
            case(op, "few rows, as decoding has them", in_place=place, M=9, K=192, N=128),
            case(op, "few rows, a width that SmolLM2's are multiples of", in_place=place, M=9, K=192, N=192),
            case(op, "many rows of that width", sixteen=True, in_place=place, M=520, K=64, N=192),
            case(op, "more rows, the last tile short", in_place=place, M=70, K=128, N=192),
            case(op, "persistent: several tiles a block, the last group short", in_place=place, M=600, K=64, N=320),
            case(op, "SmolLM2, odd rows", gpu_only=True, in_place=place, M=301, K=576, N=1536),
        )
    ),
)
