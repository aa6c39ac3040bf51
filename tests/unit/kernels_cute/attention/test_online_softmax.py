"""The softmax of two tiles of scores in the registers of one warp, on the executor, against numpy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels_cute.attention.online_softmax import Softmax, rows_of, tree
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.executor import run
from toolchain.cute.layout import Layout

TILE = Layout((16, 16))  # queries, keys
SCALE = 0.5


def product() -> cute.TiledMma:
    return cute.make_tiled_mma(cute.find("mma.m16n8k16.f32.bf16"), (1, 1, 1), (None, None))


@pytest.fixture(scope="module", params=[False, True], ids=["maximum", "anchor"])
def kernel(request: pytest.FixtureRequest) -> cute.Kernel:
    """Of scores (16, 32): the second tile is masked as that of queries 16 to 31 and keys 16 to 31. With an anchor its
    weights are relative to the maximum of the first one."""
    matrix = cute.Array("f32", rank=2)

    @cute.kernel(matrix, matrix, matrix, cute.Float32(), threads=32, name="softmax")
    def made(x: Any, out: Any, sound: Any, scale: Any) -> None:
        thread, mma = arch.thread_idx()[0], product()
        atoms = cute.make_tiled_copy_like(cute.CopyAtom("universal.b32", 32), mma, "c")
        softmax = Softmax(mma, TILE, thread, scale)
        held = mma.partition("c", TILE)[1]
        tiles = [cute.make_fragment(held.shape, "f32") for _ in range(2)]

        def part(tensor: Any, number: int) -> Any:
            return cute.partition(mma, "C", cute.local_tile(tensor, (16, 16), (0, number)), thread)

        for number, scores in enumerate(tiles):
            cute.copy(atoms, part(x, number), scores)
        softmax.begin()
        softmax.weigh(tiles[0])
        softmax.mask(tiles[1], 16, 16)
        if request.param:
            softmax.weigh_as_before(tiles[1])
        else:
            softmax.weigh(tiles[1])
            softmax.rescale(tiles[0], mma, TILE)
        sound[0, thread] = cute.select(softmax.is_sound(tiles[0]), cute.scalar(1.0), cute.scalar(0.0))
        for number, weights in enumerate(tiles):
            softmax.divide(weights, mma, TILE)
            cute.copy(atoms, weights, part(out, number))

    return made


def scores(higher: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The second tile is higher."""
    made = 3 * np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)
    made[:, 16:] += higher
    return made


def wanted(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    exact = SCALE * x.astype(np.float64)
    exact[:, 16:][np.triu(np.ones((16, 16), bool), 1)] = -np.inf
    weights = np.exp(exact - exact.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("higher", [0.0, 30.0, -400.0])
def test_weights_of_all_tiles_are_the_softmax(kernel: cute.Kernel, higher: float) -> None:
    x, out, sound = scores(higher), np.full((16, 32), np.nan, np.float32), np.zeros((1, 32), np.float32)
    run(kernel, [x, out, sound, SCALE], 1)
    assert np.abs(out - wanted(x)).max() < 1e-6
    assert (sound == 1).all()


def test_what_overflows_relative_to_an_anchor_is_said_to_be_unsound(kernel: cute.Kernel) -> None:
    x, out, sound = scores(200.0), np.full((16, 32), np.nan, np.float32), np.full((1, 32), 2, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        run(kernel, [x, out, sound, SCALE], 1)
    right = bool(np.abs(out - wanted(x)).max() < 1e-6)
    assert (sound == right).all()


def test_a_thread_has_two_rows_of_the_accumulator() -> None:
    assert rows_of(product(), TILE) == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_a_tree_joins_each_value_once_in_few_steps(count: int) -> None:
    names = [chr(ord("a") + i) for i in range(count)]
    made = tree(list(names), lambda a, b: f"({a}{b})")
    assert sorted(made.replace("(", "").replace(")", "")) == names
    depth = max(made[:i].count("(") - made[:i].count(")") for i in range(len(made) + 1))
    assert depth == (count - 1).bit_length()
