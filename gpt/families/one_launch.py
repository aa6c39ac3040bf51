"""A decoding step of one text, or of a few, as a single launch, of an op `decode_step`: for a GPT-2 that is folded, or
whose weights are 8-bit floats, where the launcher's source has an entry for its sizes. docs/one-kernel.md has the
kernels.

C = n_embd = H heads of D, L layers, V tokens in the vocabulary, P positions in a cache.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import ConformanceError, DeviceError
from toolchain.runtime import DeviceBuffer, Launcher

from ..config import GPTConfig, vocabulary_part
from ..parameters.share import Share
from ..parameters.step_weights import COLUMNS, ROWS, UNITS, UNITS_F8, UNITS_TEXTS, Kept, packed, packed_f8, packed_head
from ..passes.kv_cache import KVCache
from ..passes.workspace import Workspace

Parts = tuple[DeviceBuffer, DeviceBuffer]  # the largest of each part of a row of logits, and its index, each (N, Z)
OP, OP_F8, OP_F8_LOGITS = "decode_step", "decode_step_weight_f8", "decode_step_weight_f8_logits"
OP_TEXTS = "decode_step_texts"
OP_RANKS = "decode_step_of_ranks"
OPS_TEXTS = tuple(op.replace(OP, OP_TEXTS) for op in (OP, OP_F8, OP_F8_LOGITS))
TEXTS = 8  # of a step of several, at most
WEIGHT_F8, LOGITS_F8 = "weight_f8", "f8_logits"  # in the names of ops over such weights
IN_CACHE_F8 = "_cache_f8"  # behind the name of an op over a cache in 8 bits
OPS_CACHE_F8 = tuple(op + IN_CACHE_F8 for op in (OP, OP_F8, OP_F8_LOGITS))
WAITS = (  # what `errors` counts from 1 on
    "queries, keys and values of its cluster", "its cluster's parts of attention", "the sums of projections",
    "its cluster's part of the MLP", "the sums of the MLP", "the largest logits of the other blocks",
)  # fmt: skip
OF_RANK = 8  # more for each rank, and once more, where a rank's sums are waited for


def has_step_of_ranks(
    launcher: Launcher, config: GPTConfig, ranks: int, dtype: str, positions: int
) -> bool:  # fmt: skip
    """Whether a decoding step can be one launch on each rank, because the launcher has an entry for each rank's part.
    `config`: of the whole model. `positions`: of the cache."""
    if config.family != "gpt2" or not launcher.target:
        return False
    sms, vocabulary = launcher.executor.sms, vocabulary_part(config.vocab_size, ranks)
    parts = (config.part(rank, ranks) for rank in range(ranks))
    sizes = (dims(OP_RANKS, 1, part, vocabulary, positions, sms, ranks) for part in parts)
    return all(launcher.has(OP_RANKS, dtype, each) for each in sizes)


def op_of(texts: int, *, folded: bool, quantized: str, logits: bool, cache: str) -> str:
    """The op of so many texts of a GPT-2 whose norms are folded, or whose products are of a dtype of 8 bits, and
    perhaps its logits, over a `cache` of one of KINDS; "" if there is none."""
    op = OP if folded else (OP_F8_LOGITS if logits else OP_F8) if quantized == "f8E4M3FN" else ""
    if texts > 1:
        return "" if cache or texts > TEXTS else op.replace(OP, OP_TEXTS)
    return op + IN_CACHE_F8 if op and cache else op


class OneLaunch:
    """Launches steps. It has copies of the weights of the layers, as the op takes them."""

    def __init__(
        self, op: str, config: GPTConfig, weights: Mapping[str, DeviceBuffer], vocabulary: int, kept: Kept,
        share: Share | None = None,
    ) -> None:  # fmt: skip
        """`weights`: the model's, on the device, whose vocabulary is padded to `vocabulary` rows for each rank. `kept`:
        the copies that it has for its steps. `share`: of a rank."""
        executor = kept.executor
        sizes = dims(op, 1, config, vocabulary, config.n_ctx, executor.sms, share.ranks if share else 1)
        self._op, self._eps, self._visible, self._share = op, config.eps, config.vocab_size, share
        self._arrays = _packed(op, config, weights, kept) | {
            "wte": weights["wte.weight"], "wpe": weights["wpe.weight"], "norm_weight": weights["ln_f.weight"],
            "norm_bias": weights["ln_f.bias"],
        }  # fmt: skip
        if LOGITS_F8 in op:
            self._arrays |= packed_head(weights, kept)
        if share is not None:
            first, self._visible = share.tokens.start, len(share.tokens)
            self._arrays["head"] = weights["wte.weight"].slice(0, first, first + share.vocabulary)
        for name, shape, kind in (
            ("launches", "B", np.int32), ("sums", "S", np.int64), ("errors", "BW", np.int32)
        ):  # fmt: skip
            self._arrays[name] = executor.from_numpy(np.zeros([sizes[dim] for dim in shape], kind))

    def check(self) -> None:
        """Raises ConformanceError if some block of the last launch waited too long, DeviceError if that was for another
        rank."""
        wait, rank = waited_for(self._arrays["errors"].numpy())
        if rank is not None and self._share is not None:
            raise DeviceError(
                f"rank {self._share.rank}: a block of the step waited too long for {wait} of rank {rank}",
                hint=f"see what rank {rank} did meanwhile: every rank must launch the same steps; docs/several-gpus.md",
            )
        if wait:
            raise ConformanceError(
                f"a block of the step waited too long for {wait}", hint="does something else run on this GPU?"
            )

    def __call__(
        self, launcher: Launcher, work: Workspace, cache: KVCache, out: DeviceBuffer, parts: Parts
    ) -> None:  # fmt: skip
        """Appends the tokens in `work` to a cache of N texts, makes the logits `out` (N, padded V), and finds the
        largest one and its token in each of some `parts` of them. Of one text the likeliest token and the next
        position are in `work` then."""
        layers, _, texts, positions, heads, size = cache.memory.shape
        shape = (layers, 2, texts, positions, heads * size) if texts > 1 else (layers, 2, positions, heads * size)
        more: dict[str, DeviceBuffer | int] = {}
        if self._share is not None:
            met = self._share.step(positions)
            assert met is not None, "the model takes no such step"
            more = {"met": met, "rank": self._share.rank}
        elif texts == 1:
            more = {"chosen": work.tokens, "after": work.positions}
        if cache.scales is not None:
            more["cache_scales"] = cache.scales.reshape(layers, 2, heads, positions)
        launcher(
            self._op, out.dtype, **self._arrays, tokens=work.tokens, positions=work.positions, logits=out,
            values=parts[0], indices=parts[1],
            cache=cache.memory.reshape(*shape), **more, eps=self._eps, visible=self._visible,
        )  # fmt: skip


def waited_for(errors: NDArray[np.int32]) -> tuple[str, int | None]:
    """A wait that ran out, one of WAITS, and the rank that it was for; ("", None) if none did. The rank is None where a
    block waited for others of its own rank. `errors`: what the blocks of a launch wrote."""
    if not errors.any():
        return "", None
    rank, wait = divmod(int(errors[errors > 0].min()), OF_RANK)
    return WAITS[wait - 1], rank - 1 if rank else None


def _packed(
    op: str, config: GPTConfig, weights: Mapping[str, DeviceBuffer], kept: Kept
) -> dict[str, DeviceBuffer]:  # fmt: skip
    return (packed_f8 if WEIGHT_F8 in op else packed)(config, weights, kept, _units(op))


def _units(op: str) -> int:
    """Hidden units that lie side by side."""
    return UNITS_TEXTS if op in OPS_TEXTS else UNITS_F8 if WEIGHT_F8 in op else UNITS


def dims(
    op: str, texts: int, config: GPTConfig, vocabulary: int, positions: int, sms: int, ranks: int = 1
) -> dict[str, int]:  # fmt: skip
    """The sizes of the op's arrays, of so many texts. Its scratch has room for a block on each multiprocessor.
    `config`, `vocabulary`: what one of several ranks has."""
    layers, width, units = config.n_layer, config.n_embd, _units(op)
    sums = 4 * layers * width
    sums = TEXTS * sums if op in OPS_TEXTS else sums + 2 * sms  # those of the largest logits behind them
    tiles = {"I": 3 * width // ROWS, "J": config.ffn // ROWS, "EIGHT": ROWS} if WEIGHT_F8 in op else {}
    if LOGITS_F8 in op:
        tiles["K"] = vocabulary // ROWS
    own = config.n_head * config.head_size
    if op == OP_RANKS:
        sums = 4 * layers * width
        tiles = {"R": ranks, "Q": words_met(ranks, width), "A": own, "K": vocabulary}
    return tiles | {
        "N": texts, "L": layers, "C": width, "E": 3 * own, "F": config.ffn, "H": config.n_head, "D": config.head_size,
        "V": ranks * vocabulary, "X": config.n_ctx, "P": positions, "TWO": 2, "B": sms, "W": width // COLUMNS,
        "S": sums, "G": config.ffn // units, "U": units,
    }  # fmt: skip


def words_met(ranks: int, width: int) -> int:
    """Words that a rank is told by all: a sum for each column, in four places."""
    return 4 * ranks * width
