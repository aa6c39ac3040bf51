"""Cases of products whose operands are numbers of 8 bits with scales, and of what rounds rows to them."""

from __future__ import annotations

from .case import Case, case

SCALED_F8 = ("linear_f8", "linear_gelu_f8", "linear_gelu_f8_to_f8", "linear_residual_f8")
SCALED_I8 = ("linear_i8", "linear_gelu_i8", "linear_residual_i8")
SCALED = (*SCALED_F8, *SCALED_I8)

ANY_SIZE: tuple[Case, ...] = (
    *(
        each
        for op in ("quantize_rows", "quantize_rows_i8")
        for each in (
            case(op, "one row of zeros", N=1, C=48),
            case(op, "odd: several steps and a remainder", N=5, C=3001),
            case(op, "aligned, several steps", N=5, C=1040),
            case(op, "GPT-2, odd rows", N=101, C=768),
            case(op, "GPT-2's hidden layer, odd rows", N=33, C=3072),
        )
    ),
    *(
        each
        for op in SCALED
        for each in (
            case(op, "odd in every size", M=7, K=33, N=65),
            case(op, "few rows, a K of three steps, the last short", M=5, K=304, N=144),
            case(op, "persistent: several row tiles, the last short", M=600, K=256, N=288),
        )
    ),
)

LARGER: tuple[Case, ...] = (
    case("linear_gelu_f8_to_f8", "GPT-2's width, odd rows", gpu_only=True, M=1001, K=768, N=3072),
    *(case(op, "rows for large tiles, the last short", M=521, K=304, N=144) for op in SCALED_F8),
    *(case(op, "rows for larger tiles, the last short", M=4100, K=144, N=80) for op in SCALED_F8),
    *(case(op, "very many rows, the last tile short", M=16400, K=48, N=80) for op in SCALED_I8),
    case("linear_i8", "many columns", M=520, K=48, N=8208),
    case("linear_f8", "too long to be added up at once", M=513, K=2064, N=16),
    *(case(op, "few rows, a K too long for one sum", M=70, K=2064, N=16) for op in ("linear_f8", "linear_residual_f8")),
    case("linear_residual_f8", "in runs, the last one short", M=513, K=2064, N=16),
    case("linear_residual_f8", "in runs, rows for large tiles", M=1100, K=2064, N=48),
    *(
        case(op, "GPT-2 XL's long K", gpu_only=True, M=1100, K=6400, N=1600)
        for op in ("linear_f8", "linear_residual_f8")
    ),
    *(
        case(op, "GPT-2's long K, one round", gpu_only=True, M=2001, K=3072, N=768)
        for op in ("linear_f8", "linear_residual_f8")
    ),
    *(
        each
        for kind in ("f8", "i8")
        for each in (
            case(f"layernorm_{kind}", "odd", N=5, C=33),
            case(f"layernorm_{kind}", "GPT-2, odd rows", N=101, C=768),
            case(f"layernorm_{kind}", "GPT-2, each warp takes two rows, and one is left over", N=2049, C=768),
            case(f"layernorm_{kind}", "GPT-2 XL", N=3, C=1600),
            case(f"linear_residual_{kind}", "in place", in_place="residual", M=130, K=128, N=272),
            case(f"linear_{kind}", "GPT-2 QKV, odd rows", gpu_only=True, M=1001, K=768, N=2304),
            case(f"linear_{kind}", "many rows and columns, as logits have", gpu_only=True, M=4200, K=144, N=8208),
            case(f"linear_gelu_{kind}", "GPT-2's width, odd rows", gpu_only=True, M=1001, K=768, N=3072),
            case(f"linear_residual_{kind}", "GPT-2's long K, odd rows", gpu_only=True, M=1001, K=3072, N=768),
        )
    ),
)
