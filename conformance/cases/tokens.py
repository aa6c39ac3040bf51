"""Cases of tokens: their embeddings, and the choice of the next one."""

from __future__ import annotations

from .case import Case, case

EMBEDDING: tuple[Case, ...] = (
    case("embedding", "one token", N=1, V=50257, P=4, C=48),
    case("embedding", "odd count, a width below one tile", N=100, V=257, P=100, C=48),
    case(
        "embedding", "several tiles and a remainder, loaded element by element", misaligned=True, N=3, V=9, P=4, C=1025
    ),
    case("embedding", "GPT-2", N=64, V=50257, P=1024, C=768),
    case("embedding", "each block takes several tokens, and one is left over", N=101, V=257, P=128, C=1032),
    case("embedding_centred", "one token", N=1, V=50257, P=4, C=48, Z=1, L=1),
    case(
        "embedding_centred",
        "several tiles and a remainder, loaded element by element",
        misaligned=True,
        N=3,
        V=9,
        P=4,
        C=1025,
        Z=3,
        L=3,
    ),
    case("embedding_centred", "GPT-2", N=64, V=50257, P=1024, C=768, Z=4, L=64),
    case("embedding_centred", "one token is left over", N=101, V=257, P=128, C=1000, Z=6, L=101),
    case("embedding_centred", "GPT-2 XL: two tiles", N=5, V=257, P=1024, C=1600, Z=2, L=5),
)

NEXT_TOKEN: tuple[Case, ...] = (
    case("argmax_parts", "below one part", M=3, V=48, Z=1),
    case("argmax_parts", "GPT-2's vocabulary, with ties", M=4, V=50257, Z=25),
    case("next_token", "one part", M=1, Z=1),
    case("next_token", "more parts than one tile, with ties", M=5, Z=100),
    case("token_embedding", "odd count, a width below one tile", N=100, V=257, C=48),
    case(
        "token_embedding", "several tiles and a remainder, loaded element by element", misaligned=True, N=3, V=9, C=1025
    ),
    case("token_embedding", "SmolLM2", N=5, V=49152, C=576),
)
