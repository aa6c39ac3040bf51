"""Rows that are shared out to ranks: when they are, where they lie, and which launches there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from gpt.config import GPTConfig, llama
from gpt.families.gpt2_shared import SharedGPT2
from gpt.parameters.spread import ATTENTION, OF, OF_GELU, OPS, OWN, TO, can_spread, may_spread, parts
from gpt.passes.plan import ModelPlan
from gpt.passes.recorder import Recorder
from gpt.passes.workspace import Workspace, buffers
from gpt.room import Room
from toolchain.contract.entries import committed
from toolchain.runtime import DeviceBuffer, Launcher
from toolchain.runtime.cpu import CpuExecutor
from toolchain.runtime.peers import open_peers

CONFIG = GPTConfig(n_layer=2, n_head=6, n_embd=192, n_ctx=256, vocab_size=67)
ROWS = 256


class Having:
    """In place of a launcher that has entries for some rows."""

    def __init__(self, multiple: int, *, ptx: bool = True) -> None:
        self.executor, self.multiple = CpuExecutor(), multiple
        self.executor.by_threads = ptx
        self.asked: list[tuple[str, Mapping[str, int]]] = []
        self.lacks = ""

    def has_some(self, op: str, dtype: str) -> bool:
        return op not in self.lacks and dtype == "bf16"

    def has(self, op: str, dtype: str, dims: Mapping[str, int]) -> bool:
        assert dtype == "bf16"
        self.asked.append((op, dims))
        return dims["M"] % self.multiple == 0


def _can(launcher: Having, config: GPTConfig, rows: int) -> bool:
    return can_spread(cast("Launcher", launcher), config, 2, rows, "bf16")


def test_rows_are_shared_out_where_the_launcher_has_all_products_for_them() -> None:
    launcher = Having(256)
    assert not _can(launcher, CONFIG, 500) and not _can(launcher, CONFIG, 255) and _can(launcher, CONFIG, 512)
    assert not _can(Having(256, ptx=False), CONFIG, 512)
    assert not _can(launcher, llama(2, 4, 64, 16, 67, kv_heads=2, head_size=32, ffn=160), 512)
    assert {op for op, _ in launcher.asked} == set(OPS)
    asked = [(op, dims) for op, dims in launcher.asked if dims["M"] == 512 and op != ATTENTION]
    assert {(dims["R"], dims["Q"], dims["Z"]) for _, dims in asked} == {(2, 256, 2)}
    assert _can(launcher, CONFIG, 4096)
    parts_of = {op: dims["Z"] for op, dims in launcher.asked if dims["M"] == 4096 and op != ATTENTION}
    assert parts_of == {OF: 2, OWN: 1, OF_GELU: 1, TO: 2}  # of 192 columns, in parts of 224 and of 160


def test_what_each_rank_takes_is_asked_for() -> None:
    """Of five heads one rank has two, the other three."""
    launcher, config = Having(256), GPTConfig(n_layer=2, n_head=5, n_embd=320, n_ctx=256, vocab_size=67)
    assert can_spread(cast("Launcher", launcher), config, 2, 512, "bf16", 256)
    found = {(op, dims["K"], dims["N"]) for op, dims in launcher.asked if op != ATTENTION}
    assert found == {
        (OF, 320, 384), (OF, 320, 576), (OWN, 320, 320), (OF_GELU, 320, 640), (TO, 640, 320)
    }  # fmt: skip
    heads = [dims for op, dims in launcher.asked if op == ATTENTION]
    assert [(dims["B"], dims["T"], dims["H"], dims["C"], dims["D"]) for dims in heads] == [
        (2, 256, 2, 320, 64), (2, 256, 3, 320, 64)
    ]  # fmt: skip


@pytest.mark.parametrize("lacks", OPS)
def test_a_bundle_that_lacks_one_of_the_products_leaves_the_model_as_it_is(lacks: str) -> None:
    launcher = Having(256)
    assert may_spread(cast("Launcher", launcher), CONFIG, "bf16")
    assert not may_spread(cast("Launcher", launcher), CONFIG, "f32")
    launcher.lacks = lacks
    assert not may_spread(cast("Launcher", launcher), CONFIG, "bf16") and not _can(launcher, CONFIG, 512)


class Named(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return name


def sent_where(calls: list[tuple[str, dict[str, Any]]]) -> bool:
    """The own copy of the rows is written by the embedding and by each rank, and read by the last sum."""
    embedded, last = calls[0][1], calls[-1][1]
    sent = next(args for op, args in calls if op == OWN)
    assert sent["out"].shape == (2, ROWS, 192) and sent["x"].shape == (2, ROWS // 2, 192)
    assert sent["squares"].shape == (2, parts(CONFIG, ROWS)[0], ROWS) and sent["ended"].shape == (2, 2)
    assert sent["weight"] == "h.0.attn.c_proj.whole" and sent["bias"] == "h.0.attn.c_proj.bias"
    assert last["x"].pointer == embedded["out"].pointer and sent["rank"] == 1
    return sent["out"].select(0, 1).pointer == embedded["out"].pointer


def test_each_sum_over_the_ranks_is_part_of_a_product_but_the_last() -> None:
    calls: list[tuple[str, dict[str, Any]]] = []

    def launch(op: str, _dtype: str, /, **args: Any) -> None:
        calls.append((op, args))

    def attend(first: int, layer: int, work: Workspace) -> None:
        del first, work
        calls.append((f"attention {layer}", {}))

    with open_peers(["cpu", "cpu"]) as peers:
        room = Room(peers, peers.channel, CONFIG, "bf16", lambda rows: rows % ROWS == 0)
        room.reserve(ROWS)
        share = room.share(1)
        assert share.spread(ROWS) is None  # until somebody wants it
        room.spreading = True
        assert share.spread(ROWS + 1) is None
        part = CONFIG.part(1, 2)
        plan = ModelPlan(part, "bf16", folded=False, sms=4, policy=committed().policies["sm_90"])
        layers = SharedGPT2(launch, cast("Mapping[str, DeviceBuffer]", Named()), plan, "bf16", share)
        shapes = buffers(part, "bf16", 1, ROWS, ROWS, parts=0, squares=(0, 0))
        assert layers.run(Recorder(peers.executors[1], shapes).work, 1, ROWS, attend)
        assert sent_where(calls)
    layer = [OF, "attention {}", OWN, OF_GELU, TO]
    wanted = [op.format(number) for number in range(2) for op in layer]
    assert [op for op, _ in calls] == ["embedding_centred", *wanted[:-1], "linear", "all_reduce_layernorm"]


@pytest.mark.parametrize("rows", [ROWS, 2 * ROWS])
def test_more_rows_take_new_memory_and_fewer_a_part_of_it(rows: int) -> None:
    with open_peers(["cpu", "cpu"]) as peers:
        room = Room(peers, peers.channel, CONFIG, "bf16", lambda rows: True)  # noqa: ARG005
        room.spreading = True
        first, more, again = (room.share(0).spread(count) for count in (ROWS, rows, ROWS))
    assert first is not None and more is not None and again is not None
    assert more.stream.shape == (2, rows, 192)
    assert (first.stream.pointer == more.stream.pointer) == (rows == ROWS)
    assert again.stream.pointer == more.stream.pointer and again.attended.shape == (2, ROWS // 2, 192)
    assert again.arrived.shape == (2, 2, ROWS // 2, 192)


def test_copies_give_the_own_rows_and_their_count_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few rows the products send them."""
    with open_peers(["cpu", "cpu"]) as peers:
        room = Room(peers, peers.channel, CONFIG, "bf16", lambda rows: True)  # noqa: ARG005
        room.spreading = True
        spread = room.share(1).spread(ROWS)
        assert spread is not None
        ended = spread.flags["ended"]
        assert isinstance(ended, DeviceBuffer)
        for rank in range(2):
            spread.stream.select(0, rank).fill(rank + 1)
            ended.select(0, rank).fill(rank + 1)
        spread.made()
        assert spread.of(OF)["sends"] == 1 and (spread.stream.select(0, 0).numpy() == 1).all()
        monkeypatch.setattr("gpt.parameters.spread.COPIED_ROWS", ROWS)
        assert spread.of(OF)["sends"] == 0
        spread.made()
        rows = spread.stream.select(0, 0).numpy()
        assert (rows[: ROWS // 2] == 1).all() and (rows[ROWS // 2 :] == 2).all()
        assert (spread.stream.select(0, 1).numpy() == 2).all()
        assert ended.select(0, 0).numpy().tolist() == [1, 2] and ended.select(0, 1).numpy().tolist() == [2, 2]
