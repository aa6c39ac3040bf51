"""Cases of ops that work row by row: norms, GELU and softmax."""

from __future__ import annotations

from .case import Case, case

LAYERNORM: tuple[Case, ...] = (
    case("layernorm", "a width below one tile, not a power of two", N=3, C=48),
    case("layernorm", "one row", N=1, C=768),
    case("layernorm", "GPT-2, odd rows", N=100, C=768),
    case("layernorm", "each block takes several rows, and one is left over", N=1025, C=48),
    case("layernorm", "GPT-2, each warp takes two rows, and one is left over", N=1537, C=768),
    case("layernorm", "a mean far above the deviation", mean=3000, N=3, C=768),
    case("layernorm", "a mean far above the deviation, many rows", mean=3000, N=1537, C=768),
    case("layernorm", "GPT-2 XL", N=5, C=1600),
    case("layernorm", "odd: several tiles and a remainder", N=3, C=3001),
)

RESIDUAL_LAYERNORM: tuple[Case, ...] = (
    case("residual_layernorm", "one part, odd", Z=1, N=3, C=33),
    case("residual_layernorm", "GPT-2, several parts and a remainder", Z=6, N=5, C=768),
    case("residual_layernorm", "GPT-2, four parts", Z=4, N=5, C=768),
    case("residual_layernorm", "four parts, a width other than GPT-2's", Z=4, N=5, C=40),
    case("residual_layernorm", "GPT-2 XL", Z=4, N=2, C=1600),
)

GELU_AND_SOFTMAX: tuple[Case, ...] = (
    case("gelu", "odd", M=7, N=65),
    case("gelu", "several tiles", M=33, N=3072),
    case("gelu", "each block takes several rows, and some are left over", M=1025, N=72),
    case("softmax", "below one tile", M=3, N=48),
    case("softmax", "several tiles and a remainder", M=3, N=3001),
    case("softmax", "GPT-2's vocabulary: many tiles and a remainder", M=3, N=50257),
    case("softmax", "rows that begin at any place in a vector", M=11, N=16387),
    case("softmax", "the widest rows of that entry, where each row begins at a vector", M=3, N=53248),
    case("softmax", "the widest rows: an element above all others in each of the seven tiles", M=14, N=57344),
    case("softmax", "many tiles, loaded element by element", misaligned=True, M=3, N=50257),
)

RMSNORM: tuple[Case, ...] = (
    case("rmsnorm", "one row, a width below one tile, not a power of two", N=1, C=48),
    case("rmsnorm", "SmolLM2, odd rows", N=101, C=576),
    case("rmsnorm", "odd: several tiles and a remainder", N=3, C=3001),
)
