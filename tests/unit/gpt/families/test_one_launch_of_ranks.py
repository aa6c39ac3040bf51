"""A step of ranks that is one launch on each is the step of many launches on one, where all ranks have an entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from conformance.reference import decode_step as reference
from conformance.reference import eager
from conformance.reference.eager.rounding import f32, rounded
from gpt.config import GPTConfig
from gpt.families.one_launch import OP_RANKS, dims
from gpt.graphs import Decode
from gpt.model import GPT, KVCache
from gpt.parallel import SLOW_S, ParallelDecode, ParallelGPT
from gpt.parameters.weights import random_weights
from toolchain.errors import DeviceError
from toolchain.runtime.peers import open_peers

from ..conftest import POLICY, ReferenceLauncher

CONFIG = GPTConfig(vocab_size=300, n_ctx=32, n_embd=192, n_head=3, n_layer=2)
CHOICE = "next_token_of_ranks"
NEAR = 0.02  # of the largest: two ways of rounding to bf16, through two layers


class Ranks:
    """What ranks launch together, as soon as all have."""

    def __init__(self, ranks: int) -> None:
        self._waiting = [deque[tuple[str, dict[str, Any]]]() for _ in range(ranks)]
        self.met = list[np.ndarray[Any, Any]]()

    def launch(self, rank: int, op: str, args: dict[str, Any]) -> None:
        self._waiting[rank].append((op, args))
        while all(self._waiting):
            ops, each = zip(*(waiting.popleft() for waiting in self._waiting), strict=True)
            assert len(set(ops)) == 1
            (self._step if ops[0] == OP_RANKS else self._choose)(each)

    def _step(self, each: Sequence[dict[str, Any]]) -> None:
        """As the reference does, of parts that are joined."""
        given = [{n: a.numpy() for n, a in args.items() if hasattr(a, "numpy")} for args in each]
        whole = dict(given[0]) | {
            name: np.concatenate([own[name] for own in given], 1) for name in ("proj", "fc", "fc_bias", "out")
        }
        for name in ("qkv", "qkv_bias"):
            parts = [np.split(own[name], 3, 1) for own in given]
            whole[name] = np.concatenate([part[which] for which in range(3) for part in parts], 1)
        whole["cache"] = np.concatenate([own["cache"] for own in given], 3)
        whole["head"] = np.concatenate([own["head"] for own in given])

        def keep(x: Any) -> Any:
            return f32(rounded(x, "bf16"))

        logits, cache = reference.decode_step(whole, each[0]["eps"], wide=np.float32, keep=keep)
        ends = np.cumsum([own["cache"].shape[3] for own in given])[:-1]
        for rank, (args, after) in enumerate(zip(each, np.split(cache, ends, 3), strict=True)):
            count, visible = args["logits"].shape[1], int(args["visible"])
            own = rounded(logits[:, rank * count :][:, :count], "bf16")
            args["logits"].copy_from(own)
            args["cache"].copy_from(np.ascontiguousarray(rounded(after, "bf16")))
            args["values"].fill(float(own[:, :visible].max()))  # all blocks say the same
            args["indices"].fill(own[:, :visible].argmax())
            assert args["rank"] == rank and not args["met"].select(0, rank).numpy().any()

    def _choose(self, each: Sequence[dict[str, Any]]) -> None:
        for rank, args in enumerate(each):
            values, indices = args["values"].numpy(), args["indices"].numpy()
            made = eager.next_token_of_ranks(
                values, indices, args["positions"].numpy(), rank, int(args["width"]), dtype="f32"
            )
            for name, one in zip(("tokens", "positions"), made, strict=True):
                args[name].copy_from(one)


class Launcher(ReferenceLauncher):
    """One for sm_90 of a rank. `positions`: of the longest cache that an entry is for; `heads`: that have one."""

    def __init__(self, ranks: Ranks, rank: int, executor: Any, positions: int, heads: Sequence[int]) -> None:
        super().__init__()
        self.target, self.executor = "sm_90", executor
        self.executor.sms, self.bundle.digest = POLICY.sms, "one"
        self._ranks, self._rank, self._positions, self._heads = ranks, rank, positions, heads

    def has(self, op: str, dtype: str, dims: Mapping[str, int]) -> bool:
        if op != OP_RANKS:
            return super().has(op, dtype, dims)
        return dims["P"] <= self._positions and dims["H"] in self._heads and dtype == "bf16"

    def has_some(self, op: str, dtype: str) -> bool:
        del op, dtype
        return False

    def _compute(self, op: str, dtype: str, args: dict[str, Any]) -> None:
        if op in (OP_RANKS, CHOICE):
            self._ranks.launch(self._rank, op, args)
        else:
            super()._compute(op, dtype, args)


@contextmanager
def _shared(positions: int = 32, heads: Sequence[int] = (1, 2), config: GPTConfig = CONFIG) -> Generator[ParallelGPT]:
    ranks = Ranks(2)
    with open_peers(["cpu", "cpu"]) as peers:
        launchers: Any = [
            Launcher(ranks, rank, executor, positions, heads) for rank, executor in enumerate(peers.executors)
        ]
        yield ParallelGPT(config, random_weights(config, seed=2), launchers, peers, "bf16")


def _greedy(steps: Any, count: int) -> tuple[list[int], Any]:
    """From token 7 on, through an empty cache."""
    steps.reset(np.array([7], np.int32), np.zeros(1, np.int64))
    made = list[int]()
    for _ in range(count):
        steps.run()
        made += steps.likeliest().tolist()
    return made, steps.logits.numpy().astype(np.float64)


def test_two_ranks_with_uneven_heads_give_the_logits_of_one_device() -> None:
    alone = GPT(CONFIG, random_weights(CONFIG, seed=2), ReferenceLauncher(), "bf16")  # type: ignore[arg-type]
    tokens, logits = _greedy(Decode(alone, KVCache(alone, 1, 12)), 6)
    with _shared() as model:
        caches = [KVCache(rank, 1, 12) for rank in model.ranks]
        assert [cache.memory.shape[4] for cache in caches] == [1, 2]
        found, shared = _greedy(ParallelDecode(model, caches, graph=False), 6)
        launched = [name for name, _ in model.ranks[0].launcher.launches]  # pyright: ignore[reportAttributeAccessIssue]
    assert found == tokens and launched == [OP_RANKS, CHOICE] * (len(launched) // 2)
    assert np.abs(shared - logits).max() <= NEAR * np.abs(logits).max()


@pytest.mark.parametrize(
    ("options", "texts", "wanted"),
    [
        ({}, 1, True), ({}, 2, False),
        ({"heads": (1,)}, 1, False),  # the other rank has no entry
        ({"positions": 7}, 1, False),
    ],
)  # fmt: skip
def test_all_ranks_take_it_or_none_does(options: Any, texts: int, wanted: bool) -> None:
    with _shared(**options) as model:
        for rank in model.ranks:
            assert rank.takes_one_launch(KVCache(rank, texts, 8)) is wanted


def test_a_wait_that_ran_out_names_the_rank() -> None:
    with _shared() as model:
        steps = ParallelDecode(model, [KVCache(rank, 1, 8) for rank in model.ranks], graph=False)
        steps.reset(np.array([5], np.int32), np.zeros(1, np.int64))
        steps.run()
        first = model.ranks[0]
        one = first._one_launches[OP_RANKS]  # pyright: ignore[reportPrivateUsage]
        one.check()
        errors = np.zeros((POLICY.sms, 3), np.int32)
        errors[4, 1] = 5 + 8 * 2
        one._arrays["errors"].copy_from(errors)  # pyright: ignore[reportPrivateUsage]
        steps.ranks[0]._chosen.largest.fill(np.nan)  # pyright: ignore[reportPrivateUsage]
        named = "rank 0: a block of the step waited too long for the sums of the MLP of rank 1"
        with pytest.raises(DeviceError, match=named) as raised:
            steps.likeliest()
        assert "every rank must launch the same steps" in str(raised.value)
        steps.logits.started_s -= 2 * SLOW_S
        with pytest.raises(DeviceError, match=named):
            steps.logits.numpy()


def test_ranks_sizes_are_those_of_their_parts() -> None:
    sizes = dims(OP_RANKS, 1, CONFIG.part(1, 2), 152, 8, 132, ranks=2)
    assert {name: sizes[name] for name in "HAEFGKVQSR"} == {
        "H": 2, "A": 128, "E": 384, "F": 384, "G": 48, "K": 152, "V": 304, "Q": 1536, "S": 1536, "R": 2
    }  # fmt: skip


def test_steps_may_be_many_launches_for_a_while() -> None:
    with _shared() as model:
        cache = KVCache(model.ranks[0], 1, 8)
        with model.stepping(on=False):
            assert not model.ranks[0].takes_one_launch(cache)
        assert model.ranks[0].takes_one_launch(cache)
