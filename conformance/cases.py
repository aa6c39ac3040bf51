"""The op cases of the conformance matrix, each with the reason for its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.contract.entry import ops

# Products whose operands are numbers of 8 bits with scales
ELEMENTS = "loaded element by element"
SCALED_F8 = ("linear_f8", "linear_gelu_f8", "linear_gelu_f8_to_f8", "linear_residual_f8")
SCALED_I8 = ("linear_i8", "linear_gelu_i8", "linear_residual_i8")
SCALED = (*SCALED_F8, *SCALED_I8)
# Products over weights of 8 bits alone
PLAIN_WEIGHT = ("linear_weight", "linear_gelu_weight", "linear_residual_weight", "swiglu_weight")
NORM_WEIGHT = ("layernorm_linear_weight", "layernorm_linear_gelu_weight")
WEIGHT_F8 = tuple(f"{op}_f8" for op in (*PLAIN_WEIGHT, *NORM_WEIGHT, "linear_split_k_weight"))
WEIGHT_I8 = tuple(f"{op}_i8" for op in (*PLAIN_WEIGHT, *NORM_WEIGHT, "linear_split_k_weight"))
WEIGHT_8BITS = (*WEIGHT_F8, *WEIGHT_I8)


@dataclass(frozen=True)
class Case:
    """One op at one set of sizes.

    `gpu_only`: too slow for the interpreter.
    `in_place`: the input whose buffer is also that of an output, which the op's `aliases` name.
    `misaligned`: no array begins at a multiple of 16 bytes.
    `mean`: the mean of x, much larger than its deviation.
    `sixteen`: f16 and bf16 only: the case is for entries that other dtypes do not have.
    `towering`: the scores of one early key are far above those of the keys near a query.
    """

    op: str
    dims: Mapping[str, int]
    why: str
    gpu_only: bool = False
    in_place: str = ""
    misaligned: bool = False
    mean: int = 0
    sixteen: bool = False
    towering: bool = False

    @property
    def shape(self) -> str:
        words = [f"{name}={size}" for name, size in self.dims.items()]
        words += ["in place"] * bool(self.in_place) + ["misaligned"] * self.misaligned
        words += ["towering key"] * self.towering
        return " ".join([*words, *[f"mean {self.mean}"] * bool(self.mean)])

    @property
    def in_place_output(self) -> str:
        """The output that `in_place` shares its buffer with."""
        return next(output for given, output in ops()[self.op].aliases if given == self.in_place)

    def dtypes(self) -> tuple[str, ...]:
        """The dtypes to run: those of the op, or with `sixteen` those of them that have 16 bits."""
        return tuple(d for d in ops()[self.op].dtypes if not self.sixteen or d in ("f16", "bf16"))


def _case(
    op: str,
    why: str,
    *,
    gpu_only: bool = False,
    in_place: str = "",
    misaligned: bool = False,
    mean: int = 0,
    sixteen: bool = False,
    towering: bool = False,
    **dims: int,
) -> Case:
    return Case(op, dims, why, gpu_only, in_place, misaligned, mean, sixteen, towering)


CASES: tuple[Case, ...] = (
    _case("embedding", "one token", N=1, V=50257, P=4, C=48),
    _case("embedding", "odd count, a width below one tile", N=100, V=257, P=100, C=48),
    _case(
        "embedding", "several tiles and a remainder, loaded element by element", misaligned=True, N=3, V=9, P=4, C=1025
    ),
    _case("embedding", "GPT-2", N=64, V=50257, P=1024, C=768),
    _case("embedding", "each block takes several tokens, and one is left over", N=101, V=257, P=128, C=1032),
    _case("embedding_centred", "one token", N=1, V=50257, P=4, C=48, Z=1, L=1),
    _case(
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
    _case("embedding_centred", "GPT-2", N=64, V=50257, P=1024, C=768, Z=4, L=64),
    _case("embedding_centred", "one token is left over", N=101, V=257, P=128, C=1000, Z=6, L=101),
    _case("embedding_centred", "GPT-2 XL: two tiles", N=5, V=257, P=1024, C=1600, Z=2, L=5),
    _case("layernorm", "a width below one tile, not a power of two", N=3, C=48),
    _case("layernorm", "one row", N=1, C=768),
    _case("layernorm", "GPT-2, odd rows", N=100, C=768),
    _case("layernorm", "each block takes several rows, and one is left over", N=1025, C=48),
    _case("layernorm", "GPT-2, each warp takes two rows, and one is left over", N=1537, C=768),
    _case("layernorm", "a mean far above the deviation", mean=3000, N=3, C=768),
    _case("layernorm", "a mean far above the deviation, many rows", mean=3000, N=1537, C=768),
    _case("layernorm", "GPT-2 XL", N=5, C=1600),
    _case("layernorm", "odd: several tiles and a remainder", N=3, C=3001),
    _case("linear", "smaller than any tile in every size", M=1, K=48, N=144),
    _case("linear", "odd in every size: no alignment anywhere", M=7, K=33, N=65),
    _case("linear", "GPT-2 QKV, several row tiles with a remainder", M=100, K=768, N=2304),
    _case("linear", "few rows, as decoding has them", M=9, K=128, N=192),
    _case("linear", "few rows, a K of three tiles, the last short", M=16, K=704, N=128),
    _case("linear", "at most 8 rows, a K of three tiles, the last short", M=5, K=704, N=128),
    _case("linear", "more rows, a K of three tiles", M=33, K=768, N=128),
    _case("linear", "three row tiles, the last short, a K of three tiles", M=130, K=576, N=192),
    _case("linear", "more than one row tile, a K of more than three tiles", M=70, K=832, N=192),
    _case("linear", "few rows, a K of more than three tiles", M=9, K=832, N=192),
    _case("linear", "persistent: each block makes several tiles, the last group of rows is short", M=600, K=64, N=320),
    _case(
        "linear", "persistent, split-N tiles; the last one holds only a piece of its first part", M=520, K=128, N=448
    ),
    _case("linear", "persistent, few columns", M=600, K=64, N=192),
    *(
        _case(op, f"a shape for which tiles of {width} columns take least time", sixteen=True, M=1000, K=64, N=n)
        for op, widths in (
            ("linear", {384: 6080, 320: 4736, 256: 4032, 192: 3008}),
            ("linear_gelu", {384: 6080, 320: 4736, 256: 4032, 192: 3008}),
            ("linear_residual", {320: 4736, 256: 4032, 192: 3008, 160: 2496}),
        )
        for width, n in widths.items()
    ),
    _case("linear", "a long K", sixteen=True, M=1000, K=8192, N=3008),
    _case("linear", "GPT-2 QKV, B=8 T=256", gpu_only=True, M=2048, K=768, N=2304),
    _case("linear", "GPT-2 QKV, odd rows", gpu_only=True, M=1001, K=768, N=2304),
    _case("linear", "GPT-2 medium's width, odd rows", gpu_only=True, M=1001, K=1024, N=832),
    _case("linear", "GPT-2 large's width, odd rows", gpu_only=True, M=1001, K=1280, N=832),
    _case("linear", "GPT-2 XL's width, odd rows", gpu_only=True, M=1001, K=1600, N=832),
    _case("linear", "very many rows", gpu_only=True, M=16500, K=64, N=384),
    _case("linear_gelu", "odd in every size", M=7, K=33, N=65),
    _case("linear_gelu", "few rows, as decoding has them", M=9, K=128, N=192),
    _case("linear_gelu", "few rows, a K of three tiles, the last short", M=16, K=704, N=128),
    _case("linear_gelu", "at most 8 rows, a K of three tiles, the last short", M=5, K=704, N=128),
    _case("linear_gelu", "more rows, a K of three tiles", M=33, K=768, N=128),
    _case("linear_gelu", "three row tiles, the last short, a K of three tiles", M=130, K=576, N=192),
    _case("linear_gelu", "more than one row tile, a K of more than three tiles", M=70, K=832, N=192),
    _case("linear_gelu", "few rows, a K of more than three tiles", M=9, K=832, N=192),
    _case("linear_gelu", "persistent", M=520, K=64, N=256),
    _case("linear_gelu", "persistent, split-N tiles", M=520, K=64, N=448),
    _case("linear_gelu", "persistent, few columns", M=600, K=64, N=192),
    _case("linear_gelu", "GPT-2 MLP, odd rows", M=100, K=768, N=3072),
    _case("linear_gelu", "GPT-2 MLP, more odd rows", gpu_only=True, M=1001, K=768, N=3072),
    _case("linear_gelu", "GPT-2 medium's width, odd rows", gpu_only=True, M=1001, K=1024, N=832),
    _case("linear_gelu", "GPT-2 large's width, odd rows", gpu_only=True, M=1001, K=1280, N=832),
    _case("linear_gelu", "GPT-2 XL's width, odd rows", gpu_only=True, M=1001, K=1600, N=832),
    _case("linear_gelu", "very many rows", gpu_only=True, M=16500, K=64, N=768),
    _case("linear_residual", "odd in every size", M=7, K=33, N=65),
    _case("linear_residual", "few rows, as decoding has them", M=9, K=128, N=192),
    _case("linear_residual", "few rows, a K of three tiles, in place", in_place="residual", M=16, K=704, N=96),
    _case("linear_residual", "at most 8 rows, a K of three tiles, in place", in_place="residual", M=5, K=704, N=128),
    _case("linear_residual", "at most 16 rows, whole columns of tiles", in_place="residual", M=11, K=704, N=128),
    _case("linear_residual", "more rows, a K of three tiles", M=33, K=768, N=96),
    _case("linear_residual", "four row tiles, in place", in_place="residual", M=194, K=576, N=96),
    _case("linear_residual", "few rows, a K of more than three tiles", M=9, K=832, N=192),
    _case("linear_residual", "persistent, and as the model runs it", in_place="residual", M=520, K=64, N=256),
    _case("linear_residual", "persistent, split-N tiles, in place", in_place="residual", M=520, K=64, N=448),
    _case("linear_residual", "persistent, few columns, in place", in_place="residual", M=600, K=64, N=192),
    _case(
        "linear_residual",
        "persistent, split-N tiles with equal parts",
        sixteen=True,
        in_place="residual",
        M=1000,
        K=64,
        N=1984,
    ),
    _case("linear_residual", "GPT-2 MLP projection: the longest K", M=100, K=3072, N=768),
    _case("linear_residual", "one row, a K within one tile, in place", in_place="residual", M=1, K=768, N=96),
    _case(
        "linear_residual", "a K that is not a multiple of the step, in place", in_place="residual", M=1, K=1600, N=1600
    ),
    _case("linear_residual", "GPT-2, odd rows", gpu_only=True, in_place="residual", M=1001, K=768, N=768),
    _case("linear_residual", "GPT-2's long K, odd rows", gpu_only=True, in_place="residual", M=1001, K=3072, N=768),
    _case(
        "linear_residual", "GPT-2 medium's width, odd rows", gpu_only=True, in_place="residual", M=1001, K=1024, N=832
    ),
    _case(
        "linear_residual", "GPT-2 large's width, odd rows", gpu_only=True, in_place="residual", M=1001, K=1280, N=832
    ),
    _case("linear_residual", "GPT-2 XL's width, odd rows", gpu_only=True, in_place="residual", M=1001, K=1600, N=832),
    _case("linear_residual", "GPT-2 medium's long K", gpu_only=True, in_place="residual", M=1001, K=4096, N=832),
    _case("linear_residual", "GPT-2 large's long K", gpu_only=True, in_place="residual", M=1001, K=5120, N=832),
    _case("linear_residual", "GPT-2 XL's long K", gpu_only=True, in_place="residual", M=1001, K=6400, N=832),
    _case("linear_residual", "very many rows", gpu_only=True, in_place="residual", M=16500, K=64, N=384),
    _case("linear_residual", "very many rows, a longer K", gpu_only=True, in_place="residual", M=16500, K=1088, N=192),
    _case("linear_residual_squares", "odd in every size", M=7, K=33, N=65, Z=1, L=7),
    _case(
        "linear_residual_squares", "odd; several parts, one without columns; L is above M", M=40, K=33, N=200, Z=5, L=64
    ),
    _case(
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
        _case("linear_residual_squares", why, in_place="residual", sixteen=True, M=m, K=k, N=64 * z, Z=z, L=rows)
        for why, m, k, z, rows in (
            ("at most 8 rows, a K of three tiles, the last short", 5, 704, 2, 8),
            ("at most 16 rows, a K of three tiles, the last short", 11, 704, 3, 16),
            ("three row tiles, the last short, a K of three tiles", 130, 576, 2, 192),
        )
    ),
    _case(
        "linear_residual_squares", "one tile per part, in place", in_place="residual", M=600, K=128, N=256, Z=2, L=640
    ),
    _case("linear_residual_squares", "GPT-2 as at 1024 rows, odd rows", M=1001, K=64, N=768, Z=6, L=1024),
    _case("linear_residual_squares", "one split-N tile per part", M=520, K=128, N=384, Z=2, L=576),
    _case(
        "linear_residual_squares", "GPT-2 at 2048 rows, in place", in_place="residual", M=2000, K=64, N=768, Z=4, L=2048
    ),
    *(
        _case(
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
        _case(
            "linear_residual_squares",
            f"parts of {width} columns, the last short",
            in_place="residual",
            sixteen=True,
            M=m,
            K=128,
            N=n,
            Z=z,
            L=-(-m // 64) * 64,
        )
        for width, m, n, z in ((256, 520, 704, 3), (160, 520, 576, 4), (128, 2900, 320, 3))
    ),
    _case("linear_residual_squares", "GPT-2's long K, odd rows", gpu_only=True, M=1001, K=3072, N=768, Z=6, L=1024),
    _case("linear_residual_squares", "GPT-2's long K, 2048 rows", gpu_only=True, M=2047, K=3072, N=768, Z=4, L=2048),
    *(
        case
        for op in ("rms_linear", "rms_linear_gelu")
        for case in (
            _case(op, "odd in every size", M=7, K=33, N=65, Z=1, L=7),
            _case(op, "odd; more parts than are read at once; L is above M", M=40, K=33, N=70, Z=5, L=64),
            _case(op, "few rows", M=100, K=128, N=192, Z=2, L=128),
            _case(op, "persistent, more parts than are read at once", M=600, K=64, N=448, Z=6, L=640),
            _case(op, "more rows, few columns", sixteen=True, M=1600, K=64, N=192, Z=4, L=1600),
            *(
                _case(
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
        _case(op, why, sixteen=True, M=m, K=64, N=n, Z=z, L=-(-m // 64) * 64)
        for op, n, why, m, z in (
            ("rms_linear", 2304, "GPT-2 as at 1024 rows, odd rows", 1001, 6),
            ("rms_linear", 2304, "GPT-2, as at 2048 rows", 1601, 4),
            ("rms_linear", 2304, "GPT-2, as at 4096 rows", 3100, 4),
            ("rms_linear", 2304, "GPT-2, as at 32768 rows", 16400, 4),
            ("rms_linear_gelu", 3072, "GPT-2, as at 32768 rows", 16400, 4),
        )
    ),
    *(
        _case("rms_linear_gelu", why, sixteen=True, M=m, K=k, N=128, Z=z, L=rows)
        for why, m, k, z, rows in (
            ("at most 8 rows, a K of three tiles, the last short", 5, 704, 11, 8),
            ("at most 16 rows, a K of three tiles, as many parts as are read at once", 11, 768, 16, 16),
            ("three row tiles, the last short, a K of three tiles", 130, 576, 9, 192),
            ("few rows, a K of more than three tiles", 100, 832, 13, 128),
        )
    ),
    _case("rms_linear_gelu", "GPT-2 as at 1024 rows, with its K", sixteen=True, M=1001, K=768, N=3072, Z=6, L=1024),
    _case("rms_linear_gelu", "GPT-2 as at 2048 rows, with its K", sixteen=True, M=1601, K=768, N=3072, Z=4, L=1664),
    _case("rms_linear", "GPT-2 as at 8192 rows, with its K", sixteen=True, M=6145, K=768, N=2304, Z=4, L=6208),
    _case("linear_split_k", "odd in every size, the last part shorter", M=3, K=333, N=65, Z=3),
    _case("linear_split_k", "a part with nothing in it", M=2, K=130, N=64, Z=5),
    _case("linear_split_k", "parts of three tiles, the last part shorter", M=5, K=1472, N=128, Z=2),
    _case("linear_split_k", "parts of three tiles, the last part shorter, at most 16 rows", M=11, K=1472, N=128, Z=2),
    _case("linear_split_k", "parts of three tiles, the last part shorter, more rows", M=20, K=1472, N=64, Z=2),
    _case("linear_split_k", "short parts, few rows", M=5, K=1024, N=64, Z=4),
    _case("linear_split_k", "short parts, more rows", M=20, K=1024, N=64, Z=4),
    _case("linear_split_k", "parts of three tiles, three row tiles, the last short", M=130, K=1536, N=64, Z=2),
    _case("linear_split_k", "parts of five tiles of 64, more rows", M=40, K=640, N=96, Z=2),
    _case("linear_split_k", "GPT-2 MLP projection, few rows", M=5, K=3072, N=768, Z=4),
    _case("linear_split_k", "GPT-2 MLP projection, more rows", M=40, K=3072, N=768, Z=4),
    *(
        case
        for op in ("quantize_rows", "quantize_rows_i8")
        for case in (
            _case(op, "one row of zeros", N=1, C=48),
            _case(op, "odd: several steps and a remainder", N=5, C=3001),
            _case(op, "aligned, several steps", N=5, C=1040),
            _case(op, "GPT-2, odd rows", N=101, C=768),
            _case(op, "GPT-2's hidden layer, odd rows", N=33, C=3072),
        )
    ),
    *(
        case
        for op in SCALED
        for case in (
            _case(op, "odd in every size", M=7, K=33, N=65),
            _case(op, "few rows, a K of three steps, the last short", M=5, K=304, N=144),
            _case(op, "persistent: several row tiles, the last short", M=600, K=256, N=288),
        )
    ),
    *(
        case
        for op in (f"{op}_{kind}" for kind in ("f8", "i8") for op in PLAIN_WEIGHT)
        for case in (
            _case(op, "odd in every size", M=7, K=33, N=65),
            _case(op, "one row, odd", M=1, K=133, N=27),
            _case(op, "one row, a K of three steps, the last short", M=1, K=752, N=40),
            _case(op, "one row, a longer K", M=1, K=1504, N=40),
            _case(op, "one row, GPT-2's longest K", M=1, K=3072, N=16),
            _case(op, "one row, too long to be read at once", M=1, K=3136, N=40),
            _case(op, "at most 16 rows, a K of three steps, the last short", M=11, K=720, N=144),
            _case(op, "at most 16 rows, too long to be read at once", M=11, K=784, N=144),
            _case(op, "at most 64 rows, a K of three steps", M=41, K=768, N=144),
            _case(op, "at most 64 rows, too long to be read at once", M=41, K=784, N=144),
            _case(op, "several row tiles, the last short", M=210, K=176, N=144),
        )
    ),
    *(
        case
        for op in (f"{op}_{kind}" for kind in ("f8", "i8") for op in NORM_WEIGHT)
        for case in (
            _case(op, "odd in every size", M=7, K=133, N=65),
            _case(op, "one row, a K of three steps, the last short", M=1, K=752, N=40),
            _case(op, "at most 16 rows, a K of three steps, the last short", M=5, K=720, N=80),
            _case(op, "at most 16 rows, GPT-2's width", M=11, K=768, N=80),
            _case(op, "more rows, a mean far above the deviation", mean=30, M=20, K=304, N=80),
        )
    ),
    *(
        case
        for op in (f"linear_split_k_weight_{kind}" for kind in ("f8", "i8"))
        for case in (
            _case(op, "odd in every size, the last part shorter", M=3, K=333, N=65, Z=3),
            _case(op, "a part with nothing in it", M=2, K=130, N=64, Z=5),
            _case(op, "at most 16 rows, the last part shorter", M=11, K=1472, N=80, Z=2),
            _case(op, "at most 64 rows, the last part shorter", M=41, K=1472, N=80, Z=2),
            _case(op, "more rows", M=70, K=1536, N=80, Z=2),
        )
    ),
    *(
        _case(f"linear_residual_weight_{kind}", "in place", in_place="residual", M=m, K=128, N=80)
        for kind in ("f8", "i8")
        for m in (1, 70)
    ),
    _case("linear_gelu_f8_to_f8", "GPT-2's width, odd rows", gpu_only=True, M=1001, K=768, N=3072),
    *(_case(op, "rows for large tiles, the last short", M=521, K=304, N=144) for op in SCALED_F8),
    *(_case(op, "rows for larger tiles, the last short", M=4100, K=144, N=80) for op in SCALED_F8),
    _case("linear_f8", "too long to be added up at once", M=513, K=2064, N=16),
    *(
        _case(op, "few rows, a K too long for one sum", M=70, K=2064, N=16)
        for op in ("linear_f8", "linear_residual_f8")
    ),
    _case("linear_residual_f8", "in runs, the last one short", M=513, K=2064, N=16),
    _case("linear_residual_f8", "in runs, rows for large tiles", M=1100, K=2064, N=48),
    _case("linear_residual_f8", "GPT-2 XL's long K", gpu_only=True, M=1100, K=6400, N=1600),
    *(
        case
        for kind in ("f8", "i8")
        for case in (
            _case(f"layernorm_{kind}", "odd", N=5, C=33),
            _case(f"layernorm_{kind}", "GPT-2, odd rows", N=101, C=768),
            _case(f"layernorm_{kind}", "GPT-2, each warp takes two rows, and one is left over", N=2049, C=768),
            _case(f"layernorm_{kind}", "GPT-2 XL", N=3, C=1600),
            _case(f"linear_residual_{kind}", "in place", in_place="residual", M=130, K=128, N=272),
            _case(f"linear_{kind}", "GPT-2 QKV, odd rows", gpu_only=True, M=1001, K=768, N=2304),
            _case(f"linear_gelu_{kind}", "GPT-2's width, odd rows", gpu_only=True, M=1001, K=768, N=3072),
            _case(f"linear_residual_{kind}", "GPT-2's long K, odd rows", gpu_only=True, M=1001, K=3072, N=768),
        )
    ),
    _case("residual_layernorm", "one part, odd", Z=1, N=3, C=33),
    _case("residual_layernorm", "GPT-2, several parts and a remainder", Z=6, N=5, C=768),
    _case("residual_layernorm", "GPT-2, four parts", Z=4, N=5, C=768),
    _case("residual_layernorm", "four parts, a width other than GPT-2's", Z=4, N=5, C=40),
    _case("residual_layernorm", "GPT-2 XL", Z=4, N=2, C=1600),
    _case("logits", "an odd vocabulary, one row", M=1, C=48, V=257),
    _case("logits", "few rows, as decoding has them", M=9, C=128, V=192),
    _case("logits", "several row tiles with a remainder", M=100, C=128, V=192),
    _case("logits", "persistent", M=520, C=64, V=256),
    _case("logits", "persistent, split-N tiles", M=520, C=64, V=448),
    _case("logits", "many rows", M=6200, C=64, V=448),
    _case("logits", "persistent, GPT-2's width", M=520, C=768, V=448),
    _case("logits", "many rows, GPT-2's width", M=6200, C=768, V=448),
    _case("logits", "GPT-2's padded vocabulary, odd rows", gpu_only=True, M=301, C=64, V=50304),
    _case("logits", "very many rows", gpu_only=True, M=16500, C=64, V=768),
    _case("logits", "GPT-2's vocabulary, not a multiple of anything", M=3, C=768, V=50257),
    _case("logits", "a narrow model's large vocabulary, few rows", sixteen=True, M=3, C=576, V=32768),
    _case("attention", "one query, one key", B=1, T=1, S=1, H=2, D=32),
    _case("attention", "several key tiles and a remainder: the rescale matters", B=2, T=100, S=100, H=3, D=32),
    _case("attention", "GPT-2's head, more than two key tiles", B=1, T=256, S=256, H=2, D=64),
    _case("attention", "continuing a cache: queries start at S - T", B=2, T=7, S=150, H=2, D=64),
    _case("attention", "more than 256 queries", B=2, T=300, S=300, H=2, D=64),
    _case("attention", "the first query's own key is the last of a tile", B=1, T=260, S=323, H=2, D=64),
    _case("attention", "weights overflow if taken relative to a near key", towering=True, B=1, T=300, S=300, H=2, D=64),
    _case("attention", "the widest head", B=1, T=130, S=130, H=1, D=128),
    _case("attention", "loaded element by element", misaligned=True, B=1, T=70, S=70, H=2, D=32),
    _case("attention", "loaded element by element", misaligned=True, B=1, T=70, S=75, H=1, D=64),
    _case("attention", "loaded element by element", misaligned=True, B=2, T=35, S=70, H=1, D=128),
    _case("attention", "more sequences than a group, the last group short", B=11, T=70, S=70, H=2, D=64),
    _case("attention", "more sequences than a group, continuing caches", B=9, T=5, S=40, H=1, D=32),
    _case(
        "attention", "GPT-2, B=11 T=1024: many, the last group short", gpu_only=True, B=11, T=1024, S=1024, H=12, D=64
    ),
    _case(
        "attention",
        "GPT-2, B=6 T=1024: weights overflow if taken relative to a near key",
        gpu_only=True,
        towering=True,
        B=6,
        T=1024,
        S=1024,
        H=12,
        D=64,
    ),
    _case("attention", "GPT-2, B=4 T=1024", gpu_only=True, B=4, T=1024, S=1024, H=12, D=64),
    _case("attention_to_f8", "one query, one key", B=1, T=1, S=1, H=2, D=32),
    _case("attention_to_f8", "several key tiles and a remainder", B=2, T=100, S=100, H=3, D=32),
    _case("attention_to_f8", "continuing a cache: queries start at S - T", B=2, T=7, S=150, H=2, D=64),
    _case("attention_to_f8", "more than 256 queries", B=2, T=300, S=300, H=2, D=64),
    _case("attention_to_f8", "few blocks of many keys", B=1, T=520, S=530, H=1, D=64),
    _case("attention_to_f8", "some blocks of many keys", B=32, T=513, S=513, H=1, D=64),
    _case("attention_to_f8", "weights that overflow at first", towering=True, B=1, T=300, S=300, H=2, D=64),
    _case("attention_to_f8", "the widest head", B=1, T=130, S=130, H=1, D=128),
    *(_case("attention_to_f8", ELEMENTS, misaligned=True, B=1, T=70, S=75, H=2, D=d) for d in (32, 64, 128)),
    _case("attention_to_f8", "GPT-2, B=4 T=1024", gpu_only=True, B=4, T=1024, S=1024, H=12, D=64),
    _case("gelu", "odd", M=7, N=65),
    _case("gelu", "several tiles", M=33, N=3072),
    _case("gelu", "each block takes several rows, and some are left over", M=1025, N=72),
    _case("softmax", "below one tile", M=3, N=48),
    _case("softmax", "several tiles and a remainder", M=3, N=3001),
    _case("softmax", "GPT-2's vocabulary: many tiles and a remainder", M=3, N=50257),
    _case("softmax", "rows that begin at any place in a vector", M=11, N=16387),
    _case("softmax", "the widest rows of that entry, where each row begins at a vector", M=3, N=53248),
    _case("softmax", "the widest rows: an element above all others in each of the seven tiles", M=14, N=57344),
    _case("softmax", "many tiles, loaded element by element", misaligned=True, M=3, N=50257),
    _case("kv_append", "one position", B=2, T=1, H=3, D=32, P=16),
    _case("kv_append", "a prompt, odd", B=2, T=100, H=2, D=64, P=128),
    _case("kv_append", "the widest head", B=1, T=5, H=1, D=128, P=7),
    _case("decode_attention", "sequences of different lengths, some spans empty", B=4, P=300, H=3, D=32, Z=3, TWO=2),
    _case("decode_attention", "GPT-2's head, spans of 512 in several tiles", B=4, P=1100, H=2, D=64, Z=3, TWO=2),
    _case("decode_attention", "the widest head, one span", B=2, P=65, H=1, D=128, Z=1, TWO=2),
    _case("decode_attention", "spans of 512", B=3, P=600, H=2, D=32, Z=2, TWO=2),
    _case("decode_attention", "spans of 128", B=3, P=300, H=2, D=64, Z=3, TWO=2),
    _case("decode_attention", "the new position is the first of its span", B=3, P=257, H=1, D=64, Z=3, TWO=2),
    _case("decode_attention", "the new position is the last of its span", B=3, P=256, H=1, D=32, Z=2, TWO=2),
    _case("decode_attention", "the new position is the first of its long span", B=3, P=513, H=1, D=64, Z=2, TWO=2),
    _case("decode_attention", "the new position is the last of its long span", B=2, P=512, H=1, D=64, Z=1, TWO=2),
    _case("decode_attention", "more blocks than multiprocessors", B=9, P=256, H=16, D=32, Z=2, TWO=2),
    _case("decode_attention", "more blocks than multiprocessors", B=9, P=256, H=16, D=64, Z=2, TWO=2),
    _case("decode_attention", "the widest head, spans of 512 in several tiles", B=4, P=700, H=1, D=128, Z=2, TWO=2),
    _case("decode_attention", "loaded element by element", misaligned=True, B=3, P=200, H=2, D=32, Z=2, TWO=2),
    _case("decode_attention", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=64, Z=2, TWO=2),
    _case("decode_attention", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=128, Z=2, TWO=2),
    _case("decode_attention", "GPT-2, B=8 P=1024", gpu_only=True, B=8, P=1024, H=12, D=64, Z=8, TWO=2),
    _case("decode_attention_unsplit", "sequences of different lengths, one of them new", B=4, P=300, H=3, D=64),
    _case("decode_attention_unsplit", "the narrowest head", B=4, P=300, H=3, D=32),
    _case("decode_attention_unsplit", "the widest head", B=3, P=200, H=1, D=128),
    _case("decode_attention_unsplit", "the new position is the first of its tile", B=3, P=129, H=2, D=64),
    _case("decode_attention_unsplit", "the new position is the last of its tile", B=2, P=128, H=2, D=64),
    _case("decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, H=2, D=32),
    _case("decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=64),
    _case("decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, H=1, D=128),
    _case("decode_attention_unsplit", "GPT-2, B=64 P=1024", gpu_only=True, B=64, P=1024, H=12, D=64),
    _case("merge_attention", "one span", B=1, H=2, Z=1, D=32, TWO=2),
    _case("merge_attention", "a whole tile of spans", B=2, H=1, Z=8, D=32, TWO=2),
    _case("merge_attention", "fewer spans than one tile, some empty", B=2, H=3, Z=5, D=64, TWO=2),
    _case("merge_attention", "spans of several tiles", B=2, H=3, Z=11, D=32, TWO=2),
    _case("merge_attention", "more spans than one tile, some empty", B=2, H=3, Z=19, D=64, TWO=2),
    _case("merge_attention", "the widest head", B=2, H=1, Z=4, D=128, TWO=2),
    _case("merge_attention", "loaded element by element", misaligned=True, B=2, H=2, Z=9, D=32, TWO=2),
    _case("merge_attention", "loaded element by element", misaligned=True, B=1, H=2, Z=3, D=64, TWO=2),
    _case("merge_attention", "loaded element by element", misaligned=True, B=2, H=1, Z=2, D=128, TWO=2),
    _case(
        "merge_linear_residual_squares",
        "odd columns; several parts, one without columns; the last tile of spans short",
        B=2,
        H=3,
        Z=19,
        D=32,
        TWO=2,
        K=96,
        N=200,
        P=5,
    ),
    _case("merge_linear_residual_squares", "one part of several tiles", B=1, H=2, Z=8, D=64, TWO=2, K=128, N=75, P=1),
    _case("merge_linear_residual_squares", "the widest head, one span", B=3, H=2, Z=1, D=128, TWO=2, K=256, N=64, P=2),
    *(
        _case(
            "merge_linear_residual_squares",
            why,
            sixteen=True,
            in_place="residual",
            B=1,
            H=h,
            Z=z,
            D=64,
            TWO=2,
            K=64 * h,
            N=192,
            P=6,
        )
        for why, h, z in (
            ("one row: fewer spans than one tile, the last tile of heads short", 9, 5),
            ("one row: the most heads, a whole tile of spans", 12, 8),
            ("one row: spans of several tiles, some empty", 9, 37),
        )
    ),
    *(
        _case(
            "decode_step",
            why,
            gpu_only=True,
            L=12,
            C=768,
            E=2304,
            F=3072,
            H=12,
            D=64,
            V=50304,
            X=1024,
            P=places,
            N=1,
            TWO=2,
            B=132,
            S=36864,
            W=12,
        )
        for why, places in (("GPT-2, the last place of its context", 1024), ("GPT-2, a shorter cache", 200))
    ),
    _case("argmax_parts", "below one part", M=3, V=48, Z=1),
    _case("argmax_parts", "GPT-2's vocabulary, with ties", M=4, V=50257, Z=25),
    _case("next_token", "one part", M=1, Z=1),
    _case("next_token", "more parts than one tile, with ties", M=5, Z=100),
    _case("token_embedding", "odd count, a width below one tile", N=100, V=257, C=48),
    _case(
        "token_embedding", "several tiles and a remainder, loaded element by element", misaligned=True, N=3, V=9, C=1025
    ),
    _case("token_embedding", "SmolLM2", N=5, V=49152, C=576),
    _case("rmsnorm", "one row, a width below one tile, not a power of two", N=1, C=48),
    _case("rmsnorm", "SmolLM2, odd rows", N=101, C=576),
    _case("rmsnorm", "odd: several tiles and a remainder", N=3, C=3001),
    *(
        case
        for op, place in (("matmul", ""), ("matmul_residual", "residual"), ("swiglu", ""))
        for case in (
            _case(op, "odd in every size: no alignment anywhere", M=7, K=33, N=65),
            _case(op, "few rows, as decoding has them", in_place=place, M=9, K=192, N=128),
            _case(op, "few rows, a width that SmolLM2's are multiples of", in_place=place, M=9, K=192, N=192),
            _case(op, "many rows of that width", sixteen=True, in_place=place, M=520, K=64, N=192),
            _case(op, "more rows, the last tile short", in_place=place, M=70, K=128, N=192),
            _case(op, "persistent: several tiles a block, the last group short", in_place=place, M=600, K=64, N=320),
            _case(op, "SmolLM2, odd rows", gpu_only=True, in_place=place, M=301, K=576, N=1536),
        )
    ),
    _case("rms_swiglu", "odd in every size", M=7, K=33, N=65, Z=3, L=7),
    *(
        _case("rms_swiglu", why, sixteen=True, M=m, K=k, N=n, Z=z, L=rows)
        for why, m, k, n, z, rows in (
            ("one row, a K of three tiles, the last short", 1, 576, 192, 18, 1),
            ("few rows, as many parts as are read at once", 11, 768, 64, 32, 64),
            ("several row tiles, the last short", 130, 576, 192, 18, 192),
            ("persistent: several tiles a block, the last group short", 600, 192, 320, 1, 640),
        )
    ),
    _case("rms_swiglu", "SmolLM2, odd rows", gpu_only=True, sixteen=True, M=1001, K=576, N=1536, Z=3, L=1024),
    *(
        _case("rms_linear", why, sixteen=True, M=m, K=k, N=192, Z=z, L=rows)
        for why, m, k, z, rows in (
            ("one row, a K of three tiles, the last short", 1, 576, 18, 1),
            ("few rows, as many parts as are read at once", 11, 768, 32, 64),
            ("several row tiles, the last short", 130, 576, 18, 192),
        )
    ),
    *(
        _case("linear_residual_squares", why, sixteen=True, in_place="residual", M=m, K=k, N=192, Z=6, L=rows)
        for why, m, k, rows in (
            ("one row, narrow parts, a K of three tiles, the last short", 1, 576, 1),
            ("the same, a K of three wide tiles", 1, 1536, 1),
            ("few rows, a K of three tiles, the last short", 11, 576, 64),
            ("few rows, a K of three wide tiles", 11, 1536, 64),
            ("several row tiles, the last short", 130, 1536, 192),
        )
    ),
    _case("rope_append", "one position of several sequences", B=3, T=1, G=2, Q=3, D=32, E=16, P=16, W=20),
    _case(
        "rope_append", "a prompt, more heads than one tile", in_place="q", B=2, T=7, G=1, Q=6, D=64, E=32, P=12, W=12
    ),
    _case("rope_append", "the widest head, one head of queries", B=1, T=5, G=2, Q=1, D=128, E=64, P=7, W=7),
    _case("rope_append", "SmolLM2, a long context", gpu_only=True, B=2, T=300, G=3, Q=3, D=64, E=32, P=8192, W=8192),
    _case("norm_rope_append", "one position of several sequences", B=3, T=1, G=2, Q=3, D=32, E=16, P=16, W=20),
    _case("norm_rope_append", "Qwen3's heads, in place", in_place="q", B=2, T=5, G=2, Q=2, D=128, E=64, P=12, W=12),
    _case("norm_rope_append", "more heads than one tile", B=1, T=3, G=1, Q=5, D=64, E=32, P=7, W=7),
    _case("grouped_attention", "one query, one key", B=1, T=1, S=1, G=2, Q=3, D=32),
    _case("grouped_attention", "several tiles of keys and queries, with remainders", B=2, T=70, S=70, G=2, Q=3, D=64),
    _case("grouped_attention", "continuing a cache, more heads than one tile", B=2, T=7, S=150, G=1, Q=6, D=64),
    _case("grouped_attention", "the widest head, one head of queries", B=1, T=70, S=70, G=1, Q=1, D=128),
    _case("grouped_attention", "loaded element by element", misaligned=True, B=1, T=20, S=75, G=2, Q=2, D=64),
    _case("grouped_attention", "loaded element by element", misaligned=True, B=1, T=20, S=35, G=1, Q=4, D=128),
    _case("grouped_attention", "more sequences than a group, continuing caches", B=9, T=5, S=40, G=1, Q=3, D=32),
    _case("grouped_attention", "SmolLM2, its context", gpu_only=True, B=1, T=8192, S=8192, G=3, Q=3, D=64),
    *(
        _case("grouped_decode_attention", why, misaligned=odd, B=b, P=p, G=g, Q=q, D=d, Z=z, TWO=2)
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
        _case(
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
    _case(
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
    _case("kv_append_f8", "one position, the narrowest head", B=2, T=1, H=3, D=32, P=16),
    _case("kv_append_f8", "a prompt, odd", B=2, T=9, H=2, D=64, P=27),
    _case("kv_append_f8", "the widest head", B=1, T=5, H=1, D=128, P=7),
    *(
        case
        for op in ("rope_append_f8", "norm_rope_append_f8")
        for case in (
            _case(op, "one position of several sequences", B=3, T=1, G=2, Q=3, D=32, E=16, P=16, W=20),
            _case(op, "a prompt, in place", in_place="q", B=2, T=7, G=1, Q=6, D=64, E=32, P=12, W=12),
            _case(op, "the widest head", B=1, T=5, G=2, Q=1, D=128, E=64, P=7, W=7),
        )
    ),
    *(
        _case("grouped_decode_attention_f8", why, B=b, P=p, G=g, Q=q, D=d, Z=z, TWO=2)
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
        _case("grouped_decode_attention_f8", ELEMENTS, misaligned=True, B=2, P=p, G=1, Q=3, D=d, Z=2, TWO=2)
        for p in (200, 600)
        for d in (64, 128)
    ),
    *(
        _case("grouped_decode_attention_f8", "a head of keys for each of queries", B=b, P=p, G=2, Q=1, D=64, Z=2, TWO=2)
        for b, p in ((1, 200), (3, 200), (3, 600))
    ),
    _case("grouped_decode_attention_f8", "few heads of queries, long spans", B=2, P=600, G=1, Q=3, D=64, Z=2, TWO=2),
    _case("grouped_decode_attention_f8", "many heads of queries, long spans", B=2, P=600, G=1, Q=5, D=64, Z=2, TWO=2),
    *(_case("kv_append_f8", ELEMENTS, misaligned=True, B=2, T=3, H=1, D=d, P=9) for d in (64, 128)),
    *(_case("kv_from_f8", ELEMENTS, misaligned=True, B=1, S=70, G=1, D=d) for d in (64, 128)),
    _case("grouped_decode_attention_f8", "SmolLM2", gpu_only=True, B=8, P=8192, G=3, Q=3, D=64, Z=16, TWO=2),
    *(_case("kv_from_f8", f"odd, heads of {d}", B=2, S=75, G=3, D=d) for d in (32, 64, 128)),
    _case("grouped_decode_attention", "SmolLM2", gpu_only=True, B=8, P=8192, G=3, Q=3, D=64, Z=16, TWO=2),
    _case(
        "grouped_decode_attention_unsplit",
        "sequences of different lengths, one of them new",
        B=4,
        P=300,
        G=2,
        Q=3,
        D=64,
    ),
    _case("grouped_decode_attention_unsplit", "the new position is the last of its tile", B=2, P=128, G=1, Q=17, D=32),
    _case("grouped_decode_attention_unsplit", "the widest head", B=3, P=129, G=1, Q=1, D=128),
    _case("grouped_decode_attention_unsplit", "loaded element by element", misaligned=True, B=3, P=200, G=1, Q=4, D=64),
    _case("grouped_decode_attention_unsplit", "SmolLM2", gpu_only=True, B=64, P=1024, G=3, Q=3, D=64),
    _case("paged_append", "one position of several sequences", B=3, T=1, H=2, D=32, R=8, PAGE=64, L=2),
    _case("paged_append", "prompts that end a page and begin one", B=2, T=67, H=1, D=64, R=5, PAGE=64, L=2),
    _case("paged_append", "the widest head, larger pages", B=2, T=3, H=2, D=128, R=3, PAGE=128, L=1),
    *(
        _case(op, why, in_place=place, B=b, T=t, G=g, Q=q, D=d, E=d // 2, R=r, PAGE=64, L=n, W=200)
        for op in ("paged_rope_append", "paged_norm_rope_append")
        for why, place, b, t, g, q, d, r, n in (
            ("one position of several sequences", "", 3, 1, 2, 3, 32, 8, 2),
            ("a prompt over two pages, in place, more heads than one tile", "q", 1, 67, 1, 6, 64, 4, 2),
            ("the widest head, one head of queries", "", 2, 3, 2, 1, 128, 3, 1),
        )
    ),
    _case(
        "paged_rope_append", "SmolLM2", gpu_only=True, B=64, T=1, G=3, Q=3, D=64, E=32, R=1025, PAGE=64, L=16, W=8192
    ),
    *(
        _case("paged_attention", why, misaligned=odd, B=b, T=t, G=g, Q=q, D=d, R=r, PAGE=page, L=n)
        for why, odd, b, t, g, q, d, r, page, n in (
            ("one query, one key, one head", False, 1, 1, 1, 1, 32, 2, 64, 1),
            ("several texts, more heads than one tile", False, 4, 16, 2, 6, 64, 20, 64, 4),
            ("several tiles of queries and a remainder, larger pages", False, 2, 37, 1, 3, 64, 6, 128, 2),
            ("the narrowest head", False, 3, 16, 1, 4, 32, 10, 64, 3),
            ("the widest head", False, 2, 21, 1, 2, 128, 7, 64, 3),
            ("loaded element by element", True, 2, 18, 1, 3, 64, 5, 64, 2),
        )
    ),
    _case(
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
        _case("paged_decode_attention", why, misaligned=odd, B=b, T=1, G=g, Q=q, D=d, R=r, PAGE=page, L=n, Z=z, TWO=2)
        for why, odd, b, g, q, d, r, page, n, z in (
            ("texts of different lengths, some spans empty", False, 4, 2, 3, 64, 40, 64, 9, 3),
            ("more heads than one tile, larger pages", False, 3, 1, 17, 64, 9, 128, 2, 1),
            ("the widest head", False, 3, 1, 2, 128, 16, 64, 5, 2),
            ("the narrowest head", False, 3, 2, 1, 32, 16, 64, 5, 2),
            ("loaded element by element", True, 2, 1, 3, 64, 11, 64, 5, 2),
        )
    ),
    _case(
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
    *(
        case
        for op in ("all_reduce", "all_reduce_two_shot", "all_gather", "reduce_scatter", "broadcast")
        for case in (
            _case(op, "fewer elements than a tile", R=2, N=5, B=3, TWO=2),
            _case(op, "three ranks; more tiles than blocks, and a remainder", R=3, N=10000, B=2, TWO=2),
            _case(op, "the same, loaded element by element", misaligned=True, R=2, N=10001, B=2, TWO=2),
        )
    ),
    _case("next_token_of_ranks", "one part of each", R=2, M=1, Z=1, B=3, TWO=2),
    _case(
        "next_token_of_ranks", "three ranks, more rows than blocks and parts than a tile", R=3, M=5, Z=70, B=2, TWO=2
    ),
    *(
        _case(op, "a large message, in large tiles", R=2, N=2**18 + 8, B=16, TWO=2)
        for op in ("all_gather", "reduce_scatter", "broadcast")
    ),
    _case("all_reduce_layernorm", "below one tile, odd", R=2, N=3, C=33, B=4, TWO=2),
    _case("all_reduce_layernorm", "GPT-2 XL; three ranks, more rows than blocks", R=3, N=5, C=1600, B=2, TWO=2),
    _case("all_reduce_layernorm", "the same, loaded element by element", misaligned=True, R=2, N=5, C=48, B=2, TWO=2),
    *(
        case
        for op in ("all_reduce_layernorm", "all_reduce_rmsnorm")
        for case in (
            _case(op, "many rows, eight at a time, and a remainder", R=2, N=19, C=72, B=2, TWO=2),
            _case(op, "many wide rows, four at a time; three ranks", R=3, N=11, C=1048, B=2, TWO=2),
        )
    ),
    _case("all_reduce_rmsnorm", "below one tile, odd", R=2, N=3, C=33, B=4, TWO=2),
    _case("all_reduce_rmsnorm", "SmolLM2; three ranks, more rows than blocks", R=3, N=5, C=576, B=2, TWO=2),
    _case("all_reduce_rmsnorm", "as wide as Llama 3", R=2, N=2, C=4096, B=1, TWO=2),
    _case("all_reduce_rmsnorm", "loaded element by element", misaligned=True, R=2, N=5, C=48, B=2, TWO=2),
    *(
        case
        for op in ("matmul_reduce_scatter", "all_gather_matmul")
        for case in (
            _case(op, "below one tile, odd", R=2, M=3, N=5, K=7, B=3, TWO=2),
            _case(op, "three ranks; more tiles than blocks, and a remainder", R=3, M=40, N=70, K=40, B=2, TWO=2),
            _case(op, "the same, loaded element by element", misaligned=True, R=2, M=33, N=65, K=40, B=2, TWO=2),
        )
    ),
)
