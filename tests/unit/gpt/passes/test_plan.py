from __future__ import annotations

from dataclasses import replace

import pytest

from gpt.config import PRESETS, GPTConfig
from gpt.passes.plan import ModelPlan
from toolchain.contract.entries import committed

GPT2, MEDIUM, XL = PRESETS["gpt2"], PRESETS["medium"], PRESETS["xl"]
SMS = 132
POLICY = committed().policies["sm_90"]
PORTABLE = committed().policies["default"]


def plan(config: GPTConfig = GPT2, storage: str = "bf16", *, folded: bool = True) -> ModelPlan:
    return ModelPlan(config, storage, folded, SMS, POLICY)


@pytest.mark.parametrize(
    ("batch", "length", "storage", "sizes"),
    [
        (1, 64, "bf16", [1]),
        (8, 1024, "bf16", [8]),  # 48 MiB of hidden layer
        (23, 1024, "bf16", [23]),  # two chunks' worth and a bit
        (24, 1024, "bf16", [8, 8, 8]),
        (26, 1024, "bf16", [9, 9, 8]),
        (32, 1024, "bf16", [8, 8, 8, 8]),
        (12, 1024, "f32", [4, 4, 4]),
        (2, 65536, "bf16", [2]),  # fewer sequences than chunks
        (65536, 1, "bf16", [65536]),  # a step
    ],
)
def test_chunks_are_of_about_a_caches_hidden_layer(batch: int, length: int, storage: str, sizes: list[int]) -> None:
    assert plan(storage=storage).chunk_sizes(batch, length) == sizes
    assert sum(sizes) == batch


@pytest.mark.parametrize(
    ("config", "storage", "few"),
    [(GPT2, "bf16", range(1, 193)), (GPT2, "f32", range(2, 65)), (MEDIUM, "bf16", range(1, 65))],
)
def test_the_longest_product_is_in_parts_of_few_rows(config: GPTConfig, storage: str, few: range) -> None:
    rows = [rows for rows in range(1, 300) if plan(config, storage).parts(rows)]
    assert rows == list(few)


def test_with_the_fastest_kernels_a_chunk_of_the_smallest_model_has_four_times_the_rows() -> None:
    made = replace(plan(), policy=POLICY.of("fastest"))
    assert [made.chunk_sizes(batch, 1024) for batch in (32, 95, 96)] == [[32], [95], [32, 32, 32]]
    wider = replace(made, config=MEDIUM)  # was not measured
    assert wider.chunk_sizes(32, 1024) == plan(MEDIUM).chunk_sizes(32, 1024) != [32]


@pytest.mark.parametrize(
    ("rows", "squares"),
    [(128, (12, 128)), (129, (24, 192)), (320, (24, 320)), (321, (8, 384)), (448, (8, 448)), (513, (6, 576))],
)
def test_with_the_fastest_kernels_all_norms_of_more_rows_than_panels_make_at_once_are_part_of_products(
    rows: int, squares: tuple[int, int]
) -> None:
    """Of 320 rows 5 x 24 tiles of 64 x 32 are one round of 132; of 448 7 x 8 of 64 x 96."""
    made = replace(plan(), policy=POLICY.of("fastest"))
    assert (made.squares(rows), made.folds_all(rows), made.parts(rows)) == (squares, rows > 128, 4 * (rows <= 128))
    assert not made.folds_all(449) and plan().folds_all(rows) == (rows > 512)
    assert not replace(made, folded=False).folds_all(rows)
    assert replace(made, config=MEDIUM).folds_all(rows) == (rows > 512)


def test_over_weights_in_8_bits_blocks_norm_up_to_16_rows_and_parts_are_of_2_to_64() -> None:
    made = [replace(plan(config, folded=False), quantized=True) for config in (GPT2, MEDIUM)]
    assert [[rows for rows in range(1, 300) if each.norms_in_blocks(rows)] for each in made] == [[*range(1, 17)], []]
    assert [[rows for rows in range(1, 300) if each.parts(rows)] for each in made] == [[*range(2, 65)], []]
    assert not replace(made[0], policy=PORTABLE).norms_in_blocks(1) and not plan().norms_in_blocks(1)


def test_without_kernels_that_read_a_panel_at_once_parts_are_of_two_to_64_rows() -> None:
    portable = ModelPlan(GPT2, "bf16", folded=False, sms=SMS, policy=PORTABLE)
    assert [rows for rows in range(1, 300) if portable.parts(rows)] == list(range(2, 65))
    assert portable.squares(1024) == (0, 0) and not portable.folds_all(1024)


def test_all_norms_of_many_rows_are_part_of_products() -> None:
    assert [plan(folded=folded).folds_all(rows) for folded in (True, False) for rows in (512, 513)] == [
        False, True, False, False,
    ]  # fmt: skip


def test_there_are_no_parts_for_a_norm_that_cannot_take_them() -> None:
    assert plan(replace(GPT2, n_head=32, n_embd=2048)).parts(8) == 4
    assert plan(replace(GPT2, n_head=33, n_embd=2112)).parts(8) == 0


@pytest.mark.parametrize(
    ("config", "rows", "squares"),
    [
        (GPT2, 1, (12, 8)), (GPT2, 9, (12, 16)), (GPT2, 17, (12, 64)), (GPT2, 192, (12, 192)),
        (GPT2, 193, (0, 0)), (GPT2, 512, (0, 0)),
        (GPT2, 513, (6, 576)), (GPT2, 1536, (6, 1536)), (GPT2, 1537, (4, 1600)),
        (MEDIUM, 64, (0, 0)), (MEDIUM, 1024, (8, 1024)), (XL, 1024, (13, 1024)),
    ],
)  # fmt: skip
def test_squares_are_of_whole_tiles(config: GPTConfig, rows: int, squares: tuple[int, int]) -> None:
    assert plan(config).squares(rows) == squares
    assert plan(config, folded=False).squares(rows) == (0, 0)


@pytest.mark.parametrize(
    ("batch", "positions", "spans"),
    [(1, 1024, 8), (8, 1024, 8), (14, 1024, 8), (15, 1024, 2), (29, 1024, 2), (30, 1024, None), (64, 200, None),
     (1, 100, 1)],
)  # fmt: skip
def test_spans_are_as_long_as_leave_no_multiprocessor_idle(batch: int, positions: int, spans: int | None) -> None:
    assert plan().spans(batch, positions) == spans


def test_a_cache_of_heads_of_another_size_is_always_in_spans() -> None:
    assert plan(replace(GPT2, n_head=24)).spans(64, 1024) == 2
