"""Cases of what several GPUs launch together."""

from __future__ import annotations

from .case import Case, case

CASES: tuple[Case, ...] = (
    *(
        each
        for op in ("all_reduce", "all_reduce_two_shot", "all_gather", "reduce_scatter", "broadcast")
        for each in (
            case(op, "fewer elements than a tile", R=2, N=5, B=3, TWO=2),
            case(op, "three ranks; more tiles than blocks, and a remainder", R=3, N=10000, B=2, TWO=2),
            case(op, "the same, loaded element by element", misaligned=True, R=2, N=10001, B=2, TWO=2),
        )
    ),
    case("next_token_of_ranks", "one part of each", R=2, M=1, Z=1, B=3, TWO=2),
    case("next_token_of_ranks", "three ranks, more rows than blocks and parts than a tile", R=3, M=5, Z=70, B=2, TWO=2),
    *(
        case(op, "a large message, in large tiles", R=2, N=2**18 + 8, B=16, TWO=2)
        for op in ("all_gather", "reduce_scatter", "broadcast")
    ),
    case("all_reduce_layernorm", "below one tile, odd", R=2, N=3, C=33, B=4, TWO=2),
    case("all_reduce_layernorm", "GPT-2 XL; three ranks, more rows than blocks", R=3, N=5, C=1600, B=2, TWO=2),
    case("all_reduce_layernorm", "the same, loaded element by element", misaligned=True, R=2, N=5, C=48, B=2, TWO=2),
    *(
        each
        for op in ("all_reduce_layernorm", "all_reduce_rmsnorm")
        for each in (
            case(op, "many rows, eight at a time, and a remainder", R=2, N=19, C=72, B=2, TWO=2),
            case(op, "many wide rows, four at a time; three ranks", R=3, N=11, C=1048, B=2, TWO=2),
        )
    ),
    case("all_reduce_rmsnorm", "below one tile, odd", R=2, N=3, C=33, B=4, TWO=2),
    case("all_reduce_rmsnorm", "SmolLM2; three ranks, more rows than blocks", R=3, N=5, C=576, B=2, TWO=2),
    case("all_reduce_rmsnorm", "as wide as Llama 3", R=2, N=2, C=4096, B=1, TWO=2),
    case("all_reduce_rmsnorm", "loaded element by element", misaligned=True, R=2, N=5, C=48, B=2, TWO=2),
    *(
        each
        for op in ("matmul_reduce_scatter", "all_gather_matmul")
        for each in (
            case(op, "below one tile, odd", R=2, M=3, N=5, K=7, B=3, TWO=2),
            case(op, "three ranks; more tiles than blocks, and a remainder", R=3, M=40, N=70, K=40, B=2, TWO=2),
            case(op, "the same, loaded element by element", misaligned=True, R=2, M=33, N=65, K=40, B=2, TWO=2),
        )
    ),
    case("matmul_reduce_scatter", "in vectors: tiles that are not whole", R=2, M=40, N=72, K=72, B=2, TWO=2),
    case("matmul_reduce_scatter", "three ranks in vectors", gpu_only=True, R=3, M=300, N=520, K=200, B=24, TWO=2),
    *(
        case(op, "large tiles", gpu_only=True, R=2, M=4096, N=4096, K=72, B=66, TWO=2)
        for op in ("matmul_reduce_scatter", "all_gather_matmul")
    ),
    case("all_gather_matmul", "in vectors: tiles that are not whole", R=2, M=40, N=72, K=72, B=2, TWO=2),
    case("all_gather_matmul", "three ranks in vectors", gpu_only=True, R=3, M=300, N=520, K=200, B=24, TWO=2),
    case("linear_to_ranks", "a tile of rows for each rank", R=2, M=256, Q=128, N=72, K=72, Z=1, B=2, TWO=2),
    *(
        case("linear_to_ranks", "XL on two", gpu_only=True, R=2, M=m, Q=m // 2, N=1600, K=832, Z=13, B=48, TWO=2)
        for m in (1024, 2048)
    ),
    case(
        "linear_to_ranks",
        "the same in larger tiles",
        gpu_only=True,
        R=2,
        M=1024,
        Q=512,
        N=1600,
        K=832,
        Z=10,
        B=48,
        TWO=2,
    ),
    case("attention_to_ranks", "a sequence for each rank", R=2, B=2, T=64, Q=64, H=1, C=128, D=64),
    case("attention_to_ranks", "one sequence for all", gpu_only=True, R=2, B=1, T=1024, Q=512, H=12, C=1536, D=64),
    case("attention_to_ranks", "many sequences", gpu_only=True, R=2, B=8, T=1024, Q=4096, H=12, C=1536, D=64),
    case("linear_of_own_rows", "a tile of rows for each rank", R=2, M=256, Q=128, N=72, K=72, Z=1, B=2, TWO=2),
    case("linear_of_own_rows", "few rows of XL", gpu_only=True, R=2, M=1024, Q=512, N=1600, K=6400, Z=13, B=60, TWO=2),
    *(
        case("linear_of_own_rows", "XL", gpu_only=True, R=2, M=2048, Q=1024, N=1600, K=1600, Z=parts, B=48, TWO=2)
        for parts in (13, 10, 8)
    ),
    *(
        each
        for op in ("rms_linear_of_ranks", "rms_linear_gelu_of_ranks")
        for each in (
            case(op, "a tile of rows for each rank", R=2, M=256, N=72, K=72, Z=1, B=2, TWO=2),
            case(op, "three ranks, many tiles", gpu_only=True, R=3, M=1152, N=1216, K=1600, Z=13, B=40, TWO=2),
        )
    ),
)
