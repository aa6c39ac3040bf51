"""`tilestack stack`: its answers about an LLVM, for people and for scripts."""

from __future__ import annotations

import json

import pytest

from tilestack.__main__ import main


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["stack", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_pinned_version_names_cuda_tile_and_stack(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "check", "22.1.8")
    assert code == 0
    assert out.startswith("LLVM 22.1.8: cuda-tile v13.1.3, stack 13.1\n")


def test_what_the_canary_saw_is_shown(capsys: pytest.CaptureFixture[str]):
    _, out, _ = said(capsys, "check", "23.1.4")
    assert "seen with stack 13.1: barrier.mlir breaks: " in out
    code, out, _ = said(capsys, "check", "23.1.4", "--json")
    found = json.loads(out)
    assert (code, found["cuda_tile"], found["stack"]) == (0, "13.3.2", "13.3")
    assert {"13.1"} == {row["stack"] for row in found["seen"]}


def test_a_known_defect_is_a_warning(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "check", "23.1.4")
    assert code == 0
    assert "  warning: cuda-tile 13.3.2 on LLVM 23 writes i1 constants with one byte an element" in out
    assert "stack 13.1 does both right (docs/native.md, Known defects)" in out
    _, out, _ = said(capsys, "check", "23.1.4", "--json")
    assert [row["name"] for row in json.loads(out)["issues"]] == ["dense-i1"]
    _, out, _ = said(capsys, "check", "22.1.8")
    assert "warning" not in out
    _, out, _ = said(capsys, "check", "57109befac92")
    assert "warning" in out, "the first LLVM commit that cuda-tile 13.3.2 builds with"


def test_an_llvm_that_nothing_fits_is_no_success(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "check", "19.1.0")
    assert code == 1
    assert "no cuda-tile that we know" in out


def test_a_commit_is_placed_by_its_date(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "check", "0123abcd", "--date", "2026-03-01")
    assert code == 0
    assert "cuda-tile v13.1.4, no stack of ours has it" in out
    code, _, err = said(capsys, "check", "0123abcd")
    assert code == 2
    assert "--date YYYY-MM-DD" in err
    code, _, err = said(capsys, "check", "0123abcd", "--date", "2026-03-01", "--llvm-clone", ".")
    assert code == 2
    assert "both place the commit" in err


def test_the_list_has_every_stack(capsys: pytest.CaptureFixture[str]):
    _, out, _ = said(capsys, "list")
    table = json.loads(said(capsys, "list", "--json")[1])
    assert [row["name"] for row in table["stacks"]] == ["13.1", "13.3"]
    assert "stack 13.3 (default)" in out
    assert len(table["compatibility"]) == out.count("LLVM from commit")
