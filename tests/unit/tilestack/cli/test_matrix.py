"""matrix list, and which rows matrix run runs. What a run writes is in test_commands.py."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from conformance.results.result import Results
from toolchain.contract.op import ops

from ..conftest import Run


@pytest.fixture
def words(compiled: Path, tmp_path: Path) -> list[str | Path]:
    """A run of a copy of it."""
    shutil.copytree(compiled, tmp_path / "b")
    return [
        "matrix",
        "run",
        "--bundle",
        tmp_path / "b",
        "--executor",
        "cpu",
        "--op",
        "gelu",
        "--report",
        tmp_path / "r",
    ]


def rows(report: Path) -> dict[tuple[str, str], str]:
    found = Results.load(report / "results.json").rows
    return {(row.cell, row.shape): row.status for row in found if row.target != "native"}


def test_list_has_a_head_and_a_row_for_each_entry(run: Run) -> None:
    entries = json.loads(run("matrix", "list", "--json").out)
    ran = run("matrix", "list")
    head, *lines = ran.out.splitlines()
    assert head.split() == ["source", "dtype", "entry", "targets", "conditions"] and ran.err == ""
    assert len(entries) == len(lines) > 50
    assert {row["source"] for row in entries} == {"mlir", "py", "cute"}
    for row, line in zip(entries, lines, strict=True):
        assert line.split()[:3] == [row["source"], row["dtype"], row["symbol"]]


def on_sm_80(op: str, targets: list[str]) -> bool:
    return (not targets or "sm_80" in targets) and ops()[op].runs_on("sm_80")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--op", "gelu", "--op", "softmax"], lambda row: row["op"] in ("gelu", "softmax")),
        (["--source", "py", "--dtype", "f32"], lambda row: (row["source"], row["dtype"]) == ("py", "f32")),
        (["-k", "linear and not gelu"], lambda row: "linear" in row["symbol"] and "gelu" not in row["symbol"]),
        (["--target", "sm_80"], lambda row: on_sm_80(row["op"], row["targets"])),
    ],
)  # fmt: skip
def test_list_filters(run: Run, words: list[str], wanted: object) -> None:
    every, found = (json.loads(run("matrix", "list", "--json", *more).out) for more in ([], words))
    assert found == [row for row in every if wanted(row)] and 0 < len(found) < len(every)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--op", "nope"], "no op nope\n  next: one of embedding"),
        (["list", "--target", "sm_1"], "no target sm_1\n  next: one of sm_80"),
        (["list", "-k", "a b"], "-k 'a b': expected 'and' or 'or' before 'b'"),
        (["run", "-k", "("], "-k '(': expected a word, found the end"),
        (["run", "--shape", ""], "--shape is empty"),
        (["run", "-n", "0"], "'0' is not an integer from 1"),
        (["run", "--last-failed", "--report", "/no/such"], "/no/such/results.json: no such file"),
    ],
)
def test_words_that_are_refused(run: Run, words: list[str], said: str) -> None:
    ran = run("matrix", *words)
    assert ran.code == 2 and said in ran.err and ran.out == ""


def test_rows_by_name_and_shape(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    assert run(*words).code == 0
    every = rows(tmp_path / "r")
    shape = next(shape for _, shape in every)
    assert run(*words, "-k", "gelu and not native", "--shape", shape, "-n", "1").code == 0
    assert rows(tmp_path / "r") == {
        key: status for key, status in every.items() if set(shape.split()) <= set(key[1].split())
    }
    ran = run(*words, "-k", "softmax")
    assert ran.code == 2 and "and is softmax runs on cpu interpreter" in ran.err


def test_what_failed_runs_again_alone(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    files = {path: path.read_bytes() for path in (tmp_path / "b" / "files").iterdir()}
    damaged = next(iter(files))
    damaged.write_bytes(b"damaged")
    assert run(*words).code == 9
    failed = {key for key, status in rows(tmp_path / "r").items() if status == "error"}
    assert 0 < len(failed) < len(rows(tmp_path / "r"))
    damaged.write_bytes(files[damaged])
    assert run(*words, "--last-failed").code == 0
    assert rows(tmp_path / "r") == dict.fromkeys(failed, "passed")
    ran = run(*words, "--last-failed")
    assert (ran.code, ran.out) == (0, "") and "results.json: there is nothing to run" in ran.err


def test_a_run_ends_with_the_first_failure(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    for path in (tmp_path / "b" / "files").iterdir():
        path.write_bytes(b"damaged")
    ran = run(*words, "-x", "-k", "cpu")
    assert ran.code == 9 and ran.out.count("error: gelu-mlir-f32-cpu") < len(rows(tmp_path / "r"))
    assert "not run" in rows(tmp_path / "r").values()
    assert re.search(r"^not run: \d+ of \d+: \w", ran.out, re.MULTILINE)


def test_results_as_json(run: Run, words: list[str | Path], tmp_path: Path) -> None:
    ran = run(*words, "--json")
    assert ran.code == 0 and ran.out == (tmp_path / "r" / "results.json").read_text()
    assert "conformance of" in ran.err and " passed" in ran.err
