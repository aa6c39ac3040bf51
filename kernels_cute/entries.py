"""From an entry to its traced kernel. An entry's `kernel`, or its op, is the name of a function in `KERNELS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from toolchain.contract.artifact import TensorMap
from toolchain.contract.entry import EntrySpec
from toolchain.cute.dsl import Kernel
from toolchain.errors import SourceError, UsageError

from . import layernorm
from .attention import attention, attention_mma, attention_walk, cache_bf16, cache_f8
from .decode import ranks, step
from .decode.plan import CLUSTER, Step
from .decode.ranks import RankStep
from .products import linear, linear_sm90, tiles_sm90
from .products.epilogues import EPILOGUES, Epilogue
from .products.rms import RMS
from .products.scaled import SCALED
from .ranks.all_gather import ALL_GATHERED
from .ranks.attention import TO_RANKS
from .ranks.gather import GATHERED
from .ranks.own_rows import OWN_ROWS
from .ranks.scatter import SCATTERED
from .texts import plan as texts
from .texts import step as texts_step

PORTABLE = "sm_80"  # the architecture whose PTX every GPU since runs


@dataclass(frozen=True)
class TracedKernel:
    """A traced kernel. `arch`: of its PTX. `maps`: the tensor maps that it takes behind its op's parameters.
    `together`: see Form."""

    kernel: Kernel
    arch: str = PORTABLE
    maps: tuple[TensorMap, ...] = ()
    together: int = 0


def made(spec: EntrySpec) -> TracedKernel:
    """The kernel of an entry. Raises SourceError or UsageError."""
    name = spec.kernel or spec.op
    if name not in KERNELS:
        raise SourceError(f"no kernel {name!r} in kernels_cute", hint=f"one of {', '.join(KERNELS)}")
    try:
        return KERNELS[name](spec)
    except KeyError as error:
        raise SourceError(f"{name} needs the constant {error}") from error


def _mma_sync(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    tiles = linear.Tiles(c["BM"], c["BN"], c["BK"], c["STAGES"], (c["WM"], c["WN"]), aligned=bool(spec.aligned))
    return TracedKernel(linear.linear(_dtype(spec), tiles, spec.symbol, _epilogue(spec)))


def _wgmma(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    epilogue = SCALED.get(spec.op) or RMS.get(spec.op) or _epilogue(spec)
    tiles = tiles_sm90.Tiles(
        c["BM"], c["BN"], c["BK"], c["STAGES"], c["PARTS"], bool(c["APART"]), bool(c.get("PAIRED", 0)),
        epilogue.width(_dtype(spec)), c.get("RUN", 0), c.get("REGISTERS", 232),
        c.get("SUMMED", 0), c.get("EARLY", 0), c.get("GROUP", 8), bool(c.get("HELD", 0)),
    )  # fmt: skip
    kernel = linear_sm90.linear(_dtype(spec), tiles, spec.symbol, epilogue)
    return TracedKernel(kernel, "sm_90a", linear_sm90.maps(tiles, epilogue))


def _layernorm(spec: EntrySpec, *, whole: bool = False) -> TracedKernel:
    rows = layernorm.Rows(spec.constants["R"], spec.constants["BC"], bool(spec.aligned), whole)
    return TracedKernel(layernorm.layernorm(spec.dtype, rows, spec.symbol))


def _of_ranks(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    known = {**SCATTERED, **GATHERED, **ALL_GATHERED, **OWN_ROWS}
    if spec.op not in known:
        raise UsageError(f"{spec.op} is no product of several ranks", hint=f"one of {', '.join(known)}")
    epilogue, scheme = known[spec.op]
    tiles = linear_sm90.Tiles(
        c["BM"], c["BN"], c["BK"], c["STAGES"], c["PARTS"], bool(c["APART"]), registers=c.get("REGISTERS", 232),
        summed=c.get("SUMMED", 0), early=c.get("EARLY", 0),
    )  # fmt: skip
    kernel = linear_sm90.linear(_dtype(spec), tiles, spec.symbol, epilogue, scheme)
    return TracedKernel(kernel, "sm_90a", tuple(scheme.maps(tiles, epilogue)))


def _attention_mma(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    tiles = attention_mma.Tiles(c["D"], c["BT"] // 16, c["BS"], aligned=bool(spec.aligned))
    return TracedKernel(attention_mma.attention(_dtype(spec), tiles, spec.symbol))


def _attention_wgmma(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    tiles = attention_walk.Tiles(
        c["D"], c["BT"] // attention_walk.QUERIES, c["BS"], c["STAGES"], c["BLOCKS"], ahead=bool(c["AHEAD"]),
        anchored=bool(c["ANCHORED"]), in_turns=bool(c.get("IN_TURNS", 0)),
    )  # fmt: skip
    scheme = TO_RANKS if spec.op == "attention_to_ranks" else attention.Scheme()
    return TracedKernel(attention.attention(_dtype(spec), tiles, spec.symbol, scheme), "sm_90a", scheme.maps(tiles))


def _decode_step(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    size = Step(
        c["L"], c["C"], c["X"], c["V"], c["CLUSTERS"], (c["UNITS"], c["UNITS_APART"]), c["SLOTS"], c["FLYING"],
        **_widths(spec), cache_bits=8 if "cache_f8" in spec.op else 16, cluster=c.get("CLUSTER", CLUSTER),
    )  # fmt: skip
    return TracedKernel(step.decode_step(size, spec.symbol, spec.op), "sm_90a", step.maps(size), size.cluster)


def _decode_step_of_ranks(spec: EntrySpec) -> TracedKernel:
    """`H`: heads of this rank; its hidden units are those of its blocks."""
    c = spec.constants
    units, apart, cluster = c["UNITS"], c["UNITS_APART"], c.get("CLUSTER", CLUSTER)
    size = RankStep(
        c["L"], c["C"], c["X"], c["K"], c["CLUSTERS"], (units, apart), c["SLOTS"], c["FLYING"], own_heads=c["H"],
        own_hidden=cluster * (c["H"] * units + (c["CLUSTERS"] - c["H"]) * apart), ranks=c["R"], cluster=cluster,
        first=bool(c.get("FIRST", 0)),
    )  # fmt: skip
    return TracedKernel(ranks.decode_step(size, spec.symbol, spec.op), "sm_90a", step.maps(size), size.cluster)


def _decode_step_texts(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    size = texts.Step(c["L"], c["C"], c["X"], c["V"], c["SLOTS"], c["FLYING"], **_widths(spec))
    return TracedKernel(texts_step.decode_step(size, spec.symbol, spec.op), "sm_90a", texts_step.maps(size), CLUSTER)


def _widths(spec: EntrySpec) -> dict[str, int]:
    """Bits of the weights of a step."""
    kinds = {"bits": "weight_f8", "logit_bits": "f8_logits"}
    return {name: 8 if kind in spec.op else 16 for name, kind in kinds.items()}


def _cache_f8(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    tiles = cache_f8.Tiles(
        c["D"], c.get("BQ", 1), c["WARPS"], c["STEP"], c.get("SPAN", 0), c["BLOCKS"], c.get("STAGES", 0)
    )
    made = cache_f8.unsplit if spec.op == "decode_attention_unsplit_f8" else cache_f8.spans
    return TracedKernel(made(tiles, spec.symbol, _dtype(spec)), "sm_90a")


def _cache_bf16(spec: EntrySpec) -> TracedKernel:
    c = spec.constants
    tiles = cache_bf16.Tiles(c["D"], warps=c["WARPS"], positions=c["STEP"], blocks=c["BLOCKS"], stages=c["STAGES"])
    return TracedKernel(cache_bf16.unsplit(tiles, spec.symbol), "sm_90a")


def _dtype(spec: EntrySpec) -> str:
    if spec.dtype not in ("f16", "bf16"):
        raise UsageError(f"no product of {spec.dtype} here", hint="f16 or bf16")
    return spec.dtype


def _epilogue(spec: EntrySpec) -> Epilogue:
    if spec.op not in EPILOGUES:
        raise UsageError(f"no epilogue for {spec.op}", hint=f"one of {', '.join(EPILOGUES)}")
    return EPILOGUES[spec.op]


KERNELS: Mapping[str, Callable[[EntrySpec], TracedKernel]] = {
    "mma_sync": _mma_sync,
    "wgmma": _wgmma,
    "wgmma_of_ranks": _of_ranks,
    "decode_step": _decode_step,
    "decode_step_of_ranks": _decode_step_of_ranks,
    "decode_step_texts": _decode_step_texts,
    "decode_step_texts_weight_f8": _decode_step_texts,
    "decode_step_texts_weight_f8_logits": _decode_step_texts,
    "decode_step_weight_f8": _decode_step,
    "decode_step_weight_f8_logits": _decode_step,
    "decode_step_cache_f8": _decode_step,
    "decode_step_weight_f8_cache_f8": _decode_step,
    "decode_step_weight_f8_logits_cache_f8": _decode_step,
    "cache_bf16": _cache_bf16,
    "cache_f8": _cache_f8,
    "attention_mma": _attention_mma,
    "attention_wgmma": _attention_wgmma,
    "layernorm": _layernorm,
    "layernorm_whole": partial(_layernorm, whole=True),
}
