from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci.report import load, render_markdown

from .conftest import make_origin, make_row, two_machines

Save = Callable[..., Path]


def test_it_counts_by_machine_and_says_how_to_repeat_a_failure(save: Save) -> None:
    lines = render_markdown(two_machines(save)).splitlines()
    assert lines[0] == "### ❌ 1 of 3 passed, 1 failed, 1 error, 1 not run · NVIDIA H100, NVIDIA H200"
    assert "| NVIDIA H200 | 1/1 | 0 | 0 | 1 |" in lines
    assert "| NVIDIA H100 | 0/2 | 1 | 1 | 0 |" in lines
    assert "tilestack reproduce gelu-mlir-bf16-sm_90" in lines
    assert any(line.endswith("| c0ffeec0ff | abababababababab | 580.1 | 1 |") for line in lines)


def test_all_passed(save: Save) -> None:
    text = render_markdown(load([save("r.json", make_row(), origin=make_origin(changes="12ab"))]))
    assert text.startswith("### ✅ 1 of 1 passed · NVIDIA H200\n")
    assert "reproduce" not in text
    assert "c0ffeec0ff with changes" in text


def test_a_message_can_end_neither_its_block_nor_a_table(save: Save) -> None:
    rows = [make_row("failed", shape="a | b", detail="```\n# head")]
    text = render_markdown(load([save("r.json", *rows)]))
    assert "a \\| b" in text
    assert "\n````\n```\n# head\n\ntilestack" in text


def test_many_failures_are_cut(save: Save) -> None:
    text = render_markdown(load([save("r.json", *[make_row("failed", shape=f"M={n}") for n in range(50)])]))
    assert text.count("tilestack reproduce") == 20
    assert "30 more are in the report." in text


def test_the_compile_cache_is_shown_if_it_is_named(save: Save) -> None:
    runs = load([save("r.json", make_row(), origin=make_origin())])
    assert "Compile cache" not in render_markdown(runs)
    assert "| 2 compiles | 7 | 0 | 1 |" in render_markdown(runs, [{"hits": 3}, {"hits": 4, "misses": 1, "time": 5}])
