"""Cases of products over weights of 8 bits alone."""

from __future__ import annotations

from .case import Case, case

PLAIN_WEIGHT = ("linear_weight", "linear_gelu_weight", "linear_residual_weight", "swiglu_weight")
NORM_WEIGHT = ("layernorm_linear_weight", "layernorm_linear_gelu_weight")
WEIGHT_F8 = tuple(f"{op}_f8" for op in (*PLAIN_WEIGHT, *NORM_WEIGHT, "linear_split_k_weight"))
WEIGHT_I8 = tuple(f"{op}_i8" for op in (*PLAIN_WEIGHT, *NORM_WEIGHT, "linear_split_k_weight"))
WEIGHT_8BITS = (*WEIGHT_F8, *WEIGHT_I8)

CASES: tuple[Case, ...] = (
    *(
        each
        for op in (f"{op}_{kind}" for kind in ("f8", "i8") for op in PLAIN_WEIGHT)
        for each in (
            case(op, "odd in every size", M=7, K=33, N=65),
            case(op, "one row, odd", M=1, K=133, N=27),
            case(op, "one row, a K of three steps, the last short", M=1, K=752, N=40),
            case(op, "one row, a longer K", M=1, K=1504, N=40),
            case(op, "one row, GPT-2's longest K", M=1, K=3072, N=16),
            case(op, "one row, too long to be read at once", M=1, K=3136, N=40),
            case(op, "at most 16 rows, a K of three steps, the last short", M=11, K=720, N=144),
            case(op, "at most 16 rows, too long to be read at once", M=11, K=784, N=144),
            case(op, "at most 64 rows, a K of three steps", M=41, K=768, N=144),
            case(op, "at most 64 rows, too long to be read at once", M=41, K=784, N=144),
            case(op, "several row tiles, the last short", M=210, K=176, N=144),
        )
    ),
    *(
        each
        for op in (f"{op}_{kind}" for kind in ("f8", "i8") for op in NORM_WEIGHT)
        for each in (
            case(op, "odd in every size", M=7, K=133, N=65),
            case(op, "one row, a K of three steps, the last short", M=1, K=752, N=40),
            case(op, "at most 16 rows, a K of three steps, the last short", M=5, K=720, N=80),
            case(op, "at most 16 rows, GPT-2's width", M=11, K=768, N=80),
            case(op, "more rows, a mean far above the deviation", mean=30, M=20, K=304, N=80),
        )
    ),
    *(
        each
        for op in (f"linear_split_k_weight_{kind}" for kind in ("f8", "i8"))
        for each in (
            case(op, "odd in every size, the last part shorter", M=3, K=333, N=65, Z=3),
            case(op, "a part with nothing in it", M=2, K=130, N=64, Z=5),
            case(op, "at most 16 rows, the last part shorter", M=11, K=1472, N=80, Z=2),
            case(op, "at most 64 rows, the last part shorter", M=41, K=1472, N=80, Z=2),
            case(op, "more rows", M=70, K=1536, N=80, Z=2),
        )
    ),
    *(
        case(f"linear_residual_weight_{kind}", "in place", in_place="residual", M=m, K=128, N=80)
        for kind in ("f8", "i8")
        for m in (1, 70)
    ),
)
